"""Squeezing batch: its groups are found, their limits decided, and what is in force is made so and kept so."""

import logging
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from pathlib import Path

from fallow_core.agent.batch_groups import LOOK_AGAIN_SECONDS, BatchGroup, BatchGroups, name_of
from fallow_core.agent.knobs import Knobs, Wanted
from fallow_core.agent.placements import Placements
from fallow_core.errors import CgroupError, SampleError
from fallow_core.log import event
from fallow_core.model.qos_policy import QosPolicy, StrategyMode
from fallow_core.model.task import TaskKey
from fallow_core.node.cgroups import cpu
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.procfs import read_process
from fallow_core.node.task_usage import BatchPass
from fallow_core.plugins.instance import PluginInstance
from fallow_core.qos import cpu_suppress
from fallow_core.qos.cpu_suppress import CpuLimits, CpuSuppressState, GroupUse
from fallow_core.qos.need import NodeView
from fallow_hookspecs import Node, Process

log = logging.getLogger("fallow.agent")

OWN_PREFIX = "fallow."
TELL_SHARE = 4
"""A limit that changed by a quarter of the node is worth a line in the log."""


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
        self._failed_at: dict[str, float] = {}

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
            self._take_in(view.now)
        for path, group in self.groups.items():
            self._apply(path, group)
        children = {f"{path}/{name_of(task.key)}" for path, group in self.groups.items() for task in group.tasks}
        self.knobs.forget_problems_but(children | self.groups.keys())

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
            unmade = kept.home is not None and (reconcile is not StrategyMode.ENFORCE or self._is_deserted(root))
            if neither or unmade or root in self.found.foreign or kept.clusters.isdisjoint(clusters):
                self.release((root,))

    def _is_deserted(self, group: str) -> bool:
        """Whether nothing is in a group any more: one of Fallow's own would keep the group above from being removed."""
        if group in self.groups:
            return False
        try:
            return not any(map(self.hierarchy.processes, (group, *self.hierarchy.below(group))))
        except (OSError, CgroupError):
            return False

    def _roots(self) -> list[str]:
        """The groups that were changed for their own sake, not for that of one above."""
        kept = self.knobs.kept
        return [one for one in kept if not any(one.startswith(f"{other}/") for other in kept)]

    def _take_in(self, now: float) -> None:
        self._failed_at = {path: at for path, at in self._failed_at.items() if path in self.groups}
        for path, group in self.groups.items():
            if group.home is None or now - self._failed_at.get(path, now - LOOK_AGAIN_SECONDS) < LOOK_AGAIN_SECONDS:
                continue
            if path not in self.knobs.kept or self.hierarchy.identity(path) is None:
                self.knobs.make(path, group.home, group.clusters)
            if path not in self.knobs.kept:
                self._failed_at[path] = now
                continue
            for task in group.tasks:
                alive = [process for process in group.to_move.get(task.key, ()) if self._is_alive(process)]
                if alive:
                    weight = cpu.weight_text(self.hierarchy.version, task.requested.cpu_milli)
                    self.knobs.take_in(path, name_of(task.key), weight, [process.pid for process in alive])
                    self.found.look_again(alive)
            self.knobs.clear(path, {name_of(task.key) for task in group.tasks})

    def _apply(self, path: str, group: BatchGroup) -> None:
        reconciles = self.policy.cgroup_reconcile.mode is StrategyMode.ENFORCE
        limits = self.limits_enforced(group)
        unmade = group.home is not None and path not in self.knobs.kept
        if unmade or (not limits and not reconciles and path not in self.knobs.kept):
            return
        milli = self.limits.groups.get(path) if self.limits is not None and limits else None
        wanted = Wanted(
            clusters=group.clusters,
            limit=None if milli is None else Fraction(milli, 1000),
            hold_limit=limits and milli is None,
            weight=cpu.LEAST_WEIGHT[self.hierarchy.version] if reconciles else None,
        )
        self.knobs.apply(path, wanted)

    def _is_alive(self, process: Process) -> bool:
        """Whether a pid is still that of the process: it could be another's by now."""
        try:
            stat = read_process(Path(self.hierarchy.proc_root), process.pid)
        except SampleError:
            return False
        return stat is not None and stat.process == process


def _use(view: NodeView, group: BatchGroup) -> GroupUse:
    return GroupUse(
        used=sum(view.use(task, "cpu") or 0 for task in group.tasks),
        requested=sum(task.requested.cpu_milli for task in group.tasks),
    )
