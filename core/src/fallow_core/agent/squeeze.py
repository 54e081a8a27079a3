"""Squeezing batch: its groups are found, their limits decided, and what is in force is made so and kept so."""

import logging
import math
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction

from fallow_core.agent.batch_groups import BatchGroup, BatchGroups
from fallow_core.agent.knobs import Knobs, Wanted
from fallow_core.agent.placements import Placements
from fallow_core.log import event
from fallow_core.model.qos_policy import QosPolicy, StrategyMode
from fallow_core.model.task import TaskKey
from fallow_core.node.cgroups import cpu
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.procfs import PROC_ROOT, read_process
from fallow_core.node.task_usage import BatchPass
from fallow_core.plugins.instance import PluginInstance
from fallow_core.qos import cpu_suppress
from fallow_core.qos.cpu_suppress import CpuLimits, CpuSuppressState, GroupUse
from fallow_core.qos.need import NodeView
from fallow_hookspecs import Node, Process

log = logging.getLogger("fallow.agent")

OWN_PREFIX = "fallow."
TELL_SHARE = 10
"""A limit that changed by a tenth of the node is worth a line in the log."""


class Squeeze:
    """The batch groups of one node. Every method belongs to the thread that ticks it.

    `groups` are those found with the newest tick, `limits` what was decided for them.
    """

    def __init__(self, node: Node, policy: QosPolicy, hierarchy: Hierarchy, knobs: Knobs) -> None:
        self.policy = policy
        self.hierarchy = hierarchy
        self.knobs = knobs
        self.groups: dict[str, BatchGroup] = {}
        self.limits: CpuLimits | None = None
        self.found = BatchGroups(hierarchy, OWN_PREFIX + node.name)
        self.placements = Placements(node, OWN_PREFIX + node.name)
        self._state = CpuSuppressState()
        self._told: dict[str, int] = {}

    def act(
        self,
        view: NodeView,
        members: Mapping[TaskKey, Collection[Process]],
        batch: BatchPass,
        instances: Mapping[str, PluginInstance],
        clusters: Collection[str],
    ) -> None:
        """Decide, and do it as far as strategies enforce.

        :param clusters: those of which there may be changes. All other groups are put back as they were found.
        """
        suppress, reconcile = self.policy.cpu_suppress.mode, self.policy.cgroup_reconcile.mode
        if suppress is StrategyMode.OFF and reconcile is StrategyMode.OFF:
            self.groups, self.limits, self._state = {}, None, CpuSuppressState()
            self.release(self._roots())
            return
        tasks = [task for task in view.tasks if task.cluster in clusters and members.get(task.key)]
        self.placements.step(tasks, instances, view.now)
        self.groups = self.found.find(tasks, members, self.placements.known, batch, view.now)
        self._decide(view)
        self._put_back(clusters)
        if reconcile is StrategyMode.ENFORCE:
            self._take_in()
        for path, group in self.groups.items():
            self._apply(path, group)

    def release(self, groups: Iterable[str]) -> None:
        """Put groups back as they were found."""
        for group in sorted(groups, key=lambda group: group.count("/")):
            self.knobs.release(group)
            if group not in self.knobs.kept:
                event(log, logging.INFO, "group_released", group=f"/{group}")

    def release_all(self) -> None:
        """Put every group back; what could not be is in the problems of `knobs`."""
        self.release(self._roots())

    def _decide(self, view: NodeView) -> None:
        if self.policy.cpu_suppress.mode is StrategyMode.OFF:
            self.limits, self._state = None, CpuSuppressState()
            return
        uses = {path: _use(view, group) for path, group in self.groups.items()}
        self._state, self.limits = cpu_suppress.decide(view, uses, self.policy.cpu_suppress, self._state)
        for path, limit in self.limits.groups.items():
            told = self._told.get(path)
            if told is None or abs(limit - told) * TELL_SHARE >= self.limits.terms["capacity"]:
                self._told[path] = limit
                name = "cpu_limit" if self.limits_enforced(self.groups[path]) else "cpu_would_limit"
                event(log, logging.INFO, name, group=f"/{path}", milli=limit, before=told, **self.limits.terms)

    def limits_enforced(self, group: BatchGroup) -> bool:
        """Whether a limit of a group is put in force: one of Fallow's own is only made by the other strategy."""
        made = group.home is None or self.policy.cgroup_reconcile.mode is StrategyMode.ENFORCE
        return made and self.policy.cpu_suppress.mode is StrategyMode.ENFORCE

    def _put_back(self, clusters: Collection[str]) -> None:
        suppress, reconcile = self.policy.cpu_suppress.mode, self.policy.cgroup_reconcile.mode
        neither = StrategyMode.ENFORCE not in (suppress, reconcile)
        for root in self._roots():
            kept = self.knobs.kept[root]
            unmade = kept.home is not None and reconcile is not StrategyMode.ENFORCE
            if neither or unmade or root in self.found.foreign or kept.clusters.isdisjoint(clusters):
                self.release((root,))

    def _roots(self) -> list[str]:
        """The groups that were changed for their own sake, not for that of one above."""
        kept = self.knobs.kept
        return [one for one in kept if not any(one.startswith(f"{other}/") for other in kept)]

    def _take_in(self) -> None:
        for path, group in self.groups.items():
            if group.home is None or (not group.to_move and path in self.knobs.kept):
                continue
            alive = [process.pid for process in group.to_move if _is_alive(process)]
            self.knobs.take_in(path, group.home, group.clusters, alive)

    def _apply(self, path: str, group: BatchGroup) -> None:
        limit = self.limits.groups.get(path) if self.limits is not None and self.limits_enforced(group) else None
        enforced = self.policy.cgroup_reconcile.mode is StrategyMode.ENFORCE
        if limit is None and not enforced and path not in self.knobs.kept:
            return
        if limit is None and self.limits_enforced(group):
            return  # nothing is known: what is in force stays
        weight = cpu.LEAST_WEIGHT[self.hierarchy.version] if enforced else None
        wanted = None if limit is None else Fraction(limit, 1000)
        self.knobs.apply(path, Wanted(clusters=group.clusters, limit=wanted, weight=weight))


def _use(view: NodeView, group: BatchGroup) -> GroupUse:
    return GroupUse(
        used=math.ceil(sum(view.use(task, "cpu") or 0 for task in group.tasks)),
        requested=sum(task.requested.cpu_milli for task in group.tasks),
    )


def _is_alive(process: Process) -> bool:
    """Whether a pid is still that of the process: it could be another's by now."""
    stat = read_process(PROC_ROOT, process.pid)
    return stat is not None and stat.process == process
