"""A real YARN cluster on loopback for tests: one ResourceManager and some NodeManagers."""

import shlex
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.e2e.yarn import config, processes, rest
from tests.e2e.yarn.application import Application
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.daemons import Daemon, NodeManager, ResourceManager
from tests.e2e.yarn.jars import Jars

AM_MEMORY_MB = 256


class Cluster:
    """One ResourceManager (`rm`) and NodeManagers (`nms`: "nm1", "nm2", ...); a context manager that starts and stops.

    Everything lies below `folder`, which must not exist; logs stay there. Nothing but child processes and their
    containers is ever signalled. When this process ends, however that is, so do the daemons.
    """

    def __init__(self, jars: Jars, folder: Path, setup: Setup) -> None:
        self.jars = jars
        self.folder = folder.resolve()
        self.setup = setup
        ports = processes.free_ports(5 + 3 * setup.node_managers)
        self.rm = ResourceManager(self.folder / "rm", ports[:5])
        self.nms: dict[str, NodeManager] = {}
        for i in range(setup.node_managers):
            name = f"nm{i + 1}"
            self.nms[name] = NodeManager(name, self.folder / name, ports[5 + 3 * i : 8 + 3 * i])
        self.daemons: dict[str, Daemon] = {"rm": self.rm, **self.nms}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start every daemon at once; return when the scheduler has every NodeManager. A failure stops them all."""
        self.prepare()
        try:
            for name in self.daemons:
                self.launch(name)
            self.wait_ready()
        except BaseException:
            self.stop()
            raise

    def prepare(self) -> None:
        """Write what the daemons need before their first start."""
        self.configure(self.rm.properties(), {self.rm: {}})

    def configure(self, everywhere: Mapping[str, str], managers: Mapping[ResourceManager, Mapping[str, str]]) -> None:
        """Write the files of all daemons: what all of them know, and what each ResourceManager has of its own."""
        config.write(self.folder / "client", everywhere)
        scheduler = config.capacity_scheduler(self.setup)
        for rm, own in managers.items():
            config.write(rm.home / "conf", {**everywhere, **config.rm_site(self.setup, rm.home), **scheduler, **own})
        for nm in self.nms.values():
            site = config.nm_site(self.setup, nm.name, nm.home, nm.ipc, nm.localizer, nm.web)
            config.write(nm.home / "conf", {**everywhere, **site})

    def stop(self) -> None:
        """Kill the daemons and every container; may be called again."""
        for daemon in self.daemons.values():
            daemon.end()
        processes.end_containers(self.folder)

    def launch(self, name: str) -> None:
        """Start a daemon that is not running; it is not ready yet."""
        self.daemons[name].start(self.jars)

    def kill(self, name: str, signal_number: int = signal.SIGKILL, seconds: float = 30) -> None:
        """End one daemon. By SIGKILL its containers live on; by SIGTERM a NodeManager with containers takes 20 s."""
        self.daemons[name].end(signal_number, seconds)

    def restart(self, name: str) -> None:
        """Kill one daemon and start it again; return when the cluster is ready."""
        self.kill(name)
        self.launch(name)
        self.wait_ready()

    def wait_ready(self, seconds: float = 120) -> None:
        """Return when the ResourceManager is active and its scheduler has every NodeManager that was not killed."""
        waited_for = [nm for nm in self.nms.values() if nm.process is not None]

        def ready() -> bool:
            if not all(daemon.pid for daemon in [self.rm, *waited_for]):
                return False
            info = self.page("/ws/v1/cluster/info")["clusterInfo"]
            nodes = self.nodes()
            return info["haState"] == "ACTIVE" and all(nm.is_back(nodes) for nm in waited_for)

        rest.wait_for(ready, seconds, "the ResourceManager and its nodes")

    def nodes(self) -> dict[str, rest.Node]:
        """Every node that the ResourceManager knows, by its id."""
        return rest.nodes_in(self.page("/ws/v1/cluster/nodes"))

    def page(self, path: str) -> Any:
        """A page of the ResourceManager; OSError tells why there is none."""
        return rest.call(self.rm.web, path)

    def submit(
        self,
        containers: int,
        memory_mb: int,
        vcores: int,
        command: str,
        *,
        at_once: int | None = None,
        label: str = "",
    ) -> Application:
        """Start an application whose master keeps `containers` containers that run the shell command `command`.

        It asks for all of them, or for no more than `at_once` beside those that run, on nodes with the node label. The
        master's own container has AM_MEMORY_MB and one vcore. It finishes when all the others have ended.
        """
        app_id = self.new_application()
        app = Application(app_id=app_id, events=self.folder / f"{app_id}.events", begun=self.folder / app_id)
        app.begun.mkdir()
        script = self.folder / f"{app_id}.sh"  # by file: YARN puts commands between double quotes
        script.write_text(f': >"{app.begun}/$CONTAINER_ID"\n{command}\n')
        numbers = map(str, (containers, containers if at_once is None else at_once, memory_mb, vcores))
        arguments = [str(app.events), *numbers, f"exec /bin/sh {script}"]
        master = replace(self.jars, dump=False).command("nm", self.folder / "client", "SleepAM", arguments, heap_mb=64)
        self.start_master(app_id, shlex.join(master) + " ><LOG_DIR>/out 2>&1", label)
        return app

    def new_application(self) -> str:
        """The id of an application that is to be started."""
        return str(rest.call(self.rm.web, "/ws/v1/cluster/apps/new-application", {})["application-id"])

    def start_master(self, app_id: str, command: str, label: str = "") -> None:
        """Start an application by a shell command, in a container of AM_MEMORY_MB and one vcore."""
        body = {
            "application-id": app_id,
            "application-name": "sleep",
            "application-type": "YARN",
            "max-app-attempts": 1,
            **({"app-node-label-expression": label} if label else {}),
            "resource": {"memory": AM_MEMORY_MB, "vCores": 1},
            "am-container-spec": {"commands": {"command": command}},
        }
        rest.call(self.rm.web, "/ws/v1/cluster/apps", body)


StartCluster = Callable[[Setup], Cluster]
