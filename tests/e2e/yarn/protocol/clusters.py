"""The YARN under test, embedded or real, with the same face."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.e2e.yarn import config, rest
from tests.e2e.yarn.application import containers_ended, containers_running
from tests.e2e.yarn.cluster import AM_MEMORY_MB, Cluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.jars import Jars

from fallow_yarn.embedded.cluster import EmbeddedYarn
from fallow_yarn.embedded.resource_manager import ResourceManager
from fallow_yarn.embedded.settings import Settings
from fallow_yarn.model.size import Size

KINDS = os.environ.get("FALLOW_TEST_YARN", "embedded").split(",")
"""Which YARNs the tests are for: embedded, real, or both."""

VERSION = os.environ.get("FALLOW_TEST_HADOOP", "3.5.0")
FAIR = os.environ.get("FALLOW_TEST_SCHEDULER", "capacity") == "fair"
"""Whether a real one has the FairScheduler, and not the CapacityScheduler."""

MASTER_MB = AM_MEMORY_MB
ADDRESSES = ("address", "admin.address", "scheduler.address", "resource-tracker.address", "webapp.address")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the YARN looks like. `licences`: how many of a further resource type nm1 has; 0: there is no such type.

    `exclude` and `include` are the files of excluded and included hosts.
    """

    nodes: int = 1
    memory_mb: int = 4096
    vcores: int = 4
    minimum_mb: int = 128
    admin: str | None = None
    licences: int = 0
    exclude: Path | None = None
    include: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manager:
    """Where a ResourceManager listens, each `host:port`."""

    client: str
    admin: str
    scheduler: str
    web: str


class Process(Protocol):
    """A process that was started."""

    def send_signal(self, sig: int, /) -> None: ...


class Node(Protocol):
    """A NodeManager."""

    @property
    def node_id(self) -> str: ...
    @property
    def pid(self) -> int: ...
    @property
    def process(self) -> Process | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """An application: its containers whose commands have begun, and the exit codes of those that have ended."""

    app_id: str
    running: Callable[[], set[str]]
    exits: Callable[[], dict[str, int]]


class Yarn(Protocol):
    """What the tests need of a YARN; `web` of a NodeManager is in `webs`."""

    @property
    def rm(self) -> Manager: ...
    @property
    def heartbeat_seconds(self) -> float: ...
    @property
    def nodes(self) -> Mapping[str, Node]: ...
    @property
    def webs(self) -> Mapping[str, str]: ...

    def submit(self, containers: int, memory_mb: int, vcores: int, command: str) -> App:
        """An application whose master runs each of so many commands once, and fails with its master."""

    def kill(self, name: str) -> None:
        """Kill "rm", or a NodeManager by its name; containers live on."""

    def start(self, name: str) -> None:
        """Start it again; return when the YARN is whole."""


class EmbeddedOne:
    """The embedded YARN."""

    heartbeat_seconds = 0.1

    def __init__(self, folder: Path, shape: Shape) -> None:
        self.yarn = EmbeddedYarn(
            folder,
            Settings(
                nodes=shape.nodes,
                memory_mb=shape.memory_mb,
                vcores=shape.vcores,
                minimum=Size(shape.minimum_mb, 1),
                admins=None if shape.admin is None else frozenset({shape.admin}),
                custom={"nm1": {"licence": shape.licences}, "nm2": {"licence": 0}} if shape.licences else {},
                version=VERSION,
                exclude_file=shape.exclude,
                include_file=shape.include,
                heartbeat_seconds=self.heartbeat_seconds,
                change_seconds=0.002,
            ),
        )
        self.rm = manager(self.yarn.rm)
        self.nodes = self.yarn.nodes
        self.webs = {name: node.web_address for name, node in self.nodes.items()}
        self.yarn.start()

    def submit(self, containers: int, memory_mb: int, vcores: int, command: str) -> App:
        app = self.yarn.submit(
            containers=containers,
            memory_mb=memory_mb,
            vcores=vcores,
            command=command,
            name="sleep",
            user=rest.USER,
            master_memory_mb=MASTER_MB,
            master_attempts=1,
        )
        return App(
            app_id=app.id,
            running=lambda: set(app.running),
            exits=lambda: {ended.container: ended.exit_code for ended in app.ended},
        )

    def kill(self, name: str) -> None:
        if name == "rm":
            self.yarn.rm.stop()
        else:
            self.nodes[name].end()

    def start(self, name: str) -> None:
        if name == "rm":
            self.yarn.rm.start(standby=False)
        else:
            self.nodes[name].start()
        self.yarn.wait_ready()

    def stop(self) -> None:
        self.yarn.stop()


