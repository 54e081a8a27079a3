"""Memory of batch on a node with control groups in memory: pushed out step by step, limited, and put back."""

import errno
from dataclasses import replace
from pathlib import Path

import pytest
from core.tests.fake_agent import FIRST_PID, HOST, messages
from core.tests.fake_cgroups import FakeCgroups
from core.tests.qos_values import GIB
from core.tests.test_throttle import ENFORCE, OBSERVE, OFF, OWN, Batch, made

from fallow_core.agent.throttling.batch_limiter import BatchLimiter
from fallow_core.agent.throttling.tree import Tree
from fallow_core.model.qos_policy import CgroupReconcilePolicy, MemoryReclaimPolicy, QosPolicy, StrategyMode
from fallow_core.node.cgroups.memory import LEAST_LIMIT_BYTES, RESERVE_BYTES
from fallow_core.qos.relief import Relief
from fallow_core.state.original_values import OriginalValuesFile
from fallow_hookspecs import Resources

ALL = ("cpu", "memory")
KINDS: dict[str, tuple[int, frozenset[str]]] = {
    "v1": (1, frozenset()),
    "reclaim": (2, frozenset({"memory.reclaim"})),
    "high": (2, frozenset()),
}


@pytest.fixture(params=KINDS)
def batch(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Batch:
    """A node of 100 GiB whose batch group has 5 GiB of file pages, 3 GiB of cold anonymous ones, and 1 GiB in use."""
    version, extras = KINDS[request.param]
    batch = Batch(FakeCgroups(version, controllers=ALL, extras=extras), tmp_path, monkeypatch)
    made(batch, "c1")
    batch.fake.add("hadoop-yarn", anon=GIB, inactive_file=5 * GIB, inactive_anon=3 * GIB)
    batch.fake.swap_free = 2 * GIB
    modes(batch, ENFORCE)
    batch.run(2)  # where its tasks are is known then
    return batch


def modes(batch: Batch, reclaim: StrategyMode) -> None:
    batch.modes(OFF, OFF, memory_reclaim=MemoryReclaimPolicy(mode=reclaim))


def limit_of(batch: Batch, group: str) -> int | None:
    return batch.fake.groups[group].memory_limit


def used(batch: Batch) -> int:
    return batch.fake.groups["hadoop-yarn"].memory_used


def test_cold_memory_of_batch_goes_step_by_step_and_no_limit_stays(batch: Batch) -> None:
    batch.run(3)
    assert used(batch) == 9 * GIB
    batch.memory_percent = 90
    batch.run(3)
    assert used(batch) == 6 * GIB
    group = batch.fake.groups["hadoop-yarn"]
    assert (group.memory_limit, group.memory_high) == (None, None)
    batch.run(10)
    reserve = RESERVE_BYTES if batch.fake.version == 1 else 0
    assert used(batch) == 2 * GIB + reserve  # there is swap for two of the three
    assert batch.limiter.reclaimer is not None
    assert batch.limiter.reclaimer.reclaimed_bytes >= 6 * GIB
    batch.memory_percent = 50
    group.inactive_file = GIB
    batch.run(2)
    assert group.inactive_file == GIB


def test_observing_reclaims_nothing_and_says_it_once(batch: Batch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "fallow.agent")
    modes(batch, OBSERVE)
    before = batch.fake.values()
    batch.memory_percent = 90
    batch.run(5)
    assert (used(batch), batch.fake.values(), batch.fake.writes) == (9 * GIB, before, [])
    assert len(messages(caplog.records, "memory_would_reclaim")) == 1
    assert batch.limiter.reclaimer is not None
    assert [dict(step.reclaim.groups) for step in batch.limiter.reclaimer.steps] == [{"hadoop-yarn": GIB}] * 5
    assert batch.limiter.relief().memory == Relief()


def test_a_cpu_limit_does_not_wait_for_a_step_of_reclaim(batch: Batch) -> None:
    batch.modes(ENFORCE, ENFORCE, memory_reclaim=MemoryReclaimPolicy(mode=ENFORCE))
    batch.memory_percent = 90
    limits: list[int | None] = []
    assert batch.limiter.reclaimer is not None
    batch.limiter.reclaimer._start = lambda _: limits.append(batch.quota("hadoop-yarn"))
    batch.run(3)
    assert None not in limits
    assert len(limits) == 1  # it never ends


def test_only_what_there_is_swap_for_can_spare_a_task_its_end(batch: Batch) -> None:
    batch.run(1)
    assert batch.limiter.relief().memory == Relief(possible=True)
    batch.memory_percent = 90
    batch.tick()
    assert batch.limiter.relief().memory == Relief(possible=True, begun_at=batch.now)
    batch.fake.swap_free = 0
    batch.tick()
    assert not batch.limiter.relief().memory.possible


def test_a_refusal_is_said_and_other_strategies_go_on(batch: Batch, caplog: pytest.LogCaptureFixture) -> None:
    names = {1: "memory.limit_in_bytes", 2: "memory.reclaim" if batch.fake.extras else "memory.high"}
    batch.fake.fails[f"{batch.fake.mount}/hadoop-yarn/{names[batch.fake.version]}"] = errno.EIO
    batch.memory_percent = 90
    batch.modes(ENFORCE, ENFORCE, memory_reclaim=MemoryReclaimPolicy(mode=ENFORCE))
    batch.run(3)
    assert messages(caplog.records, "memory_not_reclaimed") != []
    assert batch.quota("hadoop-yarn") is not None


def test_garbage_in_the_statistics_makes_a_group_unavailable_and_is_named(batch: Batch) -> None:
    batch.fake.garbage[f"{batch.fake.mount}/hadoop-yarn/memory.stat"] = "inactive_file lots"
    batch.memory_percent = 90
    batch.run(2)
    assert batch.limiter.reclaimer is not None
    assert "memory.stat: expected numbers" in batch.limiter.reclaimer.unavailable["hadoop-yarn"]
    assert used(batch) == 9 * GIB


def test_a_limit_left_behind_by_a_killed_process_is_put_back(batch: Batch) -> None:
    name = {1: "memory_limit", 2: "memory_high"}[batch.fake.version]
    batch.memory_percent = 90
    batch.tick()
    setattr(batch.fake.groups["hadoop-yarn"], name, 7 * GIB)  # killed before it was put back
    batch.start(OFF, OFF)
    modes(batch, ENFORCE)
    batch.memory_percent = 50
    batch.run(2)
    left = getattr(batch.fake.groups["hadoop-yarn"], name)
    assert left == (7 * GIB if batch.fake.extras else None)  # with memory.reclaim it was nobody of Fallow's


def test_a_group_of_v1_whose_children_do_not_count_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = Batch(FakeCgroups(1, controllers=ALL), tmp_path, monkeypatch)
    made(batch, "c1")
    batch.fake.garbage[f"{batch.fake.mount}/hadoop-yarn/memory.use_hierarchy"] = "0"
    modes(batch, ENFORCE)
    batch.run(2)
    assert batch.limiter.reclaimer is not None
    assert "groups below are not part of it" in batch.limiter.reclaimer.unavailable["hadoop-yarn"]


def limits(batch: Batch, percent: int | None) -> None:
    policy = CgroupReconcilePolicy(mode=ENFORCE, memory_limit_percent=percent)
    batch.modes(ENFORCE, ENFORCE, cgroup_reconcile=policy)


def test_groups_and_tasks_get_a_memory_limit_that_follows_requests_and_goes_again(batch: Batch) -> None:
    batch.add("c2", batch.home)
    batch.fake.add("hadoop-yarn", inactive_file=0, inactive_anon=0)
    limits(batch, 125)
    batch.run(3)
    groups = batch.fake.groups
    assert limit_of(batch, "hadoop-yarn") == GIB * 5 // 4
    assert limit_of(batch, batch.own) == GIB * 5 // 4
    assert limit_of(batch, f"{batch.own}/c2") == GIB * 5 // 4
    task = batch.tasks["c2"].task
    batch.tasks["c2"] = replace(batch.tasks["c2"], task=replace(task, requested=Resources(1000, 2 * GIB)))
    batch.tick()
    assert limit_of(batch, f"{batch.own}/c2") == limit_of(batch, batch.own) == 2 * GIB * 5 // 4
    limits(batch, None)
    batch.tick()
    assert limit_of(batch, "hadoop-yarn") is None
    assert limit_of(batch, f"{batch.own}/c2") is None
    batch.modes(OFF, OFF)
    batch.tick()
    assert batch.own not in groups
    assert batch.limiter.cpu.writer.changed_groups == {}


def test_a_group_that_uses_more_than_its_limit_would_be_gets_none_and_nothing_is_terminated(batch: Batch) -> None:
    limits(batch, 125)
    batch.run(2)
    assert limit_of(batch, "hadoop-yarn") is None
    assert "it uses more memory than it may" in batch.limiter.cpu.writer.problems["hadoop-yarn"]
    assert batch.quota("hadoop-yarn") is not None
    batch.fake.add("hadoop-yarn", inactive_file=0, inactive_anon=0)
    batch.tick()
    assert limit_of(batch, "hadoop-yarn") == GIB * 5 // 4
    assert batch.limiter.cpu.writer.problems == {}


def test_tasks_that_requested_nothing_get_a_limit_under_which_a_process_can_start(batch: Batch) -> None:
    batch.fake.add("hadoop-yarn", inactive_file=0, inactive_anon=0, anon=0)
    task = batch.tasks["c1"].task
    batch.tasks["c1"] = replace(batch.tasks["c1"], task=replace(task, requested=Resources(0, 0)))
    limits(batch, 100)
    batch.run(2)
    assert limit_of(batch, "hadoop-yarn") == LEAST_LIMIT_BYTES


def test_only_files_of_the_hosts_own_version_are_written(batch: Batch) -> None:
    batch.fake.add("hadoop-yarn", inactive_file=0, inactive_anon=0)
    batch.add("c2", batch.home)
    limits(batch, 400)
    batch.run(3)
    written = {path.rpartition("/")[2] for path, _ in batch.fake.writes}
    v1 = {"cpu.shares", "cpu.cfs_quota_us", "memory.limit_in_bytes", "cgroup.procs"}
    v2 = {"cpu.weight", "cpu.max", "memory.max", "cgroup.procs", "cgroup.subtree_control"}
    assert written == {1: v1, 2: v2}[batch.fake.version]
    limit = {1: "memory.limit_in_bytes", 2: "memory.max"}[batch.fake.version]
    assert (f"hadoop-yarn/{limit}", str(4 * GIB)) in batch.fake.writes


def test_a_memory_limit_that_somebody_set_lower_stays(batch: Batch) -> None:
    batch.fake.groups["hadoop-yarn"].memory_limit = GIB
    batch.fake.groups["hadoop-yarn"].inactive_file = 0
    limits(batch, 125)
    batch.run(2)
    assert limit_of(batch, "hadoop-yarn") == GIB


@pytest.mark.parametrize("batch", ["reclaim", "high"], indirect=True)
def test_without_the_memory_controller_in_a_group_its_cpu_is_limited_all_the_same(batch: Batch) -> None:
    limits(batch, 125)
    batch.fake.controllers = ("cpu",)
    batch.run(2)
    assert batch.quota("hadoop-yarn") is not None
    assert list(batch.limiter.cpu.writer.lacking.values()) == ["memory"]
    assert FIRST_PID in batch.fake.groups["hadoop-yarn/c1"].pids


def test_a_hierarchy_in_which_nothing_is_enforced_gets_no_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, other = Batch(FakeCgroups(1), tmp_path, monkeypatch), FakeCgroups(1, controllers=("memory",))
    other.add(batch.home, *(process.pid for process in batch.add("c1", batch.home)))
    (tmp_path / "memory").mkdir()
    hierarchy = replace(other.hierarchy, controller="memory")
    memory = Tree(hierarchy, OriginalValuesFile(tmp_path / "memory", boot_id="b"), OWN)
    batch.limiter = BatchLimiter(HOST, QosPolicy(), {"cpu": batch.limiter.cpu, "memory": memory})
    batch.modes(ENFORCE, ENFORCE, memory_reclaim=MemoryReclaimPolicy(mode=OBSERVE))
    batch.run(3)
    assert f"{batch.own}/c1" in batch.fake.groups
    assert (other.calls > 0, other.writes, set(other.groups)) == (True, [], {"", batch.home})
    batch.modes(ENFORCE, ENFORCE, memory_reclaim=MemoryReclaimPolicy(mode=ENFORCE))
    batch.run(3)
    assert f"{batch.own}/c1" in other.groups


def test_a_kernel_that_refuses_to_reclaim_is_asked_again_only_after_a_long_while(
    batch: Batch, caplog: pytest.LogCaptureFixture
) -> None:
    names = {"memory.limit_in_bytes", "memory.high", "memory.reclaim"}
    batch.fake.fails = {f"{batch.fake.mount}/hadoop-yarn/{name}": errno.EINVAL for name in names}
    batch.memory_percent = 90
    with caplog.at_level("WARNING"):
        batch.run(100)
    assert len(messages(caplog.records, "memory_not_reclaimed")) == 1
    assert batch.limiter.reclaimer is not None
    assert "Invalid argument" in batch.limiter.reclaimer.unavailable["hadoop-yarn"]
    batch.fake.fails.clear()
    batch.tick(600)
    batch.run(3)
    assert used(batch) < 9 * GIB
