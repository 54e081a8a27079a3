"""A standalone Fallow that throttles batch on a host whose control groups are in memory."""

import time
from collections.abc import Callable, Collection
from dataclasses import replace

import pytest
from core.tests.fake_agent import FIRST_PID, task
from core.tests.fake_cgroups import FakeCgroups
from core.tests.fake_framework import FIRST_PROCESS, Framework, size
from core.tests.fake_standalone import FakeHost, config, serving, standalone, until
from prometheus_client.core import Metric

from fallow_core.agent.throttling import host_throttling
from fallow_core.agent.throttling.tree import Tree
from fallow_core.api import metrics
from fallow_core.api.control_socket import ask
from fallow_core.api.throttling import throttling_status
from fallow_core.cli.render_explain import explanation_lines
from fallow_core.cli.render_operations import restored
from fallow_core.cli.render_status import status_lines
from fallow_core.config.settings import Config
from fallow_core.errors import ControlError
from fallow_core.model.policy import PublishingMode, PublishingPolicy
from fallow_core.model.qos_policy import (
    CgroupReconcilePolicy,
    CpuSuppressPolicy,
    MemoryEvictPolicy,
    MemoryReclaimPolicy,
    Placing,
    QosPolicy,
    StrategyMode,
)
from fallow_core.model.sample import NodeSample
from fallow_core.node.procfs import ProcessStat
from fallow_core.node.task_usage import BatchPass
from fallow_core.runtime import restore
from fallow_core.runtime.standalone import Standalone
from fallow_hookspecs import Placement, Process, TaskList, TaskPlacement, hookimpl

WORKER = Process(FIRST_PID, 5)
ENFORCE = QosPolicy(
    cpu_suppress=CpuSuppressPolicy(mode=StrategyMode.ENFORCE),
    cgroup_reconcile=CgroupReconcilePolicy(mode=StrategyMode.ENFORCE),
)


class Host(FakeHost):
    """A host with one batch process."""

    def sample(self, daemons: Collection[Process] = ()) -> NodeSample:
        stat = ProcessStat(WORKER.pid, 1, WORKER.start_ticks, 0, 0)
        batch = frozenset({WORKER})
        self._pass = BatchPass(
            at=self._clock(), processes={WORKER.pid: stat}, batch=batch, cpu_milli={WORKER: 0}, memory_bytes={}
        )
        return super().sample(daemons)