class RealOne:
    """A real YARN."""

    heartbeat_seconds = 1.0

    def __init__(self, jars: Jars, folder: Path, shape: Shape) -> None:
        site: dict[str, dict[str, str]] = {"rm": {}}
        if FAIR:
            site["rm"] |= config.FAIR_SCHEDULER
        if shape.admin is not None:
            site["rm"]["yarn.admin.acl"] = shape.admin
        for kind, path in (("exclude", shape.exclude), ("include", shape.include)):
            if path is not None:
                site["rm"][f"yarn.resourcemanager.nodes.{kind}-path"] = str(path)
        if shape.licences:
            site["rm"]["yarn.resource-types"] = "licence"
            amount = {"yarn.nodemanager.resource-type.licence": str(shape.licences)}
            site["nm1"] = {"yarn.resource-types": "licence", **amount}
        setup = Setup(
            node_managers=shape.nodes,
            memory_mb=shape.memory_mb,
            vcores=shape.vcores,
            min_mb=shape.minimum_mb,
            site=site,
        )
        self.cluster = Cluster(jars, folder, setup)
        rm = self.cluster.rm
        self.rm = Manager(client=rm.client, admin=rm.admin, scheduler=rm.scheduler, web=rm.web)
        self.nodes = self.cluster.nms
        self.webs = {name: nm.web for name, nm in self.nodes.items()}
        self.cluster.start()

    def submit(self, containers: int, memory_mb: int, vcores: int, command: str) -> App:
        app = self.cluster.submit(containers, memory_mb, vcores, command)
        return App(
            app_id=app.app_id,
            running=lambda: containers_running(app),
            exits=lambda: {ended.container: ended.exit_code for ended in containers_ended(app)},
        )

    def kill(self, name: str) -> None:
        self.cluster.kill(name, signal.SIGKILL)

    def start(self, name: str) -> None:
        self.cluster.launch(name)
        self.cluster.wait_ready()

    def stop(self) -> None:
        self.cluster.stop()


def manager(rm: ResourceManager) -> Manager:
    """Where an embedded ResourceManager listens."""
    return Manager(client=rm.client_address, admin=rm.admin_address, scheduler=rm.scheduler_address, web=rm.web_address)


@contextmanager
def standby_of(jars: Jars | None, folder: Path) -> Iterator[Manager]:
    """A ResourceManager that stands by while no other one is active: an embedded one, or with `jars` a real one."""
    if jars is not None:
        yield from _real_standby(jars, folder)
        return
    with EmbeddedYarn(folder, Settings(nodes=0, ha=True, version=VERSION)) as yarn:
        yarn.rm.become_standby()
        yield manager(yarn.rms["rm2"])


def _real_standby(jars: Jars, folder: Path) -> Iterator[Manager]:
    cluster = Cluster(jars, folder, Setup(node_managers=0))
    site = cluster.rm.properties() | config.rm_site(cluster.setup, cluster.rm.home)
    ha = {
        "ha.enabled": "true",
        "ha.automatic-failover.enabled": "false",
        "ha.rm-ids": "rm1,rm2",
        "ha.id": "rm1",
        "cluster-id": "test",
        "hostname.rm2": "127.0.0.1",
    }
    ha |= {f"{key}.rm1": site[f"yarn.resourcemanager.{key}"] for key in ADDRESSES}
    site |= {f"yarn.resourcemanager.{key}": value for key, value in ha.items()}
    config.write(cluster.rm.home / "conf", site | config.capacity_scheduler(cluster.setup))
    try:
        cluster.launch("rm")
        rm = cluster.rm
        rest.wait_for(lambda: "clusterInfo" in rest.call(rm.web, "/ws/v1/cluster/info"), 60, "the web server")
        yield Manager(client=rm.client, admin=rm.admin, scheduler=rm.scheduler, web=rm.web)
    finally:
        cluster.stop()
