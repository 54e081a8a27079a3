from collections.abc import Mapping
from typing import Any

import pytest
from core.tests.fake_cgroups import FakeCgroups

from fallow_core.ledger.entries import NodeInputs
from fallow_core.ledger.node_ledger import node_ledger
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.control_file import ControlFile
from fallow_core.model.host_limit import HostLimit
from fallow_core.model.policy import NodePolicy, ResourcePolicy
from fallow_core.model.sample import NodeSample, Usage
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.daemon_limits import REREAD_SECONDS, DaemonLimits
from fallow_core.node.procfs import ProcessStat
from fallow_hookspecs import NodeState, Process, Resources

GIB = 1 << 30
DAEMON, OTHER = Process(5, 50), Process(6, 60)
HOST = NodeSample(
    cpu=Usage(measured_at=0, capacity=8000, used=0, batch_used=0),
    memory=Usage(measured_at=0, capacity=24 * GIB, used=0, batch_used=0),
)
FILES = {1: ("cpu.cfs_quota_us", "memory.limit_in_bytes"), 2: ("cpu.max", "memory.max")}


class Host:
    """A host of one version of control groups; `found` are the limits of a daemon by resource."""

    def __init__(self, version: int) -> None:
        self.groups = FakeCgroups(version, controllers=("cpu", "memory", "cpuset"))
        self.changed: dict[str, Mapping[ControlFile, str]] = {}
        self.children: list[int] = []
        self.now = 0.0
        hierarchy = self.groups.hierarchy
        self.limits = DaemonLimits(dict.fromkeys(("cpu", "memory", "cpuset"), hierarchy), self._originals)

    def _originals(self, _hierarchy: Hierarchy, group: str) -> Mapping[ControlFile, str]:
        return self.changed.get(group, {})

    def add(self, path: str, *pids: int, **values: Any) -> None:
        group = self.groups.add(path, *pids, **values)
        group.cpus = values.get("cpus", self.groups.online_cpus)

    def look(self, *daemons: Process) -> dict[Process, dict[str, HostLimit]]:
        parents = dict.fromkeys(self.children, 5) | {5: 1, 6: 1}
        stats = {pid: ProcessStat(pid, parent, pid * 10, 0, 0) for pid, parent in parents.items()}
        self.now += REREAD_SECONDS
        found = self.limits.of(daemons or (DAEMON,), stats, HOST, self.now)
        return {daemon: {limit.resource: limit for limit in limits} for daemon, limits in found.items()}

    def found(self) -> dict[str, HostLimit]:
        return self.look().get(DAEMON, {})


@pytest.fixture(params=[1, 2])
def host(request: pytest.FixtureRequest) -> Host:
    return Host(request.param)


def test_a_daemon_has_no_more_than_its_group_allows(host: Host) -> None:
    host.add("yarn", 5, quota=50_000, memory_limit=2 * GIB)
    cpu, memory = FILES[host.groups.version]
    assert host.found() == {
        "cpu": HostLimit(resource="cpu", amount=500, where=f"{host.groups.mount}/yarn/{cpu}"),
        "memory": HostLimit(resource="memory", amount=2 * GIB, where=f"{host.groups.mount}/yarn/{memory}"),
    }


def test_the_smallest_limit_of_the_whole_path_counts(host: Host) -> None:
    host.add("a", quota=300_000, memory_limit=8 * GIB)
    host.add("a/b", quota=100_000, memory_limit=16 * GIB)
    host.add("a/b/c", 5, quota=200_000)
    found = host.found()
    assert (found["cpu"].amount, found["memory"].amount) == (1000, 8 * GIB)
    assert "/a/b/cpu." in found["cpu"].where
    assert "/a/memory." in found["memory"].where


def test_a_group_without_limits_below_the_host_is_none(host: Host) -> None:
    host.add("yarn", 5, quota=9_000_000, memory_limit=99 * GIB)
    assert host.found() == {}


def test_a_daemon_with_few_cpus_has_no_more_than_these(host: Host) -> None:
    host.add("yarn", 5, cpus=frozenset({0, 3}))
    found = host.found()["cpu"]
    assert (found.amount, found.where) == (2000, f"{host.groups.mount}/yarn/cpuset.cpus")


def test_a_daemon_that_is_bound_to_cpus_without_a_group_has_no_more_than_these(host: Host) -> None:
    host.add("yarn", 5)
    host.groups.garbage["/proc/5/status"] = (
        "Name:\tjava\nCpus_allowed:\t0f\nCpus_allowed_list:\t0-2\nMems_allowed:\t1\n"
    )
    assert host.found()["cpu"] == HostLimit(resource="cpu", amount=3000, where="the CPU affinity 0-2")


