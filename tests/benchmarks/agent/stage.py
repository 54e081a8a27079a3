"""A stage for the agent on this host's control groups, v1: tasks in groups of their own, and the agent beside them.

Everything is below one group with a weight above that of all else on this host, and ends with the stage. CPU in use is
that of this group: what else this host does plays next to no part.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fallow_core.api.control_socket import ask
from fallow_core.errors import NotRunningError

CPU, ACCOUNTING, MEMORY = CONTROLLERS = tuple(Path("/sys/fs/cgroup") / name for name in ("cpu", "cpuacct", "memory"))

LARGEST_WEIGHT, AGENT_WEIGHT = "262144", "10240"
"""The agent's is that of its unit, ten times the usual one; online work and batch that nobody manages have that."""


def start_ticks(pid: int) -> int:
    """When a process started, on the kernel's clock."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads of a process, in nanoseconds' precision."""
    threads = list(Path(f"/proc/{pid}/task").iterdir())
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


class Stage:
    """`top` is the group of all; `group` is the framework's, where tasks have groups right below.

    `settings` are those of fallow.yaml. `aside` is a group beside `top`, of the same weight.
    """

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.top = f"fallow-bench-{os.getpid()}"
        self.group = f"{self.top}/batch"
        self.aside = f"{self.top}-aside"
        self.tasks: dict[str, subprocess.Popen[bytes]] = {}
        self.agent: subprocess.Popen[bytes] | None = None
        core = {
            "apiVersion": "fallow/v1",
            "kind": "Fallow",
            "stateDir": "state",
            "controlSocket": "s",
            "metrics": "off",
            "node": {"name": "bench"},
            **settings,
        }
        (folder / "fallow.yaml").write_text(json.dumps(core))

    def __enter__(self) -> Self:
        for root in CONTROLLERS:
            for name in ("batch", "online", "agent"):
                (root / self.top / name).mkdir(parents=True)
        (CPU / self.aside).mkdir()
        weights = {self.top: LARGEST_WEIGHT, self.aside: LARGEST_WEIGHT, f"{self.top}/agent": AGENT_WEIGHT}
        for group, weight in weights.items():
            (CPU / group / "cpu.shares").write_text(weight)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        for name in list(self.tasks):
            self.end(name)
        for root in CONTROLLERS:
            for path in sorted((root / self.top).rglob("*/"), key=lambda path: -len(path.parts)):
                remove(path)
            remove(root / self.top)
        remove(CPU / self.aside)

    def add(self, name: str, *command: str, **more: Any) -> "subprocess.Popen[bytes]":
        """Start a task in a group of its own."""
        folders = [root / self.group / name for root in CONTROLLERS]
        for folder in folders:
            folder.mkdir()
        process = subprocess.Popen(command or ("/bin/sleep", "3600"), start_new_session=True, **more)
        for folder in folders:
            (folder / "cgroup.procs").write_text(f"{process.pid}")
        self.tasks[name] = process
        return process

    def end(self, name: str) -> None:
        """Terminate a task, and remove its groups as its framework would."""
        process = self.tasks.pop(name)
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()
        for root in CONTROLLERS:
            remove(root / self.group / name)

    def start(self, tasks: int | None = None, *, still: bool = False) -> int:
        """Start an agent, and wait until it knows all tasks; its pid. See the driver for `still`."""
        command = [sys.executable, "-m", "tests.benchmarks.agent.driver", str(self.folder), self.top]
        command += ["still"] if still else []
        count = len(self.tasks) if tasks is None else tasks
        with (self.folder / "log").open("ab") as log:
            self.agent = subprocess.Popen(command, stderr=log)
        self.put(self.agent.pid, "agent")
        until(lambda: len(self.ask("tasks")["tasks"]) == count, "the agent knows all tasks")
        return self.agent.pid

    def put(self, pid: int, name: str) -> None:
        """Put a process into the group `online`, `agent` or `batch`; 0 is this one."""
        for root in CONTROLLERS:
            (root / self.top / name / "cgroup.procs").write_text(f"{pid}")

    @contextmanager
    def from_aside(self) -> Iterator[None]:
        """Have the calling process run there: who measures must not wait for a CPU longer than what is measured."""
        (CPU / self.aside / "cgroup.procs").write_text("0")
        try:
            yield
        finally:
            (CPU / "cgroup.procs").write_text("0")

    def ask(self, request: str) -> dict[str, Any]:
        """What the agent answers; nothing while it does not serve yet."""
        try:
            return ask(self.folder / "s", {"request": request})
        except NotRunningError:
            return {"tasks": []}

    def stop(self) -> None:
        """End the agent."""
        if self.agent is not None:
            self.agent.send_signal(signal.SIGTERM)
            self.agent.wait(20)
            self.agent = None

    def read(self, name: str, file: str, root: Path = CPU) -> str:
        """A file of a task's group, or with an empty name of the framework's."""
        return (root / self.group / name / file).read_text()


def remove(path: Path) -> None:
    """Remove a group, which the last process may just be leaving."""
    for _ in range(100):
        try:
            path.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.01)


def until(test: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not test():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds} s: {what}")
        time.sleep(0.05)


@contextmanager
def staged(folder: Path, count: int, **settings: Any) -> Iterator[Stage]:
    """A stage with so many tasks that sleep."""
    with Stage(folder, **settings) as stage:
        for number in range(count):
            stage.add(f"t{number:04}")
        yield stage
