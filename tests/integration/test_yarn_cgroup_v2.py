"""Containers that a NodeManager (3.5) put into groups of cgroup v2: the plugin finds them, core throttles them."""

from dataclasses import replace
from pathlib import Path

import pytest
from core.tests.fake_agent import FIRST_PID
from core.tests.fake_cgroups import FakeCgroups
from core.tests.test_throttle import OWN, Batch
from plugins.yarn.tests.proc_fakes import NM, NM_PID, NOW_TICKS, FakeProc, container, environment_of

from fallow_core.model.qos_policy import CgroupReconcilePolicy, StrategyMode
from fallow_hookspecs import TaskPlacement
from fallow_yarn.nm.procfs import own_cgroups, read_cgroups
from fallow_yarn.tasks.container_processes import ContainerProcesses
from fallow_yarn.tasks.placement import HIERARCHY, placement

ENFORCE = StrategyMode.ENFORCE
TREE = "batch/hadoop-yarn"
ONE, TWO = container(1), container(2)
MIB = 1 << 20
OF_CONTAINER = {"weight": 200, "memory_limit": 512 * MIB, "memory_low": 460 * MIB}
"""What a NodeManager gives a container of 2 vcores and 512 MB: `memory.low` is 90 % of that."""


class Node(Batch):
    """A v2 host; its NodeManager's containers are processes in /proc as well."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(FakeCgroups(2, controllers=("cpu", "memory")), folder, monkeypatch)
        self.proc = FakeProc(folder / "proc")

    def launch(self, container_id: str) -> None:
        """A container that its launcher, container-executor, put into the group that its NodeManager made."""
        pid = FIRST_PID + len(self.stats)
        group = f"{TREE}/{container_id}"
        command = ["container-executor", "al", "yarn", "1", container_id]
        told = f"cgroups={self.fake.mount}/{group}/cgroup.procs"
        launcher = pid + 1_000_000
        self.proc.add(launcher, parent=NM_PID, session=NM_PID, command=[*command, told])
        self.proc.add(pid, parent=launcher, environment=environment_of(container_id), cgroups=[f"0::/{group}"])
        place = self.placed(container_id)
        (process,) = self.add(container_id, group, cgroups=place.cgroups, setting=place.setting, movable=place.movable)
        assert process.pid == pid
        for name, value in OF_CONTAINER.items():
            setattr(self.fake.groups[group], name, value)

    def placed(self, container_id: str) -> TaskPlacement:
        """Where the plugin says that a container is."""
        found = ContainerProcesses(self.proc.root, lambda: NOW_TICKS).find((NM,))
        (place,) = placement([container_id], found, {}, OWN, self.proc.root).tasks
        return place


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    node = Node(tmp_path, monkeypatch)
    for container_id in (ONE, TWO):
        node.launch(container_id)
    return node


def limited(node: Node) -> None:
    """With limits of CPU, weights and memory in force."""
    node.modes(ENFORCE, ENFORCE, cgroup_reconcile=CgroupReconcilePolicy(mode=ENFORCE, memory_limit_percent=100))
    node.run(2)
    assert node.limiter.cpu.writer.problems == {}


def test_the_plugin_finds_the_group_of_a_container_and_says_that_its_node_manager_decides(node: Node) -> None:
    assert node.placed(ONE) == TaskPlacement(task_id=ONE, cgroups=(f"{TREE}/{ONE}",), setting=HIERARCHY)
    assert own_cgroups(ONE, read_cgroups(node.proc.root, FIRST_PID)) == (f"{TREE}/{ONE}",)
    assert node.fake.hierarchy.processes(f"{TREE}/{ONE}") == [FIRST_PID]


def test_limits_are_those_of_the_node_managers_hierarchy_and_the_containers_keep_their_own(node: Node) -> None:
    before = {name: replace(group) for name, group in node.fake.groups.items()}
    limited(node)
    tree = node.fake.groups[TREE]
    assert (tree.quota, tree.weight, tree.pids) == (600_000, 1, [])
    assert tree.memory_limit is not None
    after = {name: group for name, group in node.fake.groups.items() if name != TREE}
    assert after == {name: group for name, group in before.items() if name != TREE}
    assert {path for path, _ in node.fake.writes} == {
        f"{TREE}/{name}" for name in ("cpu.max", "cpu.weight", "memory.max")
    }


def test_a_protection_that_the_node_manager_changes_is_nobodys_reset_and_stays(node: Node) -> None:
    limited(node)
    node.fake.groups[f"{TREE}/{ONE}"].memory_low = 100 * MIB
    node.run(2)
    node.limiter.release_all()
    assert node.fake.groups[f"{TREE}/{ONE}"].memory_low == 100 * MIB
    assert node.limiter.cpu.writer.resets == 0


def test_a_node_manager_that_starts_again_and_lifts_the_limit_is_noticed_and_limited_again(node: Node) -> None:
    limited(node)
    node.fake.write(f"{node.fake.mount}/{TREE}/cpu.max", "max 100000")
    node.tick()
    assert (node.quota(TREE), node.limiter.cpu.writer.resets) == (600_000, 1)


def test_all_goes_back_also_after_a_container_has_ended_and_by_another_process(node: Node) -> None:
    before = {name: replace(group) for name, group in node.fake.groups.items()}
    limited(node)
    node.end(ONE)
    node.fake.vanish(f"{TREE}/{ONE}")
    node.tick()
    assert node.quota(TREE) == 600_000
    node.start()
    node.limiter.release_all()
    assert node.fake.groups == {name: group for name, group in before.items() if name != f"{TREE}/{ONE}"}
    assert node.limiter.cpu.writer.changed_groups == {}
