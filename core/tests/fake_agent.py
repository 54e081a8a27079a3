"""A node for tests of the agent: its tasks and processes are what a test says, and its plugin lives in memory.

The processes have pids that no kernel gives, so that nothing real is hit; a test of signals gives real ones.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
from core.tests.fake_framework import InlineLane, cluster_config, plugin_of
from core.tests.qos_values import GIB, MEMORY_CAPACITY, NOW, node_view

from fallow_core.agent.eviction.evictor import Evictor
from fallow_core.model.listed import ListedTasks
from fallow_core.model.qos_policy import MemoryEvictPolicy, QosPolicy, StrategyMode, TerminationPolicy
from fallow_core.model.task import TaskKey
from fallow_core.node.procfs import PROC_ROOT, ProcessStat, read_process
from fallow_core.node.task_usage import BatchPass
from fallow_core.plugins import instance as instance_module
from fallow_core.plugins.instance import PluginInstance
from fallow_core.qos.relief import NodeRelief
from fallow_core.state.terminations_file import TerminationsFile
from fallow_hookspecs import (
    Application,
    Finding,
    KillAnswer,
    KillOrder,
    KillOutcome,
    KillResult,
    Node,
    Process,
    Resources,
    Task,
    TaskRole,
    TaskState,
    hookimpl,
)

CLUSTER = "alpha/a"
HOST = Node(name="n1")
POLICY = QosPolicy(
    memory_evict=MemoryEvictPolicy(
        mode=StrategyMode.ENFORCE, threshold_percent=90, lower_percent=85, cool_down_seconds=4
    ),
    termination=TerminationPolicy(grace_seconds=30, margin_seconds=10, repeat_seconds=5, back_off_seconds=60),
)
THROTTLED = NodeRelief(enforced_since=NOW - 3600)
"""Throttling has had its time long ago, and can free nothing."""
FIRST_PID = 5_000_000  # above the largest pid_max


def task(name: str, *processes: Process, age: float | None = 100.0, master: bool = False, **more: Any) -> Task:
    """A running task of one core and one GiB."""
    values: dict[str, Any] = {
        "application_id": "app",
        "framework_node": "nm",
        "state": TaskState.RUNNING,
        "requested": Resources(1000, GIB),
    }
    role = TaskRole.MASTER if master else TaskRole.WORKER
    return Task(id=name, role=role, age_seconds=age, processes=processes, **(values | more))


def key(name: str) -> TaskKey:
    return TaskKey(CLUSTER, name)


@contextmanager
def child(*command: str) -> Iterator[Popen[bytes]]:
    """A real process, for as long as the test needs it; it has said something when this starts."""
    with Popen(command or ("sh", "-c", "echo; exec sleep 60"), stdout=-1) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


DEAF = ("sh", "-c", "trap '' TERM; echo; while :; do sleep 1; done")
"""A process that does not heed SIGTERM."""


def identity(process: "Popen[bytes]") -> Process:
    """Who a real process is."""
    stat = read_process(PROC_ROOT, process.pid)
    assert stat is not None
    return stat.process


class Killer:
    """An instance that only terminates tasks. `result`: what it says of each; `fails` is raised; `seen` is called
    first.
    """

    def __init__(self) -> None:
        self.orders: list[KillOrder] = []
        self.result = KillResult.TERMINATING
        self.reason = ""
        self.fails: Exception | None = None
        self.seen: Callable[[KillOrder], object] = lambda order: None

    @hookimpl
    def kill_tasks(self, order: KillOrder) -> KillOutcome:
        self.seen(order)
        self.orders.append(order)
        if self.fails is not None:
            raise self.fails
        answer = KillAnswer(result=self.result, reason=self.reason)
        return KillOutcome(answers=dict.fromkeys(order.task_ids, answer))

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        return ()

    def close(self) -> None:
        pass

    @property
    def given(self) -> list[tuple[tuple[str, ...], bool]]:
        """The orders: which tasks, and whether by force."""
        return [(order.task_ids, order.force) for order in self.orders]


class Host:
    """One node and its agent, which can be killed and started anew."""

    def __init__(self, state_dir: Path, monkeypatch: pytest.MonkeyPatch, policy: QosPolicy = POLICY) -> None:
        self.state_dir = state_dir
        self.policy = policy
        self.now = NOW
        self.boot_id = "boot"
        self.used = 0
        self.rows: dict[str, tuple[int, int]] = {}  # memory allocated and floor, by cluster
        self.complete = True
        self.restored: frozenset[str] = frozenset()
        self.tasks: dict[str, Task] = {}
        self.stats: dict[int, ProcessStat] = {}
        self.private: dict[Process, int] = {}
        self.strangers: frozenset[Process] = frozenset()
        self.applications: tuple[Application, ...] = ()
        self.killer = Killer()
        self.held: dict[str, list[Any] | None] = {}
        monkeypatch.setattr(instance_module, "Lane", self._lane)
        self.instance = PluginInstance(plugin_of(lambda _: self.killer), cluster_config("a"), clock=lambda: self.now)
        self.instances = {CLUSTER: self.instance}
        self.start()

    def _lane(self, name: str, clock: Callable[[], float], wake: Callable[[], None] | None = None) -> InlineLane:
        return InlineLane(name, clock, wake, self.held)

    def start(self) -> Evictor:
        """A new process, with what the one before left on the disk."""
        self.evictor = Evictor(HOST, self.policy, TerminationsFile(self.state_dir, boot_id=self.boot_id), self.now)
        self.evictor.relief = THROTTLED
        return self.evictor

    def add(self, name: str, gib: float = 1, process: Process | None = None, **more: Any) -> Process:
        """A task with one process, which uses so much memory."""
        process = process or Process(FIRST_PID + len(self.stats), 1)
        self.tasks[name] = task(name, process, **more)
        self.stats[process.pid] = ProcessStat(process.pid, 1, process.start_ticks, 0, 0)
        self.private[process] = round(gib * GIB)
        return process

    def exits(self, name: str) -> None:
        """The processes of a task end; the framework lists it still."""
        for process in self.tasks[name].processes:
            self.stats.pop(process.pid, None)

    def remove(self, name: str) -> None:
        """A task is gone for good, with its memory."""
        self.exits(name)
        self.used -= sum(self.private[process] for process in self.tasks.pop(name).processes)

    def fill(self, percent: int) -> None:
        """So much of the node's memory is used."""
        self.used = MEMORY_CAPACITY * percent // 100

    def hold(self) -> None:
        """Calls that terminate tasks do not come back any more."""
        self.held["alpha/a acts"] = []

    def release(self) -> None:
        for job in self.held.pop("alpha/a acts") or ():
            job()

    def tick(self, seconds: float = 0.0) -> None:
        """Let time pass, and do one round; everything was measured and listed just now."""
        self.now += seconds
        lists = {CLUSTER: self.listed()}
        every = frozenset(stat.process for stat in self.stats.values()) - self.strangers
        batch = BatchPass(at=self.now, processes=dict(self.stats), batch=every, memory_bytes=dict(self.private))
        self.evictor.observe(batch, lists, {CLUSTER: self.applications})
        lent = max(MEMORY_CAPACITY - self.used, 0) if self.rows else MEMORY_CAPACITY
        view = node_view(now=self.now, memory_used=self.used, memory_batch=lent, rows=self.rows)
        self.evictor.act(view.sample, view.ledger, lists, self.instances, {}, self.now, restored=self.restored)
        self.evictor.save()

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.tick(1.0)

    def listed(self) -> ListedTasks:
        reason = "" if self.complete else "the NodeManager does not answer"
        return ListedTasks(
            tasks=tuple(self.tasks.values()), measured_at=self.now, complete=self.complete, reason=reason
        )

    def change(self, name: str, **changes: Any) -> None:
        self.tasks[name] = replace(self.tasks[name], **changes)

    def phases(self) -> dict[str, str]:
        return {termination.key.task_id: str(termination.phase) for termination in self.evictor.terminations.active}


def messages(records: Iterable[Any], name: str) -> list[str]:
    """The events of one name."""
    return [record.getMessage() for record in records if record.getMessage().split()[0] == name]
