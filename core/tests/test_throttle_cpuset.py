"""Batch kept on some CPUs, on a node with control groups in memory: chosen, changed in an order, and put back."""

import json
from pathlib import Path

import pytest
from core.tests.fake_cgroups import FakeCgroups
from core.tests.test_cgroup_writer import ETL, writer
from core.tests.test_throttle import ENFORCE, OBSERVE, OFF, Batch, made
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fallow_core.agent.throttling.cgroup_plan import GroupTarget
from fallow_core.errors import CgroupError
from fallow_core.model.qos_policy import CpuSuppressPolicy, Placing
from fallow_core.node.cgroups.cpuset import KUBELET_STATE, kubelet_exclusive, parse, text_of
from fallow_core.node.topology import read_topology
from fallow_core.qos.cpuset import Cpu

ALL = ("cpu", "cpuset")
EIGHT = frozenset(range(8))


@pytest.fixture(params=[1, 2])
def batch(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Batch:
    """A node of 8 CPUs with a batch group that may have all of them."""
    batch = Batch(FakeCgroups(request.param, controllers=ALL), tmp_path, monkeypatch)
    made(batch, "c1")
    if batch.fake.version == 1:
        for group in ("hadoop-yarn", "hadoop-yarn/c1", "nm"):
            batch.fake.add(group, cpus=EIGHT)
    placing(batch, Placing.PACKED)
    return batch


def placing(batch: Batch, cpuset: Placing) -> None:
    batch.modes(ENFORCE, ENFORCE, cpu_suppress=CpuSuppressPolicy(mode=ENFORCE, cpuset=cpuset, step_percent=100))


def cpus(batch: Batch, group: str = "hadoop-yarn") -> list[int]:
    return sorted(batch.fake.effective(group))


def test_batch_is_on_as_many_cpus_as_its_limit_takes_and_on_all_of_its_group_afterwards(batch: Batch) -> None:
    before = {name: batch.fake.effective(name) for name in batch.fake.groups}
    batch.run(2)
    assert cpus(batch) == cpus(batch, "hadoop-yarn/c1") == [2, 3, 4, 5, 6, 7]
    assert batch.quota("hadoop-yarn") == 600_000
    batch.online = 6100
    batch.tick()
    assert cpus(batch) == cpus(batch, "hadoop-yarn/c1") == [6, 7]
    batch.online = 3000
    batch.tick()
    assert cpus(batch) == [3, 4, 5, 6, 7]
    assert batch.limiter.cpu.writer.problems == {}
    placing(batch, Placing.OFF)
    batch.run(2)
    writes = list(batch.fake.writes)
    batch.tick()
    assert batch.fake.writes == writes
    batch.modes(OFF, OFF)
    batch.tick()
    assert {name: batch.fake.effective(name) for name in batch.fake.groups} == before
    assert (batch.limiter.cpu.writer.changed_groups, batch.limiter.cpu.writer.problems) == ({}, {})


def test_what_others_change_back_is_set_again_within_a_tick(batch: Batch) -> None:
    batch.run(2)
    batch.fake.groups["hadoop-yarn"].cpus = EIGHT
    batch.tick()
    assert cpus(batch) == [2, 3, 4, 5, 6, 7]
    assert batch.limiter.cpu.writer.resets == 1


def test_cpus_of_a_bound_group_and_of_the_kubelets_exclusive_containers_are_left_out(batch: Batch) -> None:
    batch.fake.add("pods", cpus=EIGHT)
    batch.fake.add("pods/bound", 77, cpus=frozenset({6, 7}))
    batch.fake.add("pods/empty", cpus=frozenset({2}))
    state = {"policyName": "static", "defaultCpuSet": "0-3,6-7", "entries": {"uid": {"main": "4-5"}}}
    batch.fake.garbage[KUBELET_STATE] = json.dumps(state)
    batch.run(2)
    assert cpus(batch) == [0, 1, 2, 3]
    batch.fake.vanish("pods/bound")
    batch.run(11)
    assert cpus(batch) == [0, 1, 2, 3, 6, 7]


def test_a_kubelets_file_that_makes_no_sense_changes_no_cpu_and_is_named(batch: Batch) -> None:
    batch.fake.garbage[KUBELET_STATE] = "{"
    batch.run(2)
    assert cpus(batch) == sorted(EIGHT)
    assert batch.limiter.cpu_sets is not None
    assert KUBELET_STATE in batch.limiter.cpu_sets.unavailable
    assert batch.quota("hadoop-yarn") == 600_000


def test_a_group_without_the_controller_keeps_no_other_one_from_it(batch: Batch) -> None:
    batch.add("d1", "other/d1", cgroups=("other/d1",))
    batch.fake.garbage[f"{batch.fake.mount}/other/cpuset.cpus"] = "none"
    batch.run(2)
    assert cpus(batch) == [2, 3, 4, 5, 6, 7]
    assert batch.limiter.cpu_sets is not None
    assert "other/cpuset.cpus: expected a list" in batch.limiter.cpu_sets.unavailable
    assert batch.quota("other") is not None


def test_a_group_that_was_found_on_some_cpus_gets_no_others(batch: Batch) -> None:
    for group in ("hadoop-yarn/c1", "hadoop-yarn"):
        batch.fake.groups[group].cpus = frozenset({0, 1, 2})
    batch.run(2)
    assert cpus(batch) == [0, 1, 2]
    batch.online = 5900
    batch.tick()
    assert cpus(batch) == [0, 1, 2]
    batch.online = 6900
    batch.tick()
    assert cpus(batch) == [1, 2]


def test_observing_chooses_and_writes_nothing(batch: Batch) -> None:
    batch.modes(OBSERVE, OFF, cpu_suppress=CpuSuppressPolicy(mode=OBSERVE, cpuset=Placing.SPREAD))
    batch.run(3)
    assert cpus(batch) == sorted(EIGHT)
    assert batch.limiter.cpu_sets is not None
    assert batch.limiter.cpu_sets.chosen == {"hadoop-yarn": frozenset({2, 3, 4, 5, 6, 7})}
    assert batch.fake.writes == []


def test_tasks_without_a_group_are_kept_on_these_cpus_too(batch: Batch) -> None:
    batch.end("c1")
    batch.add("c2", batch.home)
    batch.run(3)
    assert cpus(batch, f"{batch.own}/c2") == [2, 3, 4, 5, 6, 7]
    batch.modes(OFF, OFF)
    batch.tick()
    assert batch.own not in batch.fake.groups


def test_a_quiet_tick_reads_little(batch: Batch) -> None:
    for number in range(100):
        made(batch, f"d{number}")
        batch.fake.groups[f"hadoop-yarn/d{number}"].cpus = EIGHT if batch.fake.version == 1 else frozenset()
    batch.run(3)
    before = batch.fake.calls
    batch.tick()
    assert batch.fake.calls - before < 30


PATHS = ["b", "b/x", "b/y", "b/x/1", "b/x/1/deep"]
SETS = st.frozensets(st.integers(0, 7), min_size=1)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=st.lists(SETS, min_size=5, max_size=5), wanted=st.lists(SETS, min_size=1, max_size=6))
def test_v1_refuses_no_step_whatever_is_found_below_and_all_goes_back(
    tmp_path_factory: pytest.TempPathFactory, found: list[frozenset[int]], wanted: list[frozenset[int]]
) -> None:
    fake = FakeCgroups(1, controllers=ALL)
    folder = tmp_path_factory.mktemp("cpuset")
    for pid, (path, own) in enumerate(zip(PATHS, found, strict=True), 5):
        above = path.rpartition("/")[0]
        fake.add(path, pid, cpus=(own & fake.groups[above].cpus) or fake.groups[above].cpus)
    before = {name: group.cpus for name, group in fake.groups.items()}
    for target in wanted:
        acting = writer(fake, folder)  # a new process each time, as after a kill
        acting.apply("b", GroupTarget(clusters=ETL, keep_limit=True, cpus=target))
        assert acting.problems == {}
        assert fake.groups["b"].cpus == target
        assert all(fake.groups[path].cpus for path in PATHS)
    acting = writer(fake, folder)
    acting.release("b")
    assert (acting.changed_groups, acting.problems) == ({}, {})
    assert {name: group.cpus for name, group in fake.groups.items()} == before


