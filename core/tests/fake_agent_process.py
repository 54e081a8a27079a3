"""An agent process that a test drives, with a framework of two tasks that live in memory."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.tests.fake_agent import FIRST_PID, Killer, task
from core.tests.fake_framework import GIB, Framework
from core.tests.fake_standalone import Build, FakeHost, config

from fallow_core.api.control_socket import Peer
from fallow_core.model.qos_policy import MemoryEvictPolicy, OverdraftEvictPolicy, QosPolicy, StrategyMode
from fallow_core.model.sample import NodeSample
from fallow_core.node.procfs import ProcessStat
from fallow_core.node.task_usage import BatchPass
from fallow_core.runtime.agent import AgentProcess
from fallow_core.state.node_grant import FILE_NAME, AccountGrant, NodeGrant, encoded
from fallow_hookspecs import KillOrder, KillOutcome, Process, TaskList, hookimpl

ROOT = Peer(uid=0, name="root")
GUEST = Peer(uid=4_000_000_000, name="guest")
OVERDRAFT = OverdraftEvictPolicy(mode=StrategyMode.ENFORCE, after_seconds=0.1, cool_down_seconds=0.1)
MEMORY = MemoryEvictPolicy(mode=StrategyMode.ENFORCE, threshold_percent=90, lower_percent=85, cool_down_seconds=0.1)
QOS = QosPolicy(overdraft_evict=OVERDRAFT, memory_evict=MEMORY)

PROCESSES = {"t1": Process(FIRST_PID, 1), "t2": Process(FIRST_PID + 1, 1)}


class Tasks(Framework):
    """A framework with two tasks of 1 GiB, which go when they are told to."""

    def __init__(self) -> None:
        super().__init__(time.monotonic)
        self.killer = Killer()
        tasks = tuple(task(name, process) for name, process in PROCESSES.items())
        self.listing = TaskList(tasks=tasks, age_seconds=0.0, complete=True)

    @hookimpl
    def kill_tasks(self, order: KillOrder) -> KillOutcome:
        left = tuple(each for each in self.listing.tasks if each.id not in order.task_ids)
        self.listing = replace(self.listing, tasks=left)
        return self.killer.kill_tasks(order)

    @property
    def ended(self) -> list[str]:
        return [task_id for order in self.killer.orders for task_id in order.task_ids]


def row(may_pay: int = GIB, ago: float = 0.0, lasts: float = 15.0, **more: Any) -> NodeGrant:
    """2 GiB are allocated, and 1 GiB is too much."""
    account = AccountGrant(allocated=2 * GIB, target=GIB, floor=0, may_pay=may_pay, **more)
    written = time.time() - ago
    return NodeGrant(
        node="n1", written_at=written, lasts_seconds=lasts, to_take_back=GIB, accounts={"alpha/etl": account}
    )


class TasksHost(FakeHost):
    """A host where each task's process uses 1 GiB."""

    def sample(self, daemons: Collection[Process] = ()) -> NodeSample:
        stats = {process.pid: ProcessStat(process.pid, 1, process.start_ticks, 0, 0) for process in PROCESSES.values()}
        every = frozenset(PROCESSES.values())
        private = dict.fromkeys(every, GIB)
        self._pass = BatchPass(at=self._clock(), processes=stats, batch=every, memory_bytes=private)
        return super().sample(daemons)


class Started:
    """An agent that a test drives."""

    def __init__(
        self,
        folder: Path,
        builds: Mapping[str, Build | Framework],
        clock: Callable[[], float] = time.monotonic,
        **changes: Any,
    ) -> None:
        self.settings = config(folder, builds, **changes)
        self.host = TasksHost(clock)
        self.agent = AgentProcess(self.settings, clock)
        self.agent.sampler = self.host

    def put(self, row: NodeGrant) -> None:
        part = self.settings.state_dir / "part"
        part.write_text(encoded(row))
        part.replace(self.settings.state_dir / FILE_NAME)

    def until(self, condition: Any) -> None:
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline, "it did not come to that"
            self.agent.step()

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.agent.step()

    def ask(self, peer: Peer = ROOT, **request: Any) -> dict[str, Any]:
        """As `answer`, in this thread."""
        self.agent.inbox.ask = lambda function: function()  # type: ignore[method-assign]
        return self.agent.requests.answer(peer, request)
