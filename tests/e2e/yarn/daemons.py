"""The daemons of a cluster, each a child process."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.yarn import config, rest
from tests.e2e.yarn.jars import Jars, Kind

MAIN: dict[Kind, str] = {
    "rm": "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
    "nm": "org.apache.hadoop.yarn.server.nodemanager.NodeManager",
}
HEAP_MB: dict[Kind, int] = {"rm": 128, "nm": 64}


class ClusterError(Exception):
    """A daemon ended by itself, or does not do what it was started for."""


class Daemon:
    """One daemon: its folder and, while it runs, its process. All else is known before its first start."""

    def __init__(self, name: str, kind: Kind, home: Path) -> None:
        self.name = name
        self.kind = kind
        self.home = home
        self.heap_mb = HEAP_MB[kind]
        self.options: tuple[str, ...] = ()
        self.process: subprocess.Popen[bytes] | None = None
        self.started_ms = 0

    @property
    def log(self) -> Path:
        """What it has written, over all its starts."""
        return self.home / "log.txt"

    @property
    def pid(self) -> int:
        """The process id; ClusterError while the daemon is not running."""
        if self.process is None or self.process.poll() is not None:
            end = self.log.read_text(errors="replace")[-2000:] if self.log.exists() else ""
            raise ClusterError(f"{self.name} is not running; the end of {self.log}:\n{end}")
        return self.process.pid

    def start(self, jars: Jars) -> None:
        """Start it, which must not be running; it is not ready yet."""
        if self.process is not None:
            raise ClusterError(f"{self.name} was started already: end it first")
        options = [f"-Djava.io.tmpdir={self.home}", "-Dlaunch.attached=true", *self.options]
        conf = self.home / "conf"
        command = jars.command(self.kind, conf, MAIN[self.kind], heap_mb=self.heap_mb, options=options)
        java_home = Path(shutil.which("java") or "java").resolve().parent.parent
        self.started_ms = int(time.time() * 1000)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.home,
                env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "JAVA_HOME": str(java_home)},
                start_new_session=True,
            )

    def end(self, signal_number: int = signal.SIGKILL, seconds: float = 30) -> None:
        """Send a signal and wait for the end. A child's pid is not given away before it was waited for."""
        if self.process is not None:
            self.process.send_signal(signal_number)
            self.process.wait(seconds)
            if self.process.stdin is not None:
                self.process.stdin.close()
            self.process = None


class ResourceManager(Daemon):
    """The ResourceManager and where it listens, each "127.0.0.1:port"."""

    def __init__(self, home: Path, ports: Sequence[int]) -> None:
        super().__init__("rm", "rm", home)
        addresses = [f"127.0.0.1:{port}" for port in ports]
        self.client, self.admin, self.scheduler, self.tracker, self.web = addresses

    def properties(self) -> dict[str, str]:
        """What every other daemon and application must know of it."""
        return config.common(
            client=self.client, admin=self.admin, scheduler=self.scheduler, tracker=self.tracker, web=self.web
        )


class NodeManager(Daemon):
    """A NodeManager, where it listens, and its id in the words of the ResourceManager."""

    def __init__(self, name: str, home: Path, ports: Sequence[int]) -> None:
        super().__init__(name, "nm", home)
        self.ipc, self.localizer, self.web = [f"127.0.0.1:{port}" for port in ports]
        self.node_id = ""

    def is_back(self, nodes: dict[str, rest.Node]) -> bool:
        """Whether the scheduler has this very process: its health was seen after it was started."""
        for node in nodes.values():
            if node.node_id.rpartition(":")[2] == self.ipc.rpartition(":")[2]:
                self.node_id = node.node_id
                return node.state == "RUNNING" and node.total_mb != 0 and node.health_time_ms >= self.started_ms
        return False
