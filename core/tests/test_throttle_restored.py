"""One of two clusters on a host is restored: no control group that contains a task of it is changed."""

from dataclasses import replace
from pathlib import Path

import pytest
from core.tests.fake_agent import CLUSTER, key
from core.tests.fake_cgroups import FakeCgroups
from core.tests.fake_framework import cluster_config, plugin_of
from core.tests.test_throttle import ENFORCE, Batch, made

from fallow_core.model.qos_policy import MemoryReclaimPolicy
from fallow_core.model.task import TaskKey
from fallow_core.plugins.instance import PluginInstance

OTHER = "alpha/b"
BOTH = {CLUSTER, OTHER}


@pytest.fixture(params=[1, 2])
def batch(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Batch:
    fake = FakeCgroups(request.param, controllers=("cpu", "memory"))
    batch = Batch(fake, tmp_path, monkeypatch)
    batch.instances[OTHER] = PluginInstance(
        plugin_of(lambda _: batch.framework), cluster_config("b"), clock=lambda: batch.now
    )
    fake.swap_free = 1 << 34
    batch.clusters = set(BOTH)
    return batch


def belongs_to_other(batch: Batch, *names: str) -> None:
    for name in names:
        batch.tasks[name] = replace(batch.tasks[name], cluster=OTHER)
        batch.members[TaskKey(OTHER, name)] = batch.members.pop(key(name))


def restore(batch: Batch, *clusters: str) -> None:
    batch.clusters = BOTH - set(clusters)


def test_a_group_that_both_share_is_put_back_at_once_and_throttled_again_at_once(batch: Batch) -> None:
    made(batch, "c1", "c2")
    belongs_to_other(batch, "c2")
    before = batch.fake.values()
    batch.run(2)
    assert batch.quota("hadoop-yarn") == 600_000
    restore(batch, OTHER)
    batch.tick()
    assert batch.fake.values() == before
    why = "/hadoop-yarn contains tasks of a restored or removed cluster too"
    assert batch.limiter.cpu.finder.ungrouped == {key("c1"): why}
    batch.run(60)
    assert batch.fake.values() == before
    restore(batch)
    batch.tick()
    assert batch.quota("hadoop-yarn") == 500_000  # it grows from what all batch was allowed, less its use meanwhile
    batch.tick()
    assert batch.quota("hadoop-yarn") == 600_000


def test_tasks_in_a_group_of_fallow_are_moved_back_and_those_of_the_other_cluster_are_throttled_alone(
    batch: Batch,
) -> None:
    batch.add("c1", batch.home)
    (alone,) = batch.add("c2", batch.home)
    belongs_to_other(batch, "c2")
    batch.run(2)
    assert batch.fake.groups[f"{batch.own}/c2"].pids == [alone.pid]
    restore(batch, OTHER)
    batch.tick()
    assert batch.own not in batch.fake.groups
    batch.run(2)
    assert batch.fake.groups[batch.home].pids == [alone.pid]
    assert [path for path in batch.fake.groups if path.startswith(batch.own)] == [batch.own, f"{batch.own}/c1"]
    assert batch.quota(batch.own) is not None
    restore(batch)
    batch.run(2)
    assert batch.fake.groups[f"{batch.own}/c2"].pids == [alone.pid]


def test_groups_of_their_own_are_not_concerned_by_each_other(batch: Batch) -> None:
    made(batch, "c1")
    batch.add("c2", "other/c2", cgroups=("other/c2",), setting="the.setting")
    belongs_to_other(batch, "c2")
    before = batch.fake.values()
    batch.run(2)
    assert batch.quota("other") is not None
    restore(batch, OTHER)
    batch.tick()
    assert batch.quota("hadoop-yarn") is not None
    assert batch.fake.values()["other"] == before["other"]


def test_no_memory_is_reclaimed_from_a_group_with_tasks_of_a_restored_cluster(batch: Batch) -> None:
    made(batch, "c1", "c2")
    belongs_to_other(batch, "c2")
    batch.fake.add("hadoop-yarn", inactive_anon=1 << 34)
    batch.modes(ENFORCE, ENFORCE, memory_reclaim=MemoryReclaimPolicy(mode=ENFORCE, cool_down_seconds=0.0))
    restore(batch, OTHER)
    batch.memory_percent = 94
    batch.run(5)
    assert batch.fake.groups["hadoop-yarn"].inactive_anon == 1 << 34
    assert not batch.limiter.relief().memory.possible
    restore(batch)
    batch.run(5)
    assert batch.fake.groups["hadoop-yarn"].inactive_anon < 1 << 34


def test_after_a_restart_a_restored_cluster_is_put_back_and_its_plugin_is_not_asked(batch: Batch) -> None:
    made(batch, "c1")
    before = batch.fake.values()
    batch.run(2)
    assert batch.fake.values() != before
    batch.start()
    asked = len(batch.framework.asked)
    restore(batch, *BOTH)
    batch.run(20)
    assert batch.fake.values() == before
    assert len(batch.framework.asked) == asked


def test_steps_that_were_only_observed_give_reclaiming_none_of_its_time(batch: Batch) -> None:
    made(batch, "c1")
    batch.fake.add("hadoop-yarn", inactive_anon=1 << 34)
    batch.memory_percent = 94
    observe = MemoryReclaimPolicy(cool_down_seconds=0.0)
    batch.modes(ENFORCE, ENFORCE, memory_reclaim=observe)
    batch.run(30)
    batch.modes(ENFORCE, ENFORCE, memory_reclaim=replace(observe, mode=ENFORCE))
    batch.tick()
    assert batch.limiter.relief().memory.begun_at == batch.now
