"""What this host's own control groups and CPU affinity allow a daemon, as the kernel says it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest
from tests.e2e.host_cgroups.stage import until

from fallow_core.model.control_file import ControlFile
from fallow_core.model.host_limit import HostLimit
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import hierarchies
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.daemon_limits import DaemonLimits
from fallow_core.node.host_sampler import HostSampler
from fallow_core.node.procfs import PROC_ROOT, read_processes

TOP = f"fallow-daemon-{os.getpid()}"
PARENT = "import subprocess, sys; subprocess.run(['sleep', '60'])"


@pytest.fixture
def trees(hierarchy: Hierarchy) -> Iterator[dict[str, Hierarchy]]:
    """The hierarchies of v1, each with a group two levels deep."""
    found, _ = hierarchies(Files())
    if hierarchy.version != 1 or any(one.version != 1 for one in found.values()) or len(found) < 3:
        pytest.skip("needs the controllers cpu, memory and cpuset on cgroup v1")
    needed = {"cpu": "cpu.shares", "memory": "memory.limit_in_bytes", "cpuset": "cpuset.cpus"}
    for controller, tree in found.items():
        tree.make(TOP, needed[controller])
        tree.make(f"{TOP}/nm", needed[controller])
    yield found

    def gone() -> bool:
        for tree in found.values():
            for group in (*reversed([*tree.below(TOP)]), TOP):
                with suppress(OSError):
                    tree.remove(group)
        return all(tree.identity(TOP) is None for tree in found.values())

    until(gone, "the end of the groups")


def test_a_daemon_is_limited_by_the_groups_on_its_path_and_by_its_affinity(trees: dict[str, Hierarchy]) -> None:
    cpu, memory = trees["cpu"], trees["memory"]
    cpu.write(TOP, "cpu.cfs_quota_us", "50000")
    memory.write(f"{TOP}/nm", "memory.limit_in_bytes", str(2 << 30))
    with subprocess.Popen([sys.executable, "-c", PARENT]) as daemon:
        try:
            for tree in trees.values():
                tree.move(daemon.pid, f"{TOP}/nm")
            sampler = HostSampler()
            sampler.sample()
            until(lambda: sampler.sample().cpu is not None, "two readings")
            sample, processes = sampler.sample(), read_processes(PROC_ROOT)
            process = processes[daemon.pid].process
            limits = DaemonLimits(trees, lambda _tree, _group: {})
            found = limits.of([process], processes, sample, 0.0)[process]
            where = (f"{cpu.mount}/{TOP}/cpu.cfs_quota_us", f"{memory.mount}/{TOP}/nm/memory.limit_in_bytes")
            assert found == (
                HostLimit(resource="cpu", amount=500, where=where[0]),
                HostLimit(resource="memory", amount=2 << 30, where=where[1]),
            )
            unlimited = DaemonLimits(trees, lambda _tree, _group: {ControlFile.LIMIT: "-1"})
            assert [each.resource for each in unlimited.of([process], processes, sample, 0.0)[process]] == ["memory"]
            first = min(os.sched_getaffinity(0))
            os.sched_setaffinity(daemon.pid, {first})
            if len(os.sched_getaffinity(0)) > 1:
                cpu.write(TOP, "cpu.cfs_quota_us", "-1")
                bound = limits.of([process], processes, sample, 99.0)[process]
                assert bound[0] == HostLimit(resource="cpu", amount=1000, where=f"the CPU affinity {first}")
        finally:
            for pid in (*_children(daemon.pid), daemon.pid):
                os.kill(pid, 9)


def test_a_task_in_a_group_elsewhere_is_not_bound_by_the_group_of_its_daemon(trees: dict[str, Hierarchy]) -> None:
    memory = trees["memory"]
    memory.write(f"{TOP}/nm", "memory.limit_in_bytes", str(2 << 30))
    memory.make(f"{TOP}/yarn", "memory.limit_in_bytes")
    with subprocess.Popen([sys.executable, "-c", PARENT]) as daemon:
        try:
            memory.move(daemon.pid, f"{TOP}/nm")
            until(lambda: bool(_children(daemon.pid)), "its child")
            (child,) = _children(daemon.pid)
            memory.move(child, f"{TOP}/yarn")
            processes = read_processes(PROC_ROOT)
            process = processes[daemon.pid].process
            limits = DaemonLimits({"memory": memory}, lambda _tree, _group: {})
            assert limits.of([process], processes, HostSampler().sample(), 0.0)[process] == ()
        finally:
            for pid in (*_children(daemon.pid), daemon.pid):
                os.kill(pid, 9)


def _children(pid: int) -> list[int]:
    return [stat.pid for stat in read_processes(PROC_ROOT).values() if stat.parent_pid == pid]
