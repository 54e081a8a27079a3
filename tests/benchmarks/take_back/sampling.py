"""The size of the one node by its ResourceManager, and what Fallow says it can lend, twice a second."""

import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from tests.benchmarks.take_back.judge import InForce, Sample
from tests.e2e.yarn import rest
from tests.e2e.yarn.cluster import Cluster
from tests.e2e.yarn.fallow_process import MIB, Fallow

from fallow_core.errors import ControlError

EVERY_SECONDS = 0.5


class Sampler:
    """Samples while it is open; a context manager. A moment in which Fallow does not answer gives no sample."""

    def __init__(self, cluster: Cluster, fallow: Fallow) -> None:
        self.samples: list[Sample] = []
        self._cluster = cluster
        self._fallow = fallow
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            with suppress(ControlError):
                self._sample()

    def _sample(self) -> None:
        at, in_force = time.time(), _in_force(self._cluster)
        status = self._fallow.status()
        lendable = status["nodes"][0]["memory"]["batch"] if status["nodes"] else None
        if lendable is not None:
            floor = sum(row["floor"]["memory_bytes"] for each in status["clusters"] for row in each["rows"])
            self.samples.append(Sample(at=at, in_force=in_force, lendable_mb=lendable // MIB, floor_mb=floor // MIB))


def _in_force(cluster: Cluster) -> InForce | None:
    with suppress(*rest.NOT_YET):
        for node in cluster.nodes().values():
            if node.state == "RUNNING" and node.total_mb:
                return InForce(size_mb=node.total_mb, allocated_mb=node.used_mb)
    return None
