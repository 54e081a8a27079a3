"""Both processes on a node: a restored cluster is left alone, also after a restart; and how a start goes that meets
pressure.
"""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_agent_process import MEMORY, ROOT, Tasks, TasksHost, row
from core.tests.fake_cgroups import FakeCgroups
from core.tests.fake_framework import FakeNode, size
from core.tests.fake_standalone import config
from core.tests.test_protection_first import Movable

from fallow_core.agent.throttling import host_throttling
from fallow_core.agent.throttling.tree import Tree
from fallow_core.api.encoding import from_json
from fallow_core.api.explain import Explanation
from fallow_core.api.status import Status
from fallow_core.cli.problems import status_problems, task_problems
from fallow_core.cli.render_explain import explanation_lines
from fallow_core.cli.render_status import status_lines
from fallow_core.controller.controller import Controller
from fallow_core.controller.grant_writer import row_of
from fallow_core.model.policy import SwitchState
from fallow_core.model.qos_policy import (
    CgroupReconcilePolicy,
    CpuSuppressPolicy,
    MemoryReclaimPolicy,
    QosPolicy,
    StrategyMode,
)
from fallow_core.planner.memory import Change
from fallow_core.planner.switches import Switch
from fallow_core.runtime import protection, restore
from fallow_core.runtime.agent import AgentProcess
from fallow_core.runtime.node_process import NodeProcess
from fallow_core.runtime.protection import UNKNOWN_SECONDS
from fallow_core.runtime.standalone import Standalone
from fallow_core.state.node_grant import FILE_NAME, encoded

ENFORCE = StrategyMode.ENFORCE
WINDOW_SECONDS = 3600.0
QOS = QosPolicy(
    stale_seconds=1e6,
    memory_evict=MEMORY,
    memory_reclaim=MemoryReclaimPolicy(mode=ENFORCE, window_seconds=WINDOW_SECONDS),
    cpu_suppress=CpuSuppressPolicy(mode=ENFORCE),
    cgroup_reconcile=CgroupReconcilePolicy(mode=ENFORCE),
)
CALM, PRESSED, CRITICAL = size(4, 4), size(1, 9.4), size(1, 9.9)