# What the kernel and the kubelet say


@given(st.frozensets(st.integers(0, 300)))
def test_a_list_of_cpus_is_read_as_it_is_written(cpus: frozenset[int]) -> None:
    assert parse(text_of(cpus), "x") == cpus


@pytest.mark.parametrize("text", ["a", "1-", "3-1", "1,-2", "0-99999999"])
def test_a_list_of_cpus_that_makes_no_sense_is_named(text: str) -> None:
    with pytest.raises(CgroupError, match=r"x: expected a list of CPUs"):
        parse(text, "x")


def test_kubelets_without_the_static_policy_have_no_exclusive_cpus() -> None:
    fake = FakeCgroups(1)
    assert kubelet_exclusive(fake, KUBELET_STATE) == frozenset()
    fake.garbage[KUBELET_STATE] = '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'
    assert kubelet_exclusive(fake, KUBELET_STATE) == frozenset()


def test_cores_and_zones_are_read_and_where_they_are_not_told_each_cpu_is_a_core() -> None:
    fake = FakeCgroups(1)
    root = "/sys/devices/system"
    fake.garbage[f"{root}/cpu/online"] = "0-2"
    assert read_topology(fake) == tuple(Cpu(number=n, core=n, zone=0) for n in range(3))
    fake.garbage[f"{root}/node/online"] = "0-1"
    fake.garbage[f"{root}/node/node0/cpulist"] = "0,2\n"
    fake.garbage[f"{root}/node/node1/cpulist"] = "1\n"
    fake.garbage[f"{root}/cpu/cpu2/topology/thread_siblings_list"] = "0,2"
    assert read_topology(fake) == (
        Cpu(number=0, core=0, zone=0),
        Cpu(number=1, core=1, zone=1),
        Cpu(number=2, core=0, zone=0),
    )
    del fake.garbage[f"{root}/cpu/online"]
    with pytest.raises(CgroupError, match="cpu/online"):
        read_topology(fake)
