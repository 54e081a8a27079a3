"""A real YARN cluster with two ResourceManagers, of which the test makes one active. No ZooKeeper: nobody else does."""

import getpass
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tests.e2e.yarn import config, processes, rest
from tests.e2e.yarn.cluster import Cluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.daemons import ResourceManager
from tests.e2e.yarn.jars import Jars

from fallow_yarn.errors import YarnError
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.status import HA_PROTOCOL
from fallow_yarn.security.access import Access
from fallow_yarn.settings.rm_addresses import Server, server

BY_USER = b"\x0a\x02\x08\x00"  # reqInfo { reqSource: REQUEST_BY_USER }
ADDRESSES = {
    "address": "client",
    "admin.address": "admin",
    "scheduler.address": "scheduler",
    "resource-tracker.address": "tracker",
    "webapp.address": "web",
    "webapp.https.address": "web",
}


class Pair(Cluster):
    """Two ResourceManagers, "rm1" and "rm2", with one store. `rm` is the one that was made active last."""

    def __init__(self, jars: Jars, folder: Path, setup: Setup) -> None:
        super().__init__(jars, folder, setup)
        self.rms = {"rm1": self.rm, "rm2": ResourceManager(self.folder / "rm2", processes.free_ports(5))}
        self.daemons = {**self.rms, **self.nms}
        self.access = Access.simple(getpass.getuser())
        self.when_down: Callable[[], None] = lambda: None  # called when none is active any more

    def prepare(self) -> None:
        """Write the files of all daemons: both ResourceManagers know each other, and have one store."""
        everywhere = {
            **{key: value for key, value in self.rm.properties().items() if not key.endswith("address")},
            "yarn.resourcemanager.ha.enabled": "true",
            "yarn.resourcemanager.ha.automatic-failover.enabled": "false",
            "yarn.resourcemanager.cluster-id": "pair",
            "yarn.resourcemanager.ha.rm-ids": ",".join(self.rms),
            "ipc.client.rpc-timeout.ms": "3000",  # or else NodeManagers stay two minutes with one that hangs
            "yarn.client.failover-sleep-base-ms": "200",
            "yarn.client.failover-sleep-max-ms": "500",
        }
        for name, rm in self.rms.items():
            everywhere[f"{config.RM}.hostname.{name}"] = "127.0.0.1"
            everywhere |= {f"{config.RM}.{key}.{name}": getattr(rm, kind) for key, kind in ADDRESSES.items()}
        store = f"file://{self.folder}/store"
        own = {
            rm: {f"{config.RM}.ha.id": name, f"{config.RM}.fs.state-store.uri": store} for name, rm in self.rms.items()
        }
        self.configure(everywhere, own)

    def wait_ready(self, seconds: float = 120) -> None:
        """Make `rm` active if it is not, and return when its scheduler has every NodeManager that was not killed."""
        self.make_active(self.rm)
        super().wait_ready(seconds)

    def make_active(self, rm: ResourceManager, seconds: float = 60) -> None:
        """Make one active, as soon as it answers."""
        rest.wait_for(lambda: self._transition(rm, "transitionToActive"), seconds, "a ResourceManager to become active")

    def make_standby(self, rm: ResourceManager) -> None:
        """Make one stand by, as soon as it answers."""
        rest.wait_for(lambda: self._transition(rm, "transitionToStandby"), 60, "a ResourceManager to stand by")

    @contextmanager
    def failed_over(self) -> Iterator[None]:
        """The other one is active. The NodeManagers come by themselves."""
        if self.rm.process is not None:
            self.make_standby(self.rm)
        self.when_down()
        self._take_other()
        yield

    @contextmanager
    def killed(self) -> Iterator[None]:
        """The active one was terminated by kill -9, and the other one is active. Later the first one stands by."""
        dead = self.rm
        self.kill(next(name for name, rm in self.rms.items() if rm is dead))
        self.when_down()
        self._take_other()
        yield
        dead.start(self.jars)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """The active one hangs: its connections stand, and nothing answers. The other one is active."""
        frozen = self.rm
        os.kill(frozen.pid, signal.SIGSTOP)
        try:
            self._take_other()
            yield
        finally:
            os.kill(frozen.pid, signal.SIGCONT)
        self.make_standby(frozen)

    def _take_other(self) -> None:
        self.rm = next(rm for rm in self.rms.values() if rm is not self.rm)
        self.make_active(self.rm)

    def _transition(self, rm: ResourceManager, method: str) -> bool:
        _ = rm.pid  # or an error that shows the end of its log
        connection = self.access.connection(server(Server.ADMIN, rm.admin, "the test"), HA_PROTOCOL)
        with closing(connection), suppress(YarnError):
            connection.call(method, BY_USER, Deadline.after(30))
            return True
        return False