class Life:
    """A process on a host, which can be ended and started anew. Its clock runs on by as much as a test says."""

    def __init__(self, kind: type[Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kind, self.folder = kind, folder
        self.slept = 0.0
        self.host = TasksHost(self.clock)
        self.host.used = CALM
        self.fake = FakeCgroups(1)
        self.tasks = Movable()
        self.builds: dict[str, Any] = {"etl": self.tasks}
        self.process: NodeProcess | None = None
        monkeypatch.setattr(host_throttling, "Files", lambda: self.fake)
        monkeypatch.setattr(Tree, "_is_alive", lambda _, process: True)
        monkeypatch.setattr(protection, "HostSampler", lambda clock: self.host)
        self.fake.add("nm", *(process.pid for each in self.tasks.listing.tasks for process in each.processes), 77)

    def clock(self) -> float:
        return time.monotonic() + self.slept

    @property
    def settings(self) -> Any:
        return config(self.folder, self.builds, qos=QOS)

    def start(self) -> NodeProcess:
        self.process = self.kind(self.settings, self.clock)
        assert self.process is not None
        self.process.inbox.ask = lambda function: function()  # type: ignore[method-assign]
        return self.process

    def end(self) -> None:
        if self.process is not None:
            self.process.close()
        self.process = None

    @property
    def running(self) -> NodeProcess:
        assert self.process is not None
        return self.process

    def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline, "it did not come to that"
            self.steps(1)

    def steps(self, count: int) -> None:
        """Full probes with little time between them, however rarely a calm host needs one."""
        for _ in range(count):
            self.running._full_probe()
            self.running.inbox.serve(0.01)

    def ask(self, **request: Any) -> dict[str, Any]:
        return self.running.requests.answer(ROOT, request)

    def status(self) -> Status:
        return from_json(Status, self.ask(request="status"))

    def knows_tasks(self) -> bool:
        return len(self.running.evictor.tasks) == 2 and self.running.evictor.relief.enforced_since is not None


@pytest.fixture(params=[Standalone, AgentProcess])
def life(request: pytest.FixtureRequest, agent_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Life]:
    life = Life(request.param, agent_folder, monkeypatch)
    yield life
    life.end()


def test_nothing_of_a_restored_cluster_is_touched_also_after_a_restart_until_it_is_switched_to_lend(life: Life) -> None:
    before = life.fake.values()
    life.start()
    life.until(lambda: life.fake.values() != before)
    life.ask(request="restore")
    life.until(lambda: life.fake.values() == before)
    writes = len(life.fake.writes)
    sent = len(life.tasks.calls)
    life.host.used = CRITICAL
    life.steps(10)
    life.end()
    life.start()
    life.until(life.knows_tasks)
    life.slept += WINDOW_SECONDS
    life.steps(10)
    assert life.tasks.ended == []
    assert (len(life.fake.writes), life.fake.values()) == (writes, before)
    assert len(life.tasks.calls) == sent
    assert life.running.evictor.terminations.active == ()
    life.ask(request="switch", scope="etl", state="lend")
    life.until(lambda: len(life.tasks.ended) == 2)


@pytest.mark.parametrize("scope", ["etl", "framework:alpha", "all"])
def test_a_switch_of_the_cluster_its_framework_or_all_ends_it(life: Life, scope: str) -> None:
    life.start()
    life.until(life.knows_tasks)
    life.ask(request="restore")
    life.ask(request="switch", scope=scope, state="stop")
    assert life.running.ledgers.restored == frozenset()
    (counts,) = [each for each in life.status().switches if each.state is not SwitchState.LEND]
    assert counts.state is SwitchState.STOP
    life.host.used = CRITICAL
    life.until(lambda: life.tasks.ended)
    life.end()
    life.start()
    assert life.running.ledgers.restored == frozenset()


def test_status_explain_and_tasks_say_why_nothing_is_done_under_pressure(life: Life) -> None:
    life.start()
    life.until(life.knows_tasks)
    life.ask(request="restore")
    life.host.used = CRITICAL
    life.until(lambda: life.running.evictor.shortfalls)
    found = list(status_problems(life.status()))
    restored = (
        "alpha/etl is restored: it is sent no size, and its tasks are neither throttled nor terminated, also under "
        "pressure, until fallow switch lend alpha/etl"
    )
    lacking = (
        "pressure on memory is not relieved: 99 % of memory is used, the threshold is 95 %; memory_evict terminates "
        "too little: it lacks 1.40 GiB; not terminated are 2 tasks: alpha/etl is restored"
    )
    assert {restored, lacking} <= set(found)
    assert "is not relieved" in " ".join(status_lines(life.status()))
    assert restored in list(task_problems(life.running.requests.tasks()))
    explained = " ".join(" ".join(explanation_lines(from_json(Explanation, life.ask(request="explain")))).split())
    assert "its tasks are neither throttled nor terminated" in explained
    assert "may not be terminated: t1: alpha/etl is restored; t2: alpha/etl is restored" in explained
    life.host.used = CALM
    life.steps(1)
    assert not [text for text in status_problems(life.status()) if "not relieved" in text]


def test_a_restore_without_a_running_process_terminates_nobody_nor_does_the_next_start(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "LONGEST_SECONDS", 3.0)
    life.tasks.nodes["a1"] = FakeNode(in_force=size(8))
    life.host.used = CRITICAL
    restore.restore(life.settings, "ada")
    life.start()
    life.until(life.knows_tasks)
    life.steps(10)
    assert life.tasks.ended == []


def test_only_the_tasks_of_the_restored_one_of_two_clusters_are_out_of_reach(life: Life) -> None:
    other = Tasks()
    first, second = life.tasks.listing.tasks
    life.tasks.listing = replace(life.tasks.listing, tasks=(first,))
    other.listing = replace(other.listing, tasks=(second,))
    life.builds["adhoc"] = other
    life.start()
    life.until(life.knows_tasks)
    life.running.ledgers.journal.write(Change(switches={"alpha/etl": Switch(state=SwitchState.RESTORED)}))
    life.host.used = CRITICAL
    life.until(lambda: other.ended)
    life.steps(5)
    assert (life.tasks.ended, other.ended) == ([], ["t2"])
    (shortfall,) = life.status().shortfalls
    assert shortfall.spared == {"alpha/etl is restored": 1}


# A start under pressure


def test_a_start_under_pressure_terminates_nobody_before_throttling_had_its_time(life: Life) -> None:
    life.host.used = PRESSED
    life.start()
    life.until(life.knows_tasks)
    life.steps(20)
    assert life.tasks.ended == []
    life.slept += WINDOW_SECONDS
    life.until(lambda: life.tasks.ended)


def test_a_restart_under_pressure_gives_throttling_its_time_anew(life: Life) -> None:
    life.start()
    life.until(life.knows_tasks)
    life.slept += WINDOW_SECONDS
    life.end()
    life.host.used = PRESSED
    life.start()
    life.until(life.knows_tasks)
    life.steps(20)
    assert life.tasks.ended == []


def test_a_start_at_the_critical_threshold_terminates_at_once(life: Life) -> None:
    life.host.used = CRITICAL
    life.start()
    life.until(lambda: life.tasks.ended)
    assert life.slept == 0


def test_a_plugin_that_is_not_built_delays_the_others_only_for_some_seconds(life: Life) -> None:
    built = threading.Event()

    def hang(_: object) -> Any:
        built.wait(10)

    life.builds["ops"] = hang
    life.host.used = PRESSED
    life.start()
    life.until(lambda: len(life.running.evictor.tasks) == 2)
    assert life.running.evictor.relief.enforced_since is None
    life.slept += UNKNOWN_SECONDS
    life.until(life.knows_tasks)
    assert life.tasks.ended == []
    life.slept += WINDOW_SECONDS
    life.until(lambda: life.tasks.ended)
    built.set()


def test_a_controller_tells_its_agent_which_clusters_are_restored(
    agent_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(Standalone, agent_folder, monkeypatch)
    controller = life.start().ledgers
    assert isinstance(controller, Controller)
    life.until(life.knows_tasks)
    assert row_of(controller, "n1", 0.0).restored == ()
    controller.restore("ada")
    assert row_of(controller, "n1", 0.0).restored == ("alpha/etl",)
    life.end()


# An agent whose controller was told to restore


def test_an_agent_leaves_alone_what_its_controller_restored_also_when_the_controller_is_silent(
    agent_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(AgentProcess, agent_folder, monkeypatch)
    grants = life.settings.state_dir / FILE_NAME
    grants.parent.mkdir(exist_ok=True)
    grants.write_text(encoded(replace(row(), restored=("alpha/etl",))))
    life.host.used = CRITICAL
    life.start()
    life.until(life.knows_tasks)
    life.slept += 3600  # it has expired
    life.steps(10)
    life.end()
    life.start()
    life.until(life.knows_tasks)
    life.steps(10)
    assert life.tasks.ended == []
    assert life.status().clusters[0].switch.who == "its controller"
    grants.unlink()
    life.steps(10)
    assert life.tasks.ended == []
    grants.write_text(encoded(row(may_pay=0)))
    life.until(lambda: life.tasks.ended)
    life.end()
