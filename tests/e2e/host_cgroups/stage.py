"""An embedded YARN in a control group of its own, an online load beside it, and a Fallow that throttles."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fallow_core.api.control_socket import ask
from fallow_core.cli.demo import host
from fallow_core.cli.demo.load import OnlineLoad
from fallow_core.errors import ControlError
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_yarn.embedded.cluster import EmbeddedYarn
from fallow_yarn.embedded.settings import Settings

COMMAND = str(Path(sys.executable).with_name("fallow"))
FILES = ("cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us")
CPUS = os.cpu_count() or 1
HOG = f"exec {sys.executable} -ISc 'while True: pass'"


def until(test: Callable[[], object], what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.1)


class Stage:
    """As long as it is open, `home` is the group of the NodeManager and its containers.

    `qos` counts from Fallow's next start. CPU in use is that of this process and all that runs below it, and the online
    load has the largest weight there is, so that nothing else on this host plays a part.
    """

    def __init__(self, hierarchy: Hierarchy, folder: Path, **qos: object) -> None:
        self.hierarchy = hierarchy
        self.folder = folder
        self.home = f"fallow-e2e-{os.getpid()}"
        self.online = f"{self.home}-online"
        self.node = f"e2e-{os.getpid()}"
        self.own = f"{self.home}/fallow.{self.node}"
        self.log = folder / "log.txt"
        self.load: OnlineLoad
        self.yarn: EmbeddedYarn
        self.fallow: subprocess.Popen[bytes] | None = None
        self.qos = qos
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with self._stack:
            sockets = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="fallow-", dir="/tmp"))
            self.socket = Path(sockets) / "control"
            for group, shares in ((self.home, "512"), (self.online, "262144")):
                self.hierarchy.make(group, "cpu.shares")
                self._stack.callback(self._remove, group)
                self.hierarchy.write(group, "cpu.shares", shares)
            self.load = self._stack.enter_context(OnlineLoad(self.folder))
            for pid in children(os.getpid()):
                self.hierarchy.move(pid, self.online)
            self.yarn = EmbeddedYarn(self.folder / "yarn", Settings(vcores=4 * CPUS))
            self._stack.enter_context(self.yarn)
            self.hierarchy.move(self.yarn.nodes["nm1"].pid, self.home)
            self._stack.callback(lambda: self.end(signal.SIGKILL))
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def hogs(self, count: int) -> None:
        """So many containers that use all CPU they get; return when their processes are there."""
        self.yarn.submit(containers=count, memory_mb=128, vcores=1, command=HOG)
        until(lambda: sum(b"while True" in command(pid) for pid in self.batch()) >= count, "the containers")

    def batch(self) -> list[int]:
        """The processes of the NodeManager and its containers."""
        groups = [self.home, *self.hierarchy.below(self.home)]
        return [pid for group in groups for pid in self.hierarchy.processes(group)]

    def start(self, *, whole_host: bool = False) -> None:
        """Start Fallow, and return when it answers. With `whole_host` all on this host counts, as it does for users."""
        own = [sys.executable, "-m", host.__name__, str(self.folder), str(os.getpid())]
        self._configure()
        program = [COMMAND, "run", "-c", str(self.folder)] if whole_host else own
        with self.log.open("ab") as log:
            self.fallow = subprocess.Popen(program, stdout=log, stderr=log, start_new_session=True)

        def answers() -> bool:
            assert self.fallow is not None
            assert self.fallow.poll() is None, self.log.read_text()
            with suppress(ControlError):
                return bool(ask(self.socket, {"request": "status"}))
            return False

        until(answers, "an answer of fallow run")

    def end(self, number: int) -> int | None:
        """Send Fallow a signal, and wait for its end."""
        if self.fallow is None:
            return None
        self.fallow.send_signal(number)
        code = self.fallow.wait(40)
        self.fallow = None
        return code

    def restore(self) -> str:
        """`fallow restore`, which must succeed; what it says."""
        command = [COMMAND, "restore", "-c", str(self.folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
        assert done.returncode == 0, (done.stdout, done.stderr, self.log.read_text())
        return done.stdout

    def throttle(self) -> dict[str, Any]:
        """What `fallow explain` says of throttling."""
        found: dict[str, Any] = ask(self.socket, {"request": "explain"})["throttle"]
        return found

    def quota_cores(self, group: str | None = None) -> float | None:
        """The limit of a group as the kernel says it; by default that of Fallow's own group."""
        group = self.own if group is None else group
        try:
            quota = int(self.hierarchy.read(group, "cpu.cfs_quota_us"))
        except FileNotFoundError:
            return None
        return None if quota < 0 else quota / int(self.hierarchy.read(group, "cpu.cfs_period_us"))

    def control_files(self) -> dict[str, str]:
        """Every CPU file of every group from `home` on, and which group each process of batch is in."""
        groups = [self.home, *self.hierarchy.below(self.home)]
        values = {f"/{group}/{name}": self.hierarchy.read(group, name) for group in groups for name in FILES}
        return values | {str(pid): self.hierarchy.group_of(pid) for pid in self.batch()}

    def cpu_seconds(self, pids: list[int]) -> float:
        """What processes have used so far, in user and system mode."""
        ticks = 0
        for pid in pids:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def _configure(self) -> None:
        core = {
            "apiVersion": "fallow/v1",
            "kind": "Fallow",
            "stateDir": str(self.folder / "state"),
            "controlSocket": str(self.socket),
            "metrics": "off",
            "node": {"name": self.node},
            "sampleInterval": "500ms",
            "capacity": {"cpu": {"watermark": "95%"}, "memory": {"watermark": "95%"}},
            "publishing": {"interval": "1s", "reportInterval": "1s"},
            "qos": {"cpuEvict": {"mode": "off"}, "memoryEvict": {"mode": "off"}, **self.qos},
        }
        rm = self.yarn.rm
        addresses = {"host": "127.0.0.1", "client": rm.client_address, "admin": rm.admin_address, "web": rm.web_address}
        cluster = {
            "apiVersion": "fallow/v1",
            "kind": "Cluster",
            "metadata": {"name": "e2e"},
            "plugin": "yarn",
            "spec": {"resourceManager": addresses, "user": "tester", "vcoreMilli": 500},
        }
        (self.folder / "clusters.d").mkdir(exist_ok=True)
        (self.folder / "fallow.yaml").write_text(json.dumps(core))
        (self.folder / "clusters.d" / "e2e.yaml").write_text(json.dumps(cluster))

    def _remove(self, top: str) -> None:
        """With what is left below it after a failure."""

        def gone() -> bool:
            for group in reversed([top, *self.hierarchy.below(top)]):
                with suppress(OSError):
                    self.hierarchy.remove(group)
            return self.hierarchy.identity(top) is None

        until(gone, "the end of the group's processes")


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def children(pid: int) -> list[int]:
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
