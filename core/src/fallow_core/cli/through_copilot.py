"""How the conformance suite calls a plugin through a copilot: a server and core's client, with a socket between them.

Both are in the suite's process, so that a framework in memory can be tried, too. Needs `fallow-core[copilot]`.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fallow_hookspecs import ClusterConfig, Instance, Plugin

GRACE_SECONDS = 0.2


@contextmanager
def opened(plugin: Plugin, cluster: ClusterConfig) -> Iterator[Instance]:
    """Serve an instance of the plugin, and give core's client of it."""
    from fallow_core.plugins.copilot_client import open_client
    from fallow_hookspecs.copilot.host import host
    from fallow_hookspecs.copilot.server import Service

    with tempfile.TemporaryDirectory(prefix="fallow-copilot-") as folder:  # its owner alone may enter it
        path = Path(folder) / "socket"
        service = Service(host(plugin, plugin.build(cluster)))
        before = os.umask(0o177)
        try:
            service.serve(f"unix:{path}")
        finally:
            os.umask(before)
        try:
            client = open_client(str(path), None)
            try:
                yield client
            finally:
                client.close()
        finally:
            service.stop(GRACE_SECONDS)
