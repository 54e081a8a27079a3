"""Under pressure a process acts by the last round's results, before it computes a round or writes a file."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_agent_process import MEMORY, PROCESSES, Tasks, TasksHost
from core.tests.fake_cgroups import FakeCgroups
from core.tests.fake_framework import FakeNode, size
from core.tests.fake_standalone import config

from fallow_core.agent.eviction.orders import Orders
from fallow_core.agent.probing.schedule import ProbeDue
from fallow_core.agent.remote_ledger import RemoteLedger
from fallow_core.agent.throttling import host_throttling
from fallow_core.agent.throttling.tree import Tree
from fallow_core.controller.controller import Controller
from fallow_core.model.qos_policy import CgroupReconcilePolicy, CpuSuppressPolicy, QosPolicy, StrategyMode
from fallow_core.runtime.agent import AgentProcess
from fallow_core.runtime.node_process import NodeProcess
from fallow_core.runtime.standalone import Standalone
from fallow_core.state import durable
from fallow_hookspecs import Placement, TaskPlacement, hookimpl

QOS = QosPolicy(
    memory_evict=MEMORY,
    cpu_suppress=CpuSuppressPolicy(mode=StrategyMode.ENFORCE),
    cgroup_reconcile=CgroupReconcilePolicy(mode=StrategyMode.ENFORCE),
)
CALM, PRESSED = size(4, 4), size(9.5, 9.5)
OWN = "nm/fallow.n1"


class Movable(Tasks):
    """A framework whose two tasks share a group with others, and may be moved out of it."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes["a1"] = FakeNode(in_force=size(8))

    @hookimpl
    def set_cgroup_parent(self, parent: str) -> Placement:
        where = tuple(TaskPlacement(task_id=name, movable=(process,)) for name, process in PROCESSES.items())
        return Placement(new_tasks_follow=False, tasks=where, reason="no")


class Traced:
    """A process whose orders, limits, rounds and writes are recorded; a write takes half a minute of its clock."""

    def __init__(self, kind: type[Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[str] = []
        self.slept = 0.0
        self.disk_fails = False
        self.fake = FakeCgroups(1)
        self.fake.add("nm", *(process.pid for process in PROCESSES.values()), 77)
        monkeypatch.setattr(host_throttling, "Files", lambda: self.fake)
        monkeypatch.setattr(Tree, "_is_alive", lambda _, process: True)
        self.write = durable.write
        for owner, name, what in (
            (Orders, "give", "order"),
            (FakeCgroups, "write", "limit"),
            (Controller, "tick", "round"),
            (RemoteLedger, "tick", "round"),
        ):
            monkeypatch.setattr(owner, name, self.recorded(getattr(owner, name), what))
        monkeypatch.setattr(durable, "write", self.slow_write)
        settings = config(folder, {"etl": Movable()}, qos=replace(QOS, stale_seconds=1000.0))
        self.process: NodeProcess = kind(settings, self.clock)
        self.host = TasksHost(self.clock)
        self.host.used = CALM
        self.process.sampler = self.host

    def clock(self) -> float:
        return time.monotonic() + self.slept

    def recorded(self, function: Callable[..., Any], what: str) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            self.events.append(what)
            return function(*arguments, **more)

        return call

    def slow_write(self, path: Path, text: str) -> None:
        self.events.append(path.name)
        self.slept += 30.0
        if self.disk_fails:
            raise OSError(28, "No space left on device")
        self.write(path, text)

    def until_limited(self) -> None:
        deadline = time.monotonic() + 20
        while OWN not in self.fake.groups or self.fake.groups[OWN].quota is None:
            assert time.monotonic() < deadline
            self.process.step()

    def before_the_round(self) -> list[str]:
        return self.events[: self.events.index("round")]


@pytest.fixture(params=[Standalone, AgentProcess])
def traced(request: pytest.FixtureRequest, agent_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    traced = Traced(request.param, agent_folder, monkeypatch)
    yield traced
    traced.process.close()


@pytest.mark.parametrize("disk_fails", [False, True])
def test_orders_and_limits_come_before_the_first_round_and_the_first_write(traced: Traced, disk_fails: bool) -> None:
    traced.until_limited()
    before = traced.fake.groups[OWN].quota
    traced.events.clear()
    traced.disk_fails, traced.host.used = disk_fails, PRESSED
    began = traced.clock()
    traced.process._full_probe()
    *first, last = traced.before_the_round()
    assert first[0] == "order"
    assert set(first[1:]) == {"limit"}
    assert last == "terminations.json"
    after = traced.fake.groups[OWN].quota
    assert before is not None
    assert after is not None
    assert after < before  # by the new sample, though the last round knew only the old one
    assert [t.ordered_at - began < 10 for t in traced.process.evictor.terminations.active] == [True]


def test_new_limits_come_before_the_round_on_the_quick_path_too(traced: Traced) -> None:
    traced.until_limited()
    traced.events.clear()
    traced.host.used = size(9, 4)
    prober = traced.process.prober
    prober._state = replace(prober._state, last=replace(prober._state.last, others_milli=9000))
    traced.process._limit()
    assert set(traced.before_the_round()) == {"limit"}
    assert traced.fake.groups[OWN].quota == 100_000


def test_a_crossed_threshold_does_not_wait_for_a_round_that_answers_call_for(
    traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced.until_limited()
    monkeypatch.setattr(traced.process, "_quick_probe", lambda: ProbeDue.THRESHOLD_CROSSED)
    traced.process.wake()
    traced.events.clear()
    traced.process.step()
    assert traced.events.count("round") == 1  # that of the full probe before


def test_before_the_first_round_nothing_is_acted_on(traced: Traced) -> None:
    traced.host.used = PRESSED
    traced.process._full_probe()
    assert traced.events == ["round"]
