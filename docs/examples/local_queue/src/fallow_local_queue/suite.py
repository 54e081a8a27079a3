"""The conformance suite of this plugin: a queue of its own, and how the suite drives it."""

import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fallow_hookspecs import Node, PluginError, Resources
from fallow_hookspecs.testing import AgentSuite, ControllerSuite, Framework
from fallow_hookspecs.testing.calling import wait_until
from fallow_local_queue.client import ask
from fallow_local_queue.entry import PLUGIN
from fallow_local_queue.plugin import FRAMEWORK_NODE

FULL = Resources(cpu_milli=4000, memory_bytes=4 << 30)


class LocalQueueFramework(Framework):
    """A queue in a process of its own, with its socket and all else below `folder`."""

    plugin = PLUGIN
    nodes = (Node(name="here", addresses=("localhost", "127.0.0.1")),)
    request = Resources(cpu_milli=500, memory_bytes=256 << 20)

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket, self._hidden = folder / "queue.sock", folder / "hidden.sock"
        self._rounds = count(1)
        self._round = 0
        self.spec: Mapping[str, Any] = {"socket": str(self._socket)}
        size = (str(FULL.cpu_milli), str(FULL.memory_bytes))
        command = [sys.executable, "-m", "fallow_local_queue.server", str(self._socket), *size]
        self._process = subprocess.Popen(command)
        try:
            wait_until(self._answers, self.patience_seconds, "the queue answers")
        except AssertionError:
            self.close()
            raise

    def close(self) -> None:
        """End the queue."""
        self.mend()
        self._process.terminate()
        self._process.wait()

    def mend(self) -> None:
        """Show the socket again, and let the queue go on."""
        if self._hidden.exists():
            self._hidden.rename(self._socket)
        self._process.send_signal(signal.SIGCONT)

    def reset(self) -> None:
        """Tell every job of the round to end."""
        (self._folder / f"round-{self._round}").touch()
        self._round = next(self._rounds)
        self._resize(FULL)
        wait_until(lambda: not self._ask({"do": "state"})["jobs"], self.patience_seconds, "no job is left")

    def start_tasks(self, count: int, *, stubborn: bool = False) -> tuple[str, ...]:
        """Jobs that run until a file is there."""
        before = {job["id"] for job in self._ask({"do": "state"})["jobs"]}
        for _ in range(count):
            self._submit(self.request, stubborn)
        started = [job["id"] for job in self._running() if job["id"] not in before]
        wait_until(lambda: set(started) <= self._begun(), self.patience_seconds, f"{started} have begun")
        return tuple(started)

    def finish(self, task_ids: Collection[str]) -> None:
        """Tell these to end."""
        pids = {job["id"]: job["pid"] for job in self._running()}
        for task_id in task_ids:
            (self._folder / f"end-{pids[task_id]}").touch()
        wait_until(lambda: self.tasks().isdisjoint(task_ids), self.patience_seconds, f"{task_ids} have ended")

    def tasks(self) -> frozenset[str]:
        """The jobs that run."""
        return frozenset(job["id"] for job in self._running())

    def sizes(self) -> Mapping[str, Resources]:
        """The size of the queue."""
        state = self._ask({"do": "state"})
        return {FRAMEWORK_NODE: Resources(state["cpu_milli"], state["memory_bytes"])}

    def allocated(self) -> Mapping[str, Resources]:
        """What the jobs that run have asked for."""
        jobs = self._running()
        cpu_milli = sum(job["cpu_milli"] for job in jobs)
        return {FRAMEWORK_NODE: Resources(cpu_milli, sum(job["memory_bytes"] for job in jobs))}

    def queue_tasks(self, count: int) -> Resources:
        """Jobs that need all of the queue, behind one that has a part of it."""
        self.start_tasks(1)
        for _ in range(count):
            self._submit(FULL, stubborn=False)
        return Resources(count * FULL.cpu_milli, count * FULL.memory_bytes)

    def told(self, task_id: str) -> str:
        """What the queue was told of the end of a job."""
        return str(self._ask({"do": "state"})["told"].get(task_id, ""))

    def cut_off(self) -> None:
        """Hide the socket."""
        self._socket.rename(self._hidden)

    def hang(self) -> None:
        """Stop the queue."""
        self._process.send_signal(signal.SIGSTOP)

    def _submit(self, size: Resources, stubborn: bool) -> None:
        trap = "trap '' TERM; " if stubborn else ""
        wait = f"while [ ! -e round-{self._round} ] && [ ! -e end-$$ ]; do sleep 0.02; done"
        command = f"cd {self._folder}; {trap}touch begun-$$; {wait}"
        self._ask({"do": "submit", "command": command, "cpu_milli": size.cpu_milli, "memory_bytes": size.memory_bytes})

    def _resize(self, size: Resources) -> None:
        self._ask({"do": "resize", "cpu_milli": size.cpu_milli, "memory_bytes": size.memory_bytes})

    def _running(self) -> list[dict[str, Any]]:
        return [job for job in self._ask({"do": "state"})["jobs"] if job["pid"] is not None]

    def _begun(self) -> frozenset[str]:
        """The jobs whose command runs."""
        return frozenset(job["id"] for job in self._running() if (self._folder / f"begun-{job['pid']}").exists())

    def _answers(self) -> bool:
        try:
            self._ask({"do": "state"})
        except PluginError:
            return False
        return True

    def _ask(self, request: dict[str, Any]) -> Any:
        path = self._hidden if self._hidden.exists() else self._socket
        return ask(str(path), request, self.timeout_seconds)


@pytest.fixture(scope="module")
def fallow_framework(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Framework]:
    """The queue that the suites try; in a folder with a short name, since paths of sockets are short."""
    framework = LocalQueueFramework(tmp_path_factory.mktemp("queue"))
    yield framework
    framework.close()


class TestController(ControllerSuite):
    """The plugin as a controller."""


class TestAgent(AgentSuite):
    """The plugin as an agent."""
