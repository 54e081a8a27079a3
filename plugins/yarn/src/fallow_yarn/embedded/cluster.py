"""The embedded YARN as one object."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from fallow_yarn.embedded import process_guard
from fallow_yarn.embedded.application import Application, Order
from fallow_yarn.embedded.listener import free_ports
from fallow_yarn.embedded.node import NAME, Config
from fallow_yarn.embedded.resource_manager import PORTS, ResourceManager, Store
from fallow_yarn.embedded.settings import Settings
from fallow_yarn.model.size import Size
from fallow_yarn.nm.daemons import MAIN_CLASS

READY_SECONDS: Final = 20.0
POLL_SECONDS: Final = 0.01


class EmbeddedYarnError(Exception):
    """The embedded YARN does not start, or a part of it has ended unexpectedly."""


class NodeProcess:
    """A NodeManager: its name here ("nm1"), its name for the ResourceManager, and its process while it runs."""

    def __init__(self, name: str, config: Config) -> None:
        self.name = name
        self.config = config
        self.node_id = f"{NAME}:{config.port}"
        self.web_address = f"{NAME}:{config.web_port}"
        self.started_ms = 0
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """Its output, over all its starts."""
        return Path(self.config.folder) / "log.txt"

    @property
    def pid(self) -> int:
        """The process id; EmbeddedYarnError while it is not running."""
        if self.process is None or self.process.poll() is not None:
            said = self.log.read_text(errors="replace")[-2000:] if self.log.exists() else ""
            raise EmbeddedYarnError(f"NodeManager {self.name} is not running; the end of {self.log}:\n{said}")
        return self.process.pid

    def start(self) -> None:
        """Start it; it gets ready later."""
        if self.process is not None and self.process.poll() is None:
            raise EmbeddedYarnError(f"NodeManager {self.name} runs already: end it first")
        Path(self.config.folder).mkdir(parents=True, exist_ok=True)
        self.started_ms = round(time.time() * 1000)
        # A session of its own: Ctrl-C in a terminal is for the owner.
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603 - itself
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "fallow_yarn.embedded.node",
                    MAIN_CLASS.decode(),
                    json.dumps(asdict(self.config)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, process_guard.MARK: self.config.mark},
                start_new_session=True,
            )

    def end(self, signal_number: int = signal.SIGKILL, seconds: float = 10.0) -> None:
        """Send a signal and wait for the end. By SIGKILL its containers live on; by SIGTERM they end first."""
        if self.process is not None:
            self.process.send_signal(signal_number)
            self.process.wait(seconds)
            self.process = None


class EmbeddedYarn:
    """A ResourceManager and NodeManagers on loopback; a context manager that starts and stops them.

    All files are below `folder`. The ResourceManager runs in threads of this process, each NodeManager is a process of
    its own, and each container is a tree of processes below it. All processes end with this one, even if it is killed.
    Starting has a time-out: an EmbeddedYarnError says what is missing.

    `rm` is the active ResourceManager; `rms` are all ("rm1", and with `ha` "rm2"), `nodes` the NodeManagers by name.
    """

    def __init__(self, folder: Path, settings: Settings | None = None) -> None:
        self.folder = folder.resolve()
        self.settings = settings = settings or Settings()
        self._store = Store()
        self._guard: subprocess.Popen[bytes] | None = None
        names = ("rm1", "rm2") if settings.ha else ("rm1",)
        ports = free_ports(PORTS * len(names) + 2 * settings.nodes)
        self.rms: dict[str, ResourceManager] = {}
        for name in names:
            own, ports = ports[:PORTS], ports[PORTS:]
            self.rms[name] = ResourceManager(name, own, settings, self._store, self._active_web)
        trackers = tuple(int(rm.tracker_address.rpartition(":")[2]) for rm in self.rms.values())
        self.nodes: dict[str, NodeProcess] = {}
        for i in range(settings.nodes):
            name = f"nm{i + 1}"
            config = Config(
                folder=str(self.folder / name),
                mark=str(self.folder),
                port=ports[2 * i],
                web_port=ports[2 * i + 1],
                trackers=trackers,
                memory_mb=settings.memory_mb,
                vcores=settings.vcores,
                sigkill_seconds=settings.sigkill_seconds,
                custom=dict(settings.custom.get(name, {})),
                version=settings.version,
            )
            self.nodes[name] = NodeProcess(name, config)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def rm(self) -> ResourceManager:
        """The active ResourceManager; the first one if none is."""
        active = [rm for rm in self.rms.values() if rm.is_active]
        return (active or list(self.rms.values()))[0]

    def start(self) -> None:
        """Start all; return when the scheduler has every NodeManager. A failure stops everything."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._guard = subprocess.Popen(  # noqa: S603 - itself
            [sys.executable, "-I", "-S", process_guard.__file__, str(self.folder)],
            stdin=subprocess.PIPE,
            env={"PATH": os.defpath},
            start_new_session=True,
        )
        try:
            for node in self.nodes.values():
                node.start()
            for i, rm in enumerate(self.rms.values()):
                rm.start(standby=i > 0)
            self.wait_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything, including containers. Safe to repeat."""
        for rm in self.rms.values():
            rm.stop()
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.close()
            code = self._guard.wait()
            self._guard = None
            for node in self.nodes.values():
                node.end()
            if code != 0 and not process_guard.end_all(str(self.folder)):
                raise EmbeddedYarnError(f"processes of the embedded YARN in {self.folder} do not end")

    def submit(
        self,
        *,
        containers: int,
        memory_mb: int,
        vcores: int,
        command: str,
        attempts: int = 1,
        name: str = "embedded",
        user: str = "tester",
        priority: int = 0,
        master_memory_mb: int = 256,
        master_attempts: int = 2,
    ) -> Application:
        """A new application at the end of the queue, whose containers each run a shell command; see `Order`."""
        order = Order(
            containers=containers,
            size=Size(memory_mb, vcores),
            command=command,
            attempts=attempts,
            name=name,
            user=user,
            priority=priority,
            master_size=Size(master_memory_mb, 1),
            master_attempts=master_attempts,
        )
        return self.rm.submit(order)

    def restart_rm(self) -> None:
        """Kill the active ResourceManager and start it again; return when it has all NodeManagers that run."""
        rm = self.rm
        rm.stop()
        rm.start(standby=False)
        self.wait_ready()

    def fail_over(self) -> None:
        """Make the other ResourceManager the active one; return when it has all NodeManagers that run."""
        if len(self.rms) < 2:
            raise EmbeddedYarnError("there is one ResourceManager only: set Settings.ha")
        active = self.rm
        other = next(rm for rm in self.rms.values() if rm is not active)
        active.become_standby()
        other.become_active()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Return when the scheduler has every NodeManager that was not killed."""
        waited_for = [node for node in self.nodes.values() if node.process is not None]
        self._wait(lambda: all(self._is_back(node) for node in waited_for), "the NodeManagers")

    def _is_back(self, node: NodeProcess) -> bool:
        _ = node.pid
        with self._store.lock:
            scheduler = self.rm.scheduler
            found = None if scheduler is None else scheduler.nodes.get(node.node_id)
            return found is not None and found.is_running and found.health_ms >= node.started_ms

    def _wait(self, test: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + READY_SECONDS
        while not test():
            if time.monotonic() > end:
                raise EmbeddedYarnError(f"waited {READY_SECONDS:.0f} s for {what}")
            time.sleep(POLL_SECONDS)

    def _active_web(self) -> str | None:
        return next((rm.web_address for rm in self.rms.values() if rm.is_active), None)
