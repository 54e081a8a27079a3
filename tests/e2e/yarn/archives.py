"""Shared class archives: they halve the processor time that a daemon takes to start."""

import signal
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.e2e.yarn.application import events
from tests.e2e.yarn.cluster import Cluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.jars import KINDS, Jars
from tests.e2e.yarn.rest import wait_for


def build_archives(jars: Jars) -> None:
    """Run a small cluster and an application once, so that each JVM leaves an archive of the classes that it loaded."""
    with jars.lock():
        if all(jars.archive(kind).exists() for kind in KINDS):
            return
        with (
            tempfile.TemporaryDirectory() as folder,
            Cluster(replace(jars, dump=True), Path(folder) / "cluster", Setup()) as cluster,
        ):
            app = cluster.submit(1, 128, 1, "true")
            wait_for(lambda: any(e.kind == "finished" for e in events(app)), 120, "the first application")
            for name in ("nm1", "rm"):  # the archive is written at an orderly exit
                cluster.kill(name, signal.SIGTERM, 180)
        jars.keep_archives()