def test_memory_that_is_slowed_down_from_a_mark_on_is_limited_there() -> None:
    host = Host(2)
    host.add("yarn", 5, memory_limit=8 * GIB, memory_high=6 * GIB)
    assert host.found()["memory"].where == "/sys/fs/cgroup/yarn/memory.high"


def test_a_limit_that_fallow_set_itself_is_none(host: Host) -> None:
    host.add("yarn", 5, quota=50_000, cpus=frozenset({1}))
    unlimited = {1: "-1", 2: "max 100000"}[host.groups.version]
    host.changed["yarn"] = {ControlFile.LIMIT: unlimited, ControlFile.CPUS: "0-7"}
    host.groups.garbage["/proc/5/status"] = "Cpus_allowed_list:\t1\n"
    assert host.found() == {}


def test_a_limit_that_does_not_hold_for_the_tasks_is_none_from_the_first_such_task_on(host: Host) -> None:
    host.add("service", 5, memory_limit=2 * GIB)
    host.add("yarn/task", 7, memory_limit=GIB)
    assert host.found()["memory"].amount == 2 * GIB
    host.children = [7]
    assert host.found() == {}
    host.children = []
    assert host.found() == {}


def test_the_limits_of_tasks_are_none_of_their_daemon(host: Host) -> None:
    host.add("nm", memory_limit=8 * GIB)
    host.add("nm/daemon", 5)
    host.add("nm/tasks/one", 7, memory_limit=GIB)
    host.children = [7, 999]  # the second has ended
    assert host.found()["memory"].amount == 8 * GIB


def test_a_daemon_that_comes_into_another_group_has_the_limits_of_that_one(host: Host) -> None:
    host.add("service", 5, memory_limit=2 * GIB)
    host.add("yarn/task", 7)
    host.children = [7]
    assert host.found() == {}
    host.children = []
    host.add("other", 5, memory_limit=3 * GIB)
    assert host.found()["memory"].amount == 3 * GIB


def test_daemons_share_the_limit_of_a_group_that_has_both(host: Host) -> None:
    host.add("yarn", memory_limit=8 * GIB)
    host.add("yarn/a", 5)
    host.add("yarn/b", 6, memory_limit=3 * GIB)
    found = host.look(DAEMON, OTHER)
    assert (found[DAEMON]["memory"].amount, found[OTHER]["memory"].amount) == (4 * GIB, 3 * GIB)
    assert found[DAEMON]["memory"].why.endswith(" allows its daemon no more, and 2 daemons share it")


def test_a_daemon_that_ended_or_is_elsewhere_has_no_limits_and_costs_the_others_none(host: Host) -> None:
    host.add("yarn", 6, memory_limit=GIB)
    assert host.look(DAEMON, OTHER)[OTHER]["memory"].amount == GIB
    assert "No such file" in host.limits.problems[DAEMON]


def test_limits_are_read_again_only_after_a_while(host: Host) -> None:
    host.add("yarn", 5, memory_limit=2 * GIB)
    assert host.found()["memory"].amount == 2 * GIB
    host.groups.groups["yarn"].memory_limit = GIB
    calls = host.groups.calls
    again = host.limits.of((DAEMON,), {}, HOST, host.now + REREAD_SECONDS - 1)
    assert again[DAEMON][0].amount == 2 * GIB
    assert host.groups.calls == calls
    assert host.found()["memory"].amount == GIB


def test_a_nodemanager_in_a_small_group_is_offered_no_more_than_that_and_why() -> None:
    """A group of 2 GiB and half a core, on a host of 24 GiB and 8 cores."""
    row = Row(
        key=RowKey("n", "yarn/etl", "n:1"),
        state=NodeState.RUNNING,
        unit=Resources(500, GIB),
        floor=Resources(0, 0),
        allocated=Resources(0, 0),
        measured_at=0,
        in_force=Resources(8000, 8 * GIB),
        maximum=Resources(64_000, 64 * GIB),
        limits=(
            HostLimit(resource="cpu", amount=500, where="/c/cpu.max"),
            HostLimit(resource="memory", amount=2 * GIB + 5, where="/c/memory.max"),
        ),
    )
    policy = NodePolicy(cpu=ResourcePolicy(watermark_percent=100), memory=ResourcePolicy(watermark_percent=100))
    ledger = node_ledger(NodeInputs(node="n", now=1, sample=HOST, rows=(row,), accounts={}, policy=policy))
    cpu, memory = ledger.cpu.rows[0], ledger.memory.rows[0]
    assert (cpu.size, memory.size) == (500, 2 * GIB)
    assert cpu.reasons == ("/c/cpu.max allows its daemon no more",)
    assert memory.reasons == ("/c/memory.max allows its daemon no more",)
