"""A real ResourceManager with thousands of simulated NodeManagers, and what its CPU costs."""

import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.e2e.yarn.cluster import Cluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.jars import JVM, Jars
from tests.e2e.yarn.rest import wait_for

from fallow_hookspecs import ClusterConfig
from fallow_yarn.model.size import Size
from fallow_yarn.plugin import YarnInstance
from fallow_yarn.settings.config import YarnSpec

FLEET: Final = Path(__file__).with_name("Fleet.java")
CONFIGURED: Final = Size(16384, 32)
CONTAINER_MB: Final = 1024
HEARTBEAT_SECONDS: Final = 30  # what a cluster of thousands of nodes is set to
TICKS_A_SECOND: Final = 100
POLL_SECONDS: Final = 0.05
USER: Final = "tester"

MakeCluster = Callable[[Jars, Path, Setup], Cluster]


class Fleet:
    """A ResourceManager and `nodes` simulated NodeManagers of the size CONFIGURED; a context manager.

    Each node runs `containers_each` containers of CONTAINER_MB and one vcore. `ids` are the nodes in their order.
    `longest_queue`: the most events that any look at the metrics found waiting for the scheduler.
    """

    def __init__(
        self,
        jars: Jars,
        folder: Path,
        nodes: int,
        containers_each: int = 2,
        heartbeat_seconds: int = HEARTBEAT_SECONDS,
        *,
        make: MakeCluster = Cluster,
        options: Sequence[str] = (),
    ) -> None:
        """`make`: the ResourceManager, or several. `options` are further ones of the simulated NodeManagers' JVM."""
        setup = Setup(
            node_managers=0,
            heartbeat_ms=heartbeat_seconds * 1000,
            site={"rm": {"yarn.resourcemanager.resource-tracker.client.thread-count": "32"}},
            capacity={
                "schedule-asynchronously.enable": "false",
                "per-node-heartbeat.maximum-container-assignments": str(max(containers_each, 1)),
            },
        )
        self.nodes = nodes
        self.ids: tuple[str, ...] = ()
        self.longest_queue = 0
        self.log = folder / "fleet.txt"
        self._containers = nodes * containers_each
        self.cluster = make(jars, folder, setup)
        for daemon in self.cluster.daemons.values():
            daemon.heap_mb = 1024
        self._command = [shutil.which("java") or "java", "-Xmx768m", *JVM, *options, "-cp"]
        self._command += [f"{folder.resolve() / 'client'}:{jars.lib}/*", str(FLEET), str(nodes)]
        self._command += [str(n) for n in (CONFIGURED.memory_mb, CONFIGURED.vcores, self._containers, CONTAINER_MB)]
        self._process: subprocess.Popen[bytes] | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with self._stack:
            self._stack.enter_context(self.cluster)
            self._stack.callback(self._end)
            self._start()
            seconds = 120 + 4 * HEARTBEAT_SECONDS + self.nodes / 50
            wait_for(self._is_ready, seconds, f"{self.nodes} simulated NodeManagers and their containers")
            self.ids = tuple(sorted(self.cluster.nodes()))
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def admin(self) -> str:
        """Address of the admin port."""
        return self.cluster.rm.admin

    def spec(self) -> dict[str, Any]:
        """The `spec` of a cluster file in which all nodes belong to one host."""
        rm = self.cluster.rm
        addresses = {"host": "127.0.0.1", "client": rm.client, "admin": rm.admin, "web": rm.web}
        return {"resourceManager": addresses, "user": USER, "nodeManagers": list(self.ids)}

    def instance(self) -> YarnInstance:
        """The plugin, for this cluster."""
        return instance(self.spec())

    def metrics(self) -> Mapping[str, Any]:
        """The ResourceManager's own page about its cluster."""
        metrics: dict[str, Any] = self.cluster.page("/ws/v1/cluster/metrics")["clusterMetrics"]
        self.longest_queue = max(self.longest_queue, metrics["schedulerEventQueueSize"])
        return metrics

    def total(self) -> Size:
        """What the scheduler works with, all nodes together."""
        total = self.metrics()["totalClusterResourcesAcrossPartition"]
        return Size(total["memory"], total["vCores"])

    def wait_until_right(self, total: Size, seconds: float = 300) -> None:
        """Return when the scheduler works with so much in all."""
        end = time.monotonic() + seconds
        while (found := self.total()) != total:
            if time.monotonic() > end:
                raise TimeoutError(f"the scheduler has {found} after {seconds} s, not {total}")
            time.sleep(POLL_SECONDS)

    def cpu_seconds(self) -> float:
        """CPU that the ResourceManager has used."""
        stat = Path(f"/proc/{self.cluster.rm.pid}/stat").read_text()
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND

    def idle_share(self, seconds: float = HEARTBEAT_SECONDS) -> float:
        """Its share of a core while nothing is asked of it; the default is one round of heartbeats."""
        began, before = time.monotonic(), self.cpu_seconds()
        time.sleep(seconds)
        return (self.cpu_seconds() - before) / (time.monotonic() - began)

    def _is_ready(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"the simulated NodeManagers have ended: {self.log.read_text()[-2000:]}")
        metrics = self.metrics()
        return bool(metrics["activeNodes"] == self.nodes and metrics["containersAllocated"] >= self._containers)

    def _start(self) -> None:
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=log, stderr=log)

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


def instance(spec: Mapping[str, Any]) -> YarnInstance:
    """The plugin, for a cluster with this `spec`."""
    return YarnInstance(ClusterConfig(name="fleet", roles=frozenset(), spec=YarnSpec.model_validate(dict(spec))))
