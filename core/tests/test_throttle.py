"""Batch on a node with control groups in memory: found, limited, and put back."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_agent import CLUSTER, FIRST_PID, HOST, key, messages, task
from core.tests.fake_cgroups import FakeCgroups
from core.tests.fake_framework import InlineLane, cluster_config, plugin_of
from core.tests.qos_values import MEMORY_CAPACITY
from core.tests.test_cpu_suppress import view

from fallow_core.agent.throttling.batch_limiter import BatchLimiter
from fallow_core.agent.throttling.memory_reclaim import MemoryReclaimer
from fallow_core.agent.throttling.tree import Tree
from fallow_core.model.qos_policy import (
    CgroupReconcilePolicy,
    CpuSuppressPolicy,
    IdentityPolicy,
    MemoryReclaimPolicy,
    QosPolicy,
    StrategyMode,
)
from fallow_core.model.sample import Usage
from fallow_core.model.task import ObservedTask, TaskKey, TaskUsage
from fallow_core.node.cgroups import cpu
from fallow_core.node.procfs import ProcessStat
from fallow_core.node.task_usage import BatchPass
from fallow_core.plugins import instance as instance_module
from fallow_core.plugins.instance import PluginInstance
from fallow_core.state.original_values import OriginalValuesFile
from fallow_hookspecs import Finding, Node, Placement, Process, TaskPlacement, hookimpl

OFF, OBSERVE, ENFORCE = StrategyMode
OWN = "fallow.n1"


class Framework:
    """An instance that says where its tasks are."""

    def __init__(self) -> None:
        self.places: dict[str, TaskPlacement] = {}
        self.asked: list[str] = []
        self.fails: Exception | None = None

    @hookimpl
    def set_cgroup_parent(self, parent: str) -> Placement:
        self.asked.append(parent)
        if self.fails is not None:
            raise self.fails
        return Placement(new_tasks_follow=False, tasks=tuple(self.places.values()), reason="they do not follow")

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        return ()

    def close(self) -> None:
        pass


class Batch:
    """A node of 8 cores with tasks of one framework, each a process of one core."""

    def __init__(self, fake: FakeCgroups, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def lane(name: str, clock: Callable[[], float], wake: Callable[[], None] | None = None) -> InlineLane:
            return InlineLane(name, clock, wake, {})

        monkeypatch.setattr(instance_module, "Lane", lane)
        monkeypatch.setattr(Tree, "_is_alive", lambda _, process: process.pid in self.stats)
        self.fake = fake
        self.home = "nm" if fake.version == 1 else ""  # v2 knows no groups below one with processes, but the root
        self.own = f"{self.home}/{OWN}".lstrip("/")
        self.folder = folder
        self.framework = Framework()
        self.now = 1000.0
        self.online = 2000
        self.memory_percent = 50
        self.known = True
        self.clusters = {CLUSTER}
        self.tasks: dict[str, ObservedTask] = {}
        self.members: dict[TaskKey, list[Process]] = {}
        self.stats: dict[int, ProcessStat] = {}
        self.instances = {
            CLUSTER: PluginInstance(plugin_of(lambda _: self.framework), cluster_config("a"), clock=lambda: self.now)
        }
        self.start()

    def start(self, suppress: StrategyMode = ENFORCE, reconcile: StrategyMode = ENFORCE) -> None:
        """A new process with what the one before left on the disk."""
        tree = Tree(self.fake.hierarchy, OriginalValuesFile(self.folder, boot_id="b"), OWN)
        self.limiter = BatchLimiter(HOST, QosPolicy(), dict.fromkeys(self.fake.controllers, tree))
        if self.limiter.reclaimer is not None:
            self.limiter.reclaimer = MemoryReclaimer(tree, start=lambda act: act())
        self.modes(suppress, reconcile)

    def modes(self, suppress: StrategyMode, reconcile: StrategyMode, **more: Any) -> None:
        policy = QosPolicy(
            cpu_suppress=CpuSuppressPolicy(mode=suppress),
            cgroup_reconcile=CgroupReconcilePolicy(mode=reconcile),
            identity=IdentityPolicy(mode=OFF),
            memory_reclaim=MemoryReclaimPolicy(mode=OFF),
        )
        self.limiter.policy = replace(policy, **more)

    def add(self, name: str, group: str, *, processes: int = 1, **place: Any) -> list[Process]:
        """A task with processes in a group. `place`: what the plugin says; by default that they may be moved."""
        members = [Process(FIRST_PID + len(self.stats) + n, 5) for n in range(processes)]
        self.fake.add(group, *(process.pid for process in members))
        self.stats |= {process.pid: ProcessStat(process.pid, 1, 5, 0, 0) for process in members}
        usage = TaskUsage(measured_at=self.now, cpu_milli=1000, memory_bytes=0)
        self.tasks[name] = ObservedTask(
            cluster=CLUSTER, node="n1", task=task(name, members[0]), measured_at=self.now, usage=usage
        )
        self.members[key(name)] = members
        self.framework.places[name] = TaskPlacement(task_id=name, **(place or {"movable": tuple(members)}))
        return members

    def end(self, name: str) -> None:
        """A task ends with its processes."""
        for process in self.members.pop(key(name)):
            del self.stats[process.pid]
            for group in self.fake.groups.values():
                group.pids = [pid for pid in group.pids if pid != process.pid]
        del self.tasks[name], self.framework.places[name]

    def tick(self, seconds: float = 1.0) -> None:
        self.now += seconds
        usage = TaskUsage(measured_at=self.now, cpu_milli=1000, memory_bytes=0)
        self.tasks = {name: replace(seen, usage=usage) for name, seen in self.tasks.items()}
        seen = view(self.online, 1000 * len(self.tasks), at=self.now, known=self.known)
        stats = dict(self.stats)
        batch = BatchPass(at=self.now, processes=stats, batch=frozenset(p for m in self.members.values() for p in m))
        tasks = tuple(self.tasks.values())
        used = MEMORY_CAPACITY * self.memory_percent // 100
        memory = Usage(measured_at=self.now, capacity=MEMORY_CAPACITY, used=used, batch_used=0)
        seen = replace(seen, tasks=tasks, sample=replace(seen.sample, memory=memory))
        self.limiter.step(seen, self.members, batch, self.instances, self.clusters)

    def run(self, ticks: int) -> None:
        for _ in range(ticks):
            self.tick()

    def quota(self, group: str) -> int | None:
        return self.fake.groups[group].quota


@pytest.fixture(params=[1, 2])
def fake(request: pytest.FixtureRequest) -> FakeCgroups:
    return FakeCgroups(request.param)


@pytest.fixture
def batch(fake: FakeCgroups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Batch:
    return Batch(fake, tmp_path, monkeypatch)


def least(batch: Batch) -> int:
    return {1: 2, 2: 1}[batch.fake.version]


def made(batch: Batch, *names: str) -> None:
    """Tasks in groups that their framework made."""
    for name in names:
        batch.add(name, f"hadoop-yarn/{name}", cgroups=(f"hadoop-yarn/{name}",), setting="the.setting")


def test_the_groups_that_a_framework_makes_are_limited_together_by_the_one_above_them(batch: Batch) -> None:
    made(batch, "c1", "c2")
    before = batch.fake.values()
    batch.run(2)
    assert batch.fake.values() == before | {"hadoop-yarn": (600_000, 100_000, least(batch), ())}
    batch.online = 5000
    batch.tick()
    assert batch.fake.values() == before | {"hadoop-yarn": (300_000, 100_000, least(batch), ())}
    batch.clusters = set()
    batch.tick()
    assert batch.fake.values() == before
    assert batch.limiter.cpu.writer.changed_groups == {}


def test_tasks_without_groups_get_some_below_the_group_where_they_are(batch: Batch) -> None:
    batch.add("c1", batch.home, processes=2)
    batch.add("c2", batch.home)
    batch.fake.add(batch.home, 77)  # the NodeManager
    before = batch.fake.values()
    batch.run(2)
    own = batch.fake.groups[batch.own]
    assert (own.pids, own.quota, own.weight) == ([], 600_000, least(batch))
    tasks = {name: batch.fake.groups[f"{batch.own}/{name}"] for name in ("c1", "c2")}
    assert {name: group.pids for name, group in tasks.items()} == {
        "c1": [FIRST_PID, FIRST_PID + 1],
        "c2": [FIRST_PID + 2],
    }
    assert {group.weight for group in tasks.values()} == {{1: 1024, 2: 100}[batch.fake.version]}
    assert batch.fake.groups[batch.home].pids == [77]
    late = batch.add("c3", batch.home)
    batch.run(2)
    assert batch.fake.groups[f"{batch.own}/c3"].pids == [late[0].pid]
    batch.modes(ENFORCE, OBSERVE)
    batch.tick()
    batch.end("c3")
    assert batch.fake.values() == before


def test_a_task_that_ended_leaves_no_group(batch: Batch) -> None:
    batch.add("c1", batch.home)
    batch.add("c2", batch.home)
    batch.run(2)
    batch.end("c1")
    batch.tick()
    assert batch.fake.hierarchy.children(batch.own) == ["c2"]


def test_what_a_framework_left_of_a_groups_task_is_removed_and_nothing_that_is_young_or_in_use(batch: Batch) -> None:
    made(batch, "c1", "c2", "c3")
    batch.fake.add("hadoop-yarn/new")  # its first process comes yet
    batch.run(2)
    batch.end("c1")
    batch.end("c2")
    batch.fake.add("hadoop-yarn/c2", 99)  # it is not listed any more, and still runs
    batch.stats[99] = ProcessStat(99, 1, 5, 0, 0)
    batch.run(58)
    assert set(batch.fake.hierarchy.children("hadoop-yarn")) == {"c1", "c2", "c3", "new"}
    batch.run(4)
    assert set(batch.fake.hierarchy.children("hadoop-yarn")) == {"c2", "c3", "new"}


def test_what_a_task_started_beside_its_group_is_put_into_it(batch: Batch) -> None:
    batch.add("c1", batch.home)
    batch.run(3)
    child = batch.add("c1", batch.home)  # started while its parent was moved
    batch.members[key("c1")] = [Process(FIRST_PID, 5), *child]
    batch.run(2)
    assert batch.fake.groups[f"{batch.own}/c1"].pids == [FIRST_PID, child[0].pid]


def test_an_id_that_is_no_name_of_a_directory_gets_another_one(batch: Batch) -> None:
    batch.add("../c1", batch.home)
    batch.run(2)
    (name,) = batch.fake.hierarchy.children(batch.own)
    assert name.startswith("task_")
    assert batch.fake.groups[f"{batch.own}/{name}"].pids == [FIRST_PID]


def test_a_group_of_fallows_own_goes_with_its_last_process(batch: Batch) -> None:
    batch.add("c1", batch.home)
    batch.run(2)
    assert batch.own in batch.fake.groups
    batch.end("c1")
    batch.tick()
    assert batch.own not in batch.fake.groups
    assert batch.limiter.cpu.writer.changed_groups == {}


def test_observing_says_what_enforcing_would_do_and_does_nothing(batch: Batch) -> None:
    made(batch, "c1")
    batch.add("c2", batch.home, processes=3)
    before = batch.fake.values()
    batch.modes(OBSERVE, OBSERVE)
    batch.run(3)
    assert batch.fake.values() == before
    assert batch.limiter.limits is not None
    would = dict(batch.limiter.limits.groups)
    assert batch.limiter.limits.terms["outside"] == 0
    to_move = [len(pids) for group in batch.limiter.groups.values() for pids in group.to_move.values()]
    assert to_move == [3]
    batch.modes(ENFORCE, ENFORCE)
    batch.tick()
    assert {group: batch.quota(group) for group in would} == {group: limit * 100 for group, limit in would.items()}
    assert sum(would.values()) == 6000


def test_switched_off_it_asks_nobody_and_puts_everything_back(batch: Batch) -> None:
    made(batch, "c1")
    before = batch.fake.values()
    batch.run(2)
    batch.modes(OFF, OFF)
    asked = list(batch.framework.asked)
    made(batch, "c2")
    batch.run(2)
    assert batch.framework.asked == asked
    batch.end("c2")
    assert {path: found for path, found in batch.fake.values().items() if path in before} == before


def test_limits_alone_leave_tasks_where_they_are(batch: Batch) -> None:
    made(batch, "c1")
    batch.add("c2", batch.home)
    before = batch.fake.values()
    batch.modes(ENFORCE, OFF)
    batch.run(2)
    after = batch.fake.values()
    assert after.keys() == before.keys()
    quota, _, weight, _ = after["hadoop-yarn"]
    assert quota is not None
    assert weight == before["hadoop-yarn"][2]


def test_a_group_with_something_else_in_it_is_left_alone(batch: Batch) -> None:
    made(batch, "c1")
    batch.fake.add("hadoop-yarn/other", 77)
    batch.stats[77] = ProcessStat(77, 1, 5, 0, 0)
    before = batch.fake.values()
    batch.run(3)
    assert batch.fake.values() == before
    assert "process 77 is in it too" in batch.limiter.cpu.finder.ungrouped[key("c1")]
    batch.fake.vanish("hadoop-yarn/other")
    batch.run(12)
    assert batch.quota("hadoop-yarn") is not None


def test_a_process_that_comes_into_a_limited_group_lifts_no_limit_and_is_told(batch: Batch) -> None:
    made(batch, "c1")
    batch.run(3)
    limit = batch.quota("hadoop-yarn")
    assert limit is not None
    batch.fake.add("hadoop-yarn/other", 77)
    batch.stats[77] = ProcessStat(77, 1, 5, 0, 0)
    batch.run(40)
    assert batch.quota("hadoop-yarn") == limit
    strangers = {"hadoop-yarn": "/hadoop-yarn does not contain batch alone: process 77 is in it too"}
    assert batch.limiter.cpu.finder.strangers == strangers
    batch.start()
    batch.run(3)
    assert (batch.quota("hadoop-yarn"), batch.limiter.cpu.finder.strangers) == (limit, strangers)
    batch.fake.vanish("hadoop-yarn/other")
    batch.run(40)
    assert batch.limiter.cpu.finder.strangers == {}


def test_what_is_in_a_tasks_own_group_is_the_tasks_whoever_its_parent_is(batch: Batch) -> None:
    made(batch, "c1")
    batch.fake.add("hadoop-yarn/c1", 77)
    batch.stats[77] = ProcessStat(77, 1, 5, 0, 0)
    batch.run(3)
    assert batch.quota("hadoop-yarn") is not None
    assert batch.limiter.cpu.finder.strangers == {}


def test_who_may_not_be_moved_is_said_with_the_setting_that_would_change_it(batch: Batch) -> None:
    batch.add("c1", batch.home, setting="the.setting")
    batch.run(2)
    assert batch.limiter.groups == {}
    why = f"its group /{batch.home} is not its own, and it may not be moved: set the.setting"
    assert batch.limiter.cpu.finder.ungrouped == {key("c1"): why}


def test_what_a_plugin_does_not_tell_is_said_and_asked_again(batch: Batch) -> None:
    batch.add("c1", batch.home)
    batch.framework.fails = RuntimeError("no")
    batch.run(9)
    assert "not said yet" in batch.limiter.cpu.finder.ungrouped[key("c1")]
    assert len(batch.framework.asked) == 1
    batch.framework.fails = None
    batch.run(4)
    assert batch.limiter.cpu.finder.ungrouped == {}
    assert batch.quota(batch.own) == 600_000


def test_a_plugin_is_asked_when_tasks_change_and_not_all_the_time(batch: Batch) -> None:
    batch.add("c1", batch.home)
    batch.run(8)
    assert batch.framework.asked == [OWN]
    batch.add("c2", batch.home)
    batch.run(3)
    assert len(batch.framework.asked) == 2


def test_after_kill_9_the_next_process_goes_on_and_can_put_everything_back(batch: Batch) -> None:
    made(batch, "c1")
    batch.add("c2", batch.home)
    before = batch.fake.values()
    batch.run(2)
    held = batch.fake.values()
    batch.start()
    batch.known = False  # nothing is listed yet
    batch.tick()
    assert batch.fake.values() == held
    batch.clusters = set()
    batch.tick()
    assert batch.fake.values() == before


def test_processes_that_are_somewhere_else_stay_there(batch: Batch) -> None:
    members = batch.add("c1", batch.home, processes=2)
    batch.fake.add("special", members[1].pid)
    batch.run(3)
    assert batch.fake.groups[f"{batch.own}/c1"].pids == [members[0].pid]
    assert batch.fake.groups["special"].pids == [members[1].pid]


def test_a_pid_that_is_another_process_by_now_is_not_moved(batch: Batch) -> None:
    members = batch.add("c1", batch.home, processes=2)
    del batch.stats[members[1].pid]
    batch.run(3)
    assert batch.fake.groups[batch.home].pids == [members[1].pid]


def test_where_the_controller_is_not_passed_on_it_is_said_and_others_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    batch = Batch(FakeCgroups(2), tmp_path, monkeypatch)
    batch.add("c1", "nm.service")
    batch.fake.groups["nm.service"].passes_on = False
    made(batch, "c2")
    batch.run(8)
    assert len(messages(caplog.records, "group_not_changed")) == 1
    assert "does not pass cpu on" in batch.limiter.cpu.writer.problems[f"nm.service/{OWN}"]
    assert batch.quota("hadoop-yarn") is not None
    assert batch.fake.groups["nm.service"].pids == [FIRST_PID]
    batch.end("c1")
    batch.tick()
    assert batch.limiter.cpu.writer.problems == {}


def test_a_group_below_another_one_is_part_of_it(batch: Batch) -> None:
    made(batch, "c1")
    batch.add("c2", "hadoop-yarn/sub/c2", cgroups=("hadoop-yarn/sub/c2",))
    batch.run(2)
    assert list(batch.limiter.groups) == ["hadoop-yarn"]
    assert batch.quota("hadoop-yarn/sub") is None


def test_the_limits_are_told_once_and_when_they_change_much(batch: Batch, caplog: pytest.LogCaptureFixture) -> None:
    made(batch, "c1")
    with caplog.at_level("INFO"):
        for online in (2000, 2000, 2100, 2200, 7000, 7100):
            batch.online = online
            batch.run(2)
    assert len(messages(caplog.records, "cpu_limit")) == 2


def test_a_thousand_processes_cost_a_few_calls_a_tick(batch: Batch) -> None:
    for number in range(100):
        batch.add(f"c{number}", batch.home, processes=10)
    batch.run(3)
    before = batch.fake.calls
    batch.tick(1.0)
    assert batch.fake.calls - before < 50


@pytest.mark.parametrize("exempt", ["hadoop-yarn", "hadoop-yarn/c1"])
def test_nothing_is_changed_in_an_exempt_group_and_what_was_is_put_back(batch: Batch, exempt: str) -> None:
    before = batch.fake.values()
    made(batch, "c1")
    unlimited = batch.fake.values()
    batch.run(3)
    assert batch.quota("hadoop-yarn") is not None
    batch.limiter.policy = replace(batch.limiter.policy, exempt=(exempt,))
    batch.run(3)
    assert batch.fake.values() == unlimited
    assert batch.limiter.cpu.finder.ungrouped == {key("c1"): f"/hadoop-yarn is exempt, by qos.exempt: /{exempt}"}
    batch.limiter.policy = replace(batch.limiter.policy, exempt=())
    batch.run(3)
    assert batch.quota("hadoop-yarn") is not None
    assert before.keys() < unlimited.keys()


def test_tasks_in_an_exempt_group_are_not_moved_and_others_are(batch: Batch) -> None:
    batch.add("c1", batch.home)
    made(batch, "c2")
    batch.limiter.policy = replace(batch.limiter.policy, exempt=(batch.own,))
    batch.run(3)
    assert batch.own not in batch.fake.groups
    assert batch.quota("hadoop-yarn") is not None


def test_a_task_without_a_request_has_the_weight_of_one_core() -> None:
    assert [cpu.weight_text(1, milli) for milli in (0, 1000)] == ["1024", "1024"]
    assert [cpu.weight_text(2, milli) for milli in (0, 1000)] == ["100", "100"]
