"""The queue of docs/examples/copilot_go, built and run, as a framework that the suite can bring into its states."""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO

from tests.integration.copilot_stage import ROOT, wait_for

from fallow_core.plugins.copilot import PLUGIN
from fallow_hookspecs import Node, Resources
from fallow_hookspecs.testing import Framework

EXAMPLE = ROOT / "docs" / "examples" / "copilot_go"
PROTO = ROOT / "hookspecs" / "src" / "fallow_hookspecs" / "copilot" / "v0"
GO = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
TASK = Resources(500, 64 << 20)
FULL = Resources(8 * TASK.cpu_milli, 8 * TASK.memory_bytes)
SLEEP = "exec sleep 600"
STUBBORN = "trap '' TERM; while :; do sleep 600 & wait; done"
NODE = Node(name="worker-1", addresses=("worker-1.example.com",))
QUEUE_NODE = "local"


def built(folder: Path) -> Path:
    """The program, made in a copy of its folder."""
    assert GO is not None
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("copilotpb"))
    environment = {
        **os.environ,
        "PATH": f"{Path(GO).parent}{os.pathsep}{os.environ['PATH']}",
        "PROTOC": f"{sys.executable} -m grpc_tools.protoc",
    }
    for command in (["sh", "generate.sh", str(PROTO)], [GO, "vet", "./..."], [GO, "build", "-o", "copilot_go", "."]):
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "copilot_go"


class GoQueue(Framework):
    """The program in a process of its own. What is true of it is asked in its shell, and read below /proc."""

    plugin = PLUGIN
    nodes = (NODE,)
    request = TASK

    def __init__(self, binary: Path, socket: Path, *flags: str) -> None:
        self.socket = socket
        self.spec = {"socket": str(socket)}
        command = [str(binary), "-socket", str(socket), "-node", NODE.addresses[0], *flags]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._line() == f"serving at {socket}"

    def ask(self, command: str) -> str:
        """A line for the shell, and its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self._line()

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send it a signal; its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(20)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        return code

    def mend(self) -> None:
        pass

    def reset(self) -> None:
        self.ask("clear")
        self.finish(self.tasks())
        self.ask(f"resize {FULL.cpu_milli} {FULL.memory_bytes}")

    def start_tasks(self, count: int, *, stubborn: bool = False) -> tuple[str, ...]:
        before = self.tasks()
        self.ask(f"run {count} {STUBBORN if stubborn else SLEEP}")
        started = sorted(self.tasks() - before, key=lambda task_id: int(task_id.partition("-")[2]))
        assert len(started) == count
        if stubborn:
            time.sleep(0.2)  # until the shell has come to its trap
        return tuple(started)

    def finish(self, task_ids: Collection[str]) -> None:
        def gone() -> bool:
            # Again and again: a task that has forked but not yet executed its shell does not show its name.
            for task_id, pid in self._processes().items():
                if task_id in task_ids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            return not self.tasks() & set(task_ids)

        wait_for(gone)

    def tasks(self) -> frozenset[str]:
        return frozenset(self.ask("tasks").split())

    def sizes(self) -> Mapping[str, Resources]:
        cpu_milli, memory_bytes = map(int, self.ask("size").split())
        return {QUEUE_NODE: Resources(cpu_milli, memory_bytes)}

    def allocated(self) -> Mapping[str, Resources]:
        count = len(self._processes())
        return {QUEUE_NODE: Resources(count * TASK.cpu_milli, count * TASK.memory_bytes)}

    def queue_tasks(self, count: int) -> Resources:
        self.start_tasks(FULL.cpu_milli // TASK.cpu_milli - len(self.tasks()))
        self.ask(f"run {count} {SLEEP}")
        return Resources(count * TASK.cpu_milli, count * TASK.memory_bytes)

    def _line(self) -> str:
        stream: IO[str] | None = self.process.stdout
        assert stream is not None
        assert select.select([stream], [], [], 20)[0], "it says nothing"
        return stream.readline().rstrip("\n")

    def _processes(self) -> dict[str, int]:
        """The program's children by the task that they are, as their environment says."""
        found = {}
        children = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        for pid in (int(word) for file in children for word in file.read_text().split()):
            with contextlib.suppress(OSError):
                variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                for name, _, value in (variable.partition(b"=") for variable in variables):
                    if name == b"TASK_ID":
                        found[value.decode()] = pid
        return found
