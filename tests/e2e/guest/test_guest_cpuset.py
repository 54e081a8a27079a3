"""Sets of CPUs on this kernel: chosen for groups that the framework made, and put back while tasks run in them."""

import os
from pathlib import Path

from tests.e2e.guest.conftest import Start

from fallow_core.agent.throttling.cgroup_plan import GroupTarget
from fallow_core.agent.throttling.cgroup_writer import CgroupWriter
from fallow_core.node import topology
from fallow_core.node.cgroups import cpuset
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.state.original_values import OriginalValuesFile

CLUSTERS = frozenset({"yarn/e2e"})


def test_tasks_that_run_on_get_all_cpus_back(hierarchy: Hierarchy, top: str, start: Start, tmp_path: Path) -> None:
    online = frozenset(cpu.number for cpu in topology.read_topology(Files()))
    batch, task = f"{top}/batch", f"{top}/batch/task"
    hierarchy.make(batch, "cpu.weight")
    hierarchy.pass_on(batch)
    hierarchy.make(task, "cpu.weight")
    pid = start(task, "sleep", "600")
    assert cpuset.available(hierarchy, batch) == online
    acting = CgroupWriter(hierarchy, OriginalValuesFile(tmp_path))
    for target in ({1}, {0, 1}, {0}):
        acting.apply(batch, GroupTarget(clusters=CLUSTERS, cpus=frozenset(target)))
        assert (acting.problems, os.sched_getaffinity(pid)) == ({}, target)
    later = CgroupWriter(hierarchy, OriginalValuesFile(tmp_path))  # after a kill
    later.release(batch)
    assert (later.changed_groups, later.problems, frozenset(os.sched_getaffinity(pid))) == ({}, {}, online)


def test_a_group_with_a_process_that_is_bound_is_seen(hierarchy: Hierarchy, top: str, start: Start) -> None:
    online = frozenset(cpu.number for cpu in topology.read_topology(Files()))
    bound = f"{top}/bound"
    hierarchy.make(bound, "cpu.weight")
    hierarchy.write(bound, "cpuset.cpus", "1")
    empty = cpuset.pinned(hierarchy, [], online)
    start(bound, "sleep", "600")
    found, of_batch = cpuset.pinned(hierarchy, [], online), cpuset.pinned(hierarchy, [bound], online)
    assert (empty, found, of_batch) == (frozenset(), frozenset({1}), frozenset())