class Placed(Framework):
    """A framework with one task, whose process may be moved."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock, a1=size(8))
        self.delay_seconds = 0.02
        self.listing = TaskList(tasks=(task("c1", WORKER),), age_seconds=0.0, complete=True)

    @hookimpl
    def set_cgroup_parent(self, parent: str) -> Placement:
        return Placement(new_tasks_follow=False, tasks=(TaskPlacement(task_id="c1", movable=(WORKER,)),), reason="no")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCgroups:
    fake = FakeCgroups(1)
    fake.add("nm", WORKER.pid, 77)
    monkeypatch.setattr(host_throttling, "Files", lambda: fake)
    monkeypatch.setattr(Tree, "_is_alive", lambda _, process: True)
    monkeypatch.setattr(restore, "LONGEST_SECONDS", 3.0)
    monkeypatch.setattr(restore, "POLL_SECONDS", 0.02)
    return fake


@pytest.fixture
def settings(tmp_path_factory: pytest.TempPathFactory) -> Config:
    policy = PublishingPolicy(mode=PublishingMode.ENFORCE, report_interval_seconds=0.1, urgent_interval_seconds=0.1)
    return config(tmp_path_factory.mktemp("f"), {"etl": Placed(time.monotonic)}, qos=ENFORCE, publishing=policy)


def started(settings: Config, fake: FakeCgroups) -> Standalone:
    """A Fallow that has limited its batch."""
    host = Host()
    host.used = size(4)
    fallow = standalone(settings, host)
    until(fallow, lambda: "nm/fallow.n1" in fake.groups and fake.groups["nm/fallow.n1"].quota is not None)
    return fallow


def families(fallow: Standalone) -> list[Metric]:
    found = throttling_status(fallow.throttling, fallow.clock())
    return list(metrics.throttling_families("n1", found))


def test_batch_is_limited_to_what_the_node_has_left_and_explain_says_how(settings: Config, fake: FakeCgroups) -> None:
    fallow = started(settings, fake)
    own = fake.groups["nm/fallow.n1"]
    assert (fake.groups["nm/fallow.n1/c1"].pids, own.quota, own.weight) == ([WORKER.pid], 600_000, 2)
    found = fallow.requests.explain({})
    text = "\n".join(explanation_lines(found))
    assert "CPU limit of batch (cpuSuppress enforce, cgroupReconcile enforce, identity observe)" in text
    assert "memoryReclaim is not available: no cgroup hierarchy with the controller memory is mounted" in text
    assert "identity is not available: this kernel has neither cpu.idle" in text
    assert "allowed 6.00 = 10.00 − margin 0.00 − all else 4.00, no less than 0.20" in text
    assert "/nm/fallow.n1 (1 tasks of alpha/etl): limited to 6.00; in force 6.00" in text
    samples = {
        (sample.name, sample.labels.get("group")): sample.value
        for family in families(fallow)
        for sample in family.samples
    }
    assert samples["fallow_throttle_available", None] == 1
    assert samples["fallow_group_cpu_limit_cores", "/nm/fallow.n1"] == 6.0
    assert samples["fallow_group_cpu_in_force_cores", "/nm/fallow.n1"] == 6.0
    assert samples["fallow_group_changes_total", None] == 2
    assert {
        sample.labels["strategy"]: sample.value
        for family in families(fallow)
        for sample in family.samples
        if sample.name == "fallow_strategy_available"
    } == {"cpuset": 1, "identity": 0, "memory_reclaim": 0}
    fallow.close()


@pytest.fixture
def with_memory(monkeypatch: pytest.MonkeyPatch) -> FakeCgroups:
    fake = FakeCgroups(1, controllers=("cpu", "memory"))
    fake.add("nm", WORKER.pid, 77)
    fake.swap_free = 1 << 40
    monkeypatch.setattr(host_throttling, "Files", lambda: fake)
    monkeypatch.setattr(Tree, "_is_alive", lambda _, process: True)
    return fake


def test_memory_goes_before_tasks_do_and_explain_says_how_much(settings: Config, with_memory: FakeCgroups) -> None:
    enforce = replace(
        ENFORCE,
        memory_reclaim=MemoryReclaimPolicy(mode=StrategyMode.ENFORCE, cool_down_seconds=0.0, window_seconds=3600.0),
        memory_evict=MemoryEvictPolicy(mode=StrategyMode.ENFORCE),
    )
    host = Host()
    host.used = size(1)
    fallow = standalone(replace(settings, qos=enforce), host)
    until(fallow, lambda: "nm/fallow.n1" in with_memory.groups)
    capacity = fallow.sample.memory.capacity if fallow.sample.memory is not None else 0
    with_memory.add("nm/fallow.n1", inactive_anon=capacity // 2)
    until(fallow, lambda: fallow.evictor.relief.memory.possible)  # before there is any pressure
    host.used = replace(host.used, memory_bytes=capacity * 92 // 100)
    until(fallow, lambda: with_memory.groups["nm/fallow.n1"].inactive_anon < capacity // 2 - capacity // 50)
    assert not fallow.evictor.terminations.active
    text = "\n".join(explanation_lines(fallow.requests.explain({})))
    assert "Memory of batch (memoryReclaim enforce)" in text
    assert "% of memory is used, the threshold is 85 %: pushes out" in " ".join(text.split())
    assert "of /nm/fallow.n1" in text
    assert "below 95 % of memory in use no task is terminated for it now" in text
    pushed_out = [
        sample.value
        for family in families(fallow)
        for sample in family.samples
        if sample.name == "fallow_reclaimed_bytes_total"
    ]
    assert pushed_out[0] >= capacity // 100
    fallow.close()


def test_a_running_fallow_puts_groups_back_and_leaves_them_alone(settings: Config, fake: FakeCgroups) -> None:
    before = fake.values()
    fallow = started(settings, fake)
    with serving(fallow):
        answer = restore.restore(settings, "somebody")
        assert (answer.done, answer.groups) == (True, ("/nm/fallow.n1",)), answer
        assert "control group /nm/fallow.n1: put back as it was found" in restored(answer)
        assert fake.values() == before
    for _ in range(5):
        fallow.step()
    assert fake.values() == before
    fallow.close()


def test_after_kill_9_this_process_puts_groups_back(settings: Config, fake: FakeCgroups) -> None:
    before = fake.values()
    started(settings, fake).close()
    assert fake.values() != before
    answer = restore.restore(settings, "ada")
    assert (answer.done, answer.groups) == (True, ("/nm/fallow.n1",)), answer
    assert fake.values() == before


def test_what_cannot_be_put_back_is_said(settings: Config, fake: FakeCgroups, monkeypatch: pytest.MonkeyPatch) -> None:
    started(settings, fake).close()
    monkeypatch.setattr(fake, "_move", lambda *args: None)
    answer = restore.restore(settings, "ada")
    assert (answer.done, answer.groups) == (False, ())
    assert any("/nm/fallow.n1: this control group is not as it was found" in text for text in answer.problems)


def test_what_enforces_and_lacks_its_controller_is_a_problem(settings: Config, fake: FakeCgroups) -> None:
    enforce = replace(
        ENFORCE,
        cpu_suppress=CpuSuppressPolicy(mode=StrategyMode.ENFORCE, cpuset=Placing.SPREAD),
        memory_reclaim=MemoryReclaimPolicy(mode=StrategyMode.ENFORCE),
    )
    fallow = started(replace(settings, qos=enforce), fake)
    assert fallow.requests.status().throttle_problems == (
        "memoryReclaim: no cgroup hierarchy with the controller memory is mounted",
        "cpuSuppress.cpuset: no cgroup hierarchy with the controller cpuset is mounted",
    )
    fallow.close()


def test_groups_that_cannot_be_reached_any_more_are_said_not_to_be_restored(
    settings: Config, fake: FakeCgroups
) -> None:
    started(settings, fake).close()
    fake.mountinfo = ""
    answer = restore.restore(settings, "ada")
    assert not answer.done
    assert any("no cgroup hierarchy with the controller cpu" in text for text in answer.problems)


def test_an_exempt_group_is_shown_with_the_tasks_that_are_not_throttled_for_it(
    settings: Config, fake: FakeCgroups
) -> None:
    before = fake.values()
    fallow = started(settings, fake)
    qos = replace(ENFORCE, exempt=("nm", "elsewhere"))
    fallow.config = replace(settings, qos=qos)
    until(fallow, lambda: fake.values() == before)
    status = fallow.requests.status()
    assert status.exempt_groups == {"nm": 1, "elsewhere": 0}
    shown = " ".join(" ".join(status_lines(status)).split())
    assert "/nm: exempt by qos.exempt: nothing is changed there; 1 tasks are not throttled for it" in shown
    fallow.close()


def test_a_daemon_in_a_small_group_is_offered_no_more_and_status_and_explain_name_the_file(
    settings: Config, fake: FakeCgroups
) -> None:
    fake.add("small/nm", WORKER.pid, FIRST_PROCESS.pid)
    fake.groups["small"].quota = 50_000
    fallow = standalone(settings, Host())
    until(fallow, lambda: any(node.limits for node in fallow.requests.status().nodes))
    (limit,) = fallow.requests.status().nodes[0].limits
    where = f"{fake.mount}/small/cpu.cfs_quota_us"
    assert (limit.cluster, limit.framework_node, limit.amount, limit.where) == ("alpha/etl", "a1", 500, where)
    explained = " ".join(" ".join(explanation_lines(fallow.requests.explain({}))).split())
    assert f"({where} allows its daemon no more)" in explained
    (row,) = fallow.controller.ledgers["n1"].cpu.rows
    assert row.most == 500
    fallow.close()


@pytest.mark.parametrize("release", [True, False])
def test_an_orderly_stop_lifts_limits_or_leaves_them_as_configured(
    settings: Config, fake: FakeCgroups, release: bool
) -> None:
    before = fake.values()
    fallow = started(settings, fake)
    held = fake.values()
    fallow.config = replace(settings, qos=replace(ENFORCE, release_on_exit=release))
    fallow.throttling.leave(fallow.config.qos)
    assert fake.values() == (before if release else held)
    fallow.close()


def test_a_host_without_control_groups_lends_all_the_same_and_says_so(settings: Config, fake: FakeCgroups) -> None:
    fake.mountinfo = ""
    fallow = standalone(settings, Host())
    until(fallow, lambda: fallow.evictor.tasks)
    status = fallow.requests.status()
    why = "batch is not slowed down: no cgroup hierarchy with the controller cpu is mounted"
    assert status.throttle_problems == (why,)
    assert f"! {why}" in status_lines(status)
    text = "\n".join(explanation_lines(fallow.requests.explain({})))
    assert "not available: no cgroup hierarchy with the controller cpu is mounted" in text
    up, *others = families(fallow)
    assert [sample.value for sample in up.samples] == [0]
    assert others
    assert not any(family.samples for family in others)
    assert fallow.requests.status().changed_groups == {}
    fallow.close()


def test_in_observe_nothing_is_changed_and_explain_says_what_would_be(settings: Config, fake: FakeCgroups) -> None:
    before = fake.values()
    fallow = standalone(replace(settings, qos=QosPolicy()), Host())
    until(fallow, lambda: fallow.throttling.limiter and fallow.throttling.limiter.groups)
    until(fallow, lambda: throttling_status(fallow.throttling, fallow.clock()).groups[0].limit_milli)
    text = "\n".join(explanation_lines(fallow.requests.explain({})))
    assert "would be limited to" in text
    assert "in force none, 1 processes not in it yet" in text
    assert fake.values() == before
    fallow.close()
    with pytest.raises(ControlError):
        ask(settings.control_socket, {"request": "status"})


def test_tasks_that_share_their_memory_group_with_others_are_said_to_be_why_none_is_reclaimed(
    settings: Config, with_memory: FakeCgroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = TaskPlacement(task_id="c1", setting="the.setting")
    monkeypatch.setattr(
        Placed, "set_cgroup_parent", hookimpl(lambda self, parent: Placement(new_tasks_follow=False, tasks=(where,)))
    )
    fallow = standalone(settings, Host())
    until(fallow, lambda: "memory_reclaim" in fallow.throttling.unavailable())
    why = fallow.throttling.unavailable()["memory_reclaim"]
    assert why.startswith("no group has batch alone; of 1 tasks the first: ")
    until(fallow, lambda: "the.setting" in fallow.throttling.unavailable()["memory_reclaim"])
    fallow.close()
