"""The agent's throttle on this kernel: tasks in groups of their framework, and one that has none."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import pytest
from core.tests.fake_framework import cluster_config, plugin_of
from core.tests.qos_values import NODE, node_view, seen
from tests.e2e.guest.conftest import Start, until
from tests.e2e.told import control_files

from fallow_core.agent.throttling.batch_limiter import BatchLimiter
from fallow_core.agent.throttling.tree import Tree
from fallow_core.model.qos_policy import (
    CgroupReconcilePolicy,
    CpuSuppressPolicy,
    IdentityPolicy,
    Placing,
    QosPolicy,
    StrategyMode,
)
from fallow_core.model.task import ObservedTask
from fallow_core.node.cgroups import cpu
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.procfs import PROC_ROOT, ProcessStat, read_process
from fallow_core.node.task_usage import BatchPass
from fallow_core.plugins.instance import PluginInstance
from fallow_core.state.original_values import OriginalValuesFile
from fallow_hookspecs import Finding, Node, Placement, Resources, TaskPlacement, hookimpl

CLUSTER = "alpha/a"
NAMES = ("cpu.max", "cpu.weight", "cpu.idle", "memory.max", "cpuset.cpus.effective", "cgroup.procs")
OWN = f"fallow.{NODE}"
ENFORCE = StrategyMode.ENFORCE
SPINS = ("sh", "-c", "while :; do :; done")


class Framework:
    """Says where its tasks are."""

    def __init__(self) -> None:
        self.places: list[TaskPlacement] = []

    @hookimpl
    def set_cgroup_parent(self, parent: str) -> Placement:
        return Placement(new_tasks_follow=False, tasks=tuple(self.places), reason="")

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        return ()

    def close(self) -> None:
        pass


@dataclass(slots=True)
class Batch:
    """Tasks of one framework, each one process, and the throttle of the node that they are on."""

    hierarchy: Hierarchy
    folder: Path
    instance: PluginInstance
    framework: Framework
    tasks: dict[str, ObservedTask] = field(default_factory=dict)
    stats: dict[str, ProcessStat] = field(default_factory=dict)
    cpu_allowed: int = 16_000

    def limiter(self, policy: QosPolicy) -> BatchLimiter:
        """That of a new process, with what the one before left on the disk."""
        tree = Tree(self.hierarchy, OriginalValuesFile(self.folder), OWN)
        return BatchLimiter(Node(name=NODE), policy, dict.fromkeys(tree.controllers, tree))

    def add(self, name: str, pid: int, group: str = "") -> None:
        stat = read_process(PROC_ROOT, pid)
        assert stat is not None
        self.stats[name] = stat
        self.tasks[name] = seen(name, cluster=CLUSTER, cpu=4000, use=Resources(500, 0))
        movable = () if group else (stat.process,)
        self.framework.places.append(TaskPlacement(task_id=name, cgroups=(group,) if group else (), movable=movable))

    def tick(self, limiter: BatchLimiter) -> bool:
        now = time.monotonic()
        used = 500 * len(self.tasks)
        tasks = tuple(self.tasks.values())
        view = node_view(*tasks, now=now, cpu_allowed=self.cpu_allowed, cpu_batch_used=used)
        members = {self.tasks[name].key: [stat.process] for name, stat in self.stats.items()}
        batch = BatchPass(
            at=now,
            processes={stat.pid: stat for stat in self.stats.values()},
            batch=frozenset(stat.process for stat in self.stats.values()),
        )
        limiter.step(view, members, batch, {CLUSTER: self.instance}, {CLUSTER})
        return limiter.limits is not None and len(limiter.limits.groups) == 2


@pytest.fixture
def batch(hierarchy: Hierarchy, tmp_path: Path) -> Iterator[Batch]:
    framework = Framework()
    instance = PluginInstance(plugin_of(lambda _: framework), cluster_config("a"), clock=time.monotonic)
    yield Batch(hierarchy, tmp_path, instance, framework)
    closing = instance.close(5)
    until(lambda: closing.done, "the plugin's end")


def test_tasks_are_throttled_where_they_are_or_in_a_group_made_for_them_and_all_goes_back(
    hierarchy: Hierarchy, top: str, start: Start, batch: Batch
) -> None:
    yarn = f"{top}/yarn"
    hierarchy.make(yarn, "cpu.weight")
    hierarchy.pass_on(yarn)
    for name in ("c1", "c2"):
        hierarchy.make(f"{yarn}/{name}", "cpu.weight")
        batch.add(name, start(f"{yarn}/{name}", *SPINS), f"{yarn}/{name}")
    free = start("", *SPINS)
    batch.add("c3", free)
    before = control_files(hierarchy, "", NAMES)
    suppress, reconcile = CpuSuppressPolicy(mode=ENFORCE, cpuset=Placing.PACKED), CgroupReconcilePolicy(mode=ENFORCE)
    policy = QosPolicy(cpu_suppress=suppress, cgroup_reconcile=reconcile, identity=IdentityPolicy(mode=ENFORCE))

    observing = batch.limiter(QosPolicy())
    until(lambda: batch.tick(observing), "the groups to be found")
    assert control_files(hierarchy, "", NAMES) == before

    limiter = batch.limiter(policy)
    batch.cpu_allowed = 700
    until(lambda: batch.tick(limiter), "the groups to be found")
    batch.tick(limiter)
    assert limiter.limits is not None
    assert limiter.limits.groups.keys() == {yarn, OWN}
    for group, milli in limiter.limits.groups.items():
        text = hierarchy.read(group, "cpu.max")
        assert cpu.limit_of(hierarchy, group, text) == Fraction(milli, 1000)
        assert hierarchy.read(group, "cpu.idle") == "1"
        assert hierarchy.read(group, "cpuset.cpus") in ("0", "1")
    assert 690 <= sum(limiter.limits.groups.values()) <= 700
    assert os.sched_getaffinity(free) == {int(hierarchy.read(OWN, "cpuset.cpus"))}
    assert hierarchy.group_of(free) == f"{OWN}/c3"
    until(lambda: (cpu.throttled_seconds(hierarchy, yarn) or 0) > 0, "batch to be held back")
    now = control_files(hierarchy, "", NAMES)
    changed = {name for name in before if now[name] != before[name] and name.startswith((f"{yarn}/c1/", f"{yarn}/c2/"))}
    assert changed == {f"{yarn}/{name}/cpuset.cpus.effective" for name in ("c1", "c2")}

    later = batch.limiter(policy)
    later.release_all()
    assert control_files(hierarchy, "", NAMES) == before
