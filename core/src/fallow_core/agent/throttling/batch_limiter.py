"""Limits batch on one node: finds its groups, decides their limits, and applies these with each round."""

import logging
from collections.abc import Collection, Mapping
from fractions import Fraction
from functools import partial

from fallow_core.agent.throttling.batch_groups import BatchGroup
from fallow_core.agent.throttling.cgroup_plan import GroupTarget
from fallow_core.agent.throttling.cpu_sets import CpuSets
from fallow_core.agent.throttling.group_texts import group_texts, task_texts
from fallow_core.agent.throttling.memory_reclaim import MemoryReclaimer
from fallow_core.agent.throttling.online_pressure import OnlinePressure
from fallow_core.agent.throttling.placements import Placements
from fallow_core.agent.throttling.tree import Tree
from fallow_core.log import event
from fallow_core.model.qos_policy import Placing, QosPolicy, StrategyMode
from fallow_core.model.task import TaskKey
from fallow_core.node.cgroups import cpuset
from fallow_core.node.cgroups.cpuset import Cpus
from fallow_core.node.task_usage import BatchPass
from fallow_core.plugins.instance import PluginInstance
from fallow_core.qos import cpu_suppress
from fallow_core.qos.cpu_suppress import CpuLimits, CpuSuppressState, GroupUse
from fallow_core.qos.need import NodeView
from fallow_core.qos.relief import NodeRelief, Relief
from fallow_hookspecs import Node, Process

log = logging.getLogger("fallow.agent")

OWN_PREFIX = "fallow."
LOGGED_SHARE = 4
"""A limit is logged when it has changed by a quarter of the node."""


class BatchLimiter:
    """The batch groups of one node. Every method belongs to the thread of the loop.

    `trees`: the tree of each controller that this host has, at least of `cpu`; several controllers may have the same.
    `limits`: the newest decision about CPU.
    """

    def __init__(
        self, node: Node, policy: QosPolicy, trees: Mapping[str, Tree], kubelet_state: str = cpuset.KUBELET_STATE
    ) -> None:
        self.policy = policy
        self.cpu = trees["cpu"]
        self.memory = trees.get("memory")
        self.reclaimer = None if self.memory is None else MemoryReclaimer(self.memory)
        self.cpu_sets = CpuSets(trees["cpuset"], kubelet_state) if "cpuset" in trees else None
        self.pressure = OnlinePressure(self.cpu.hierarchy)
        self.limits: CpuLimits | None = None
        self.placements = Placements(node, OWN_PREFIX + node.name)
        self.trees = list({id(tree): tree for tree in trees.values()}.values())
        self._cpuset = trees.get("cpuset")
        self._state = CpuSuppressState()
        self._limited_at: float | None = None
        self._logged: dict[str, int] = {}

    @property
    def groups(self) -> Mapping[str, BatchGroup]:
        """The batch groups whose CPU is limited."""
        return self.cpu.groups

    def step(
        self,
        view: NodeView,
        members: Mapping[TaskKey, Collection[Process]],
        batch: BatchPass,
        instances: Mapping[str, PluginInstance],
        clusters: Collection[str],
    ) -> None:
        """Decide, and apply what strategies enforce.

        Between a decision and its write nothing is waited for: only the original value of a file is saved.

        :param clusters: the clusters whose groups may be changed. All other groups are restored.
        """
        used = [tree for tree in self.trees if self._is_used(tree)]
        if used:
            tasks = [task for task in view.tasks if task.cluster in clusters and members.get(task.key)]
            self.placements.step(tasks, instances, view.now)
            left_alone = {each for key, own in members.items() if key.cluster not in clusters for each in own}
        for tree in self.trees:
            if tree in used:
                known, exempt, changed = self.placements.known, self.policy.exempt, tree.writer.changed_groups
                tree.groups = tree.finder.find(
                    tasks, members, known, batch, view.now, left_alone=left_alone, exempt=exempt, changed=changed
                )
                tree.release_unused(clusters, changes=self._changes(tree), creates=self._creates(tree))
            else:
                tree.release_all()
        if self.reclaimer is not None:
            self.reclaimer.take_result()
        self._decide(view)
        for tree in used:
            targets = {path: self._target(tree, group, view) for path, group in tree.groups.items()}
            tree.apply(
                {path: target for path, target in targets.items() if target is not None},
                partial(task_texts, self.policy, tree),
                view.now,
                creates=self._creates(tree),
            )
        self._note_limited(view.now)
        self._log_limits()
        if self.reclaimer is not None and self.memory is not None:
            self.reclaimer.step(view, self.memory.groups, self.policy.memory_reclaim)

    def release_all(self) -> None:
        """Restore every group; the problems of each tree's writer say which ones could not be restored."""
        for tree in self.trees:
            tree.release_all()

    def relief(self) -> NodeRelief:
        """What throttling may still free, so that tasks are terminated only afterwards."""
        reclaimer, suppress = self.reclaimer, self.policy.cpu_suppress.mode
        enforced = self.policy.memory_reclaim.mode is StrategyMode.ENFORCE
        limits = suppress is StrategyMode.ENFORCE and bool(self.groups) and not self.cpu.writer.problems
        return NodeRelief(
            memory=Relief()
            if reclaimer is None or not enforced
            else Relief(possible=reclaimer.state.swappable > 0, begun_at=reclaimer.state.begun_at),
            cpu=Relief(possible=limits, begun_at=self._limited_at),
        )

    def limits_enforced(self, group: BatchGroup) -> bool:
        """Whether the limit of a group is applied. Groups of Fallow exist only where `cgroup_reconcile` enforces."""
        return (group.home is None or self._reconciles()) and self.policy.cpu_suppress.mode is StrategyMode.ENFORCE

    def _reconciles(self) -> bool:
        return self.policy.cgroup_reconcile.mode is StrategyMode.ENFORCE

    def _modes(self, tree: Tree) -> list[StrategyMode]:
        """The modes of the strategies that change files of a tree."""
        policy, reconcile = self.policy, self.policy.cgroup_reconcile
        modes = []
        if "cpu" in tree.controllers:
            modes += [policy.cpu_suppress.mode, reconcile.mode, policy.identity.mode]
        if "memory" in tree.controllers:
            modes += [policy.memory_reclaim.mode]
            modes += [reconcile.mode] if reconcile.memory_limit_percent is not None else []
        if "cpuset" in tree.controllers and policy.cpu_suppress.cpuset is not Placing.OFF:
            modes += [policy.cpu_suppress.mode]
        return modes

    def _is_used(self, tree: Tree) -> bool:
        return any(mode is not StrategyMode.OFF for mode in self._modes(tree))

    def _changes(self, tree: Tree) -> bool:
        return StrategyMode.ENFORCE in self._modes(tree)

    def _creates(self, tree: Tree) -> bool:
        return self._changes(tree) and self._reconciles()

    def _decide(self, view: NodeView) -> None:
        pressed = self.pressure.step(self.policy.online_pressure, view.now)
        if self.policy.cpu_suppress.mode is StrategyMode.OFF:
            self.limits, self._state = None, CpuSuppressState()
            return
        uses = {path: _use(view, group) for path, group in self.groups.items()}
        self._state, self.limits = cpu_suppress.decide(
            view, uses, self.policy.cpu_suppress, self._state, pressed=pressed
        )
        self._choose_cpus(view.now)

    def _choose_cpus(self, now: float) -> None:
        """Without a CPU limit the CPUs stay as they are."""
        if self.cpu_sets is None or self._cpuset is None:
            return
        placing = self.policy.cpu_suppress.cpuset
        if placing is Placing.OFF:
            self.cpu_sets.clear()
        elif self.limits is not None and self.limits.groups:
            self.cpu_sets.choose(self._cpuset.groups, sum(self.limits.groups.values()), placing, now)

    def _note_limited(self, now: float) -> None:
        limited = self.limits is not None and any(map(self.limits_enforced, self.groups.values()))
        self._limited_at = (now if self._limited_at is None else self._limited_at) if limited else None

    def _log_limits(self) -> None:
        if self.limits is None:
            return
        for path, limit in self.limits.groups.items():
            before = self._logged.get(path)
            if before is None or abs(limit - before) * LOGGED_SHARE >= self.limits.terms["capacity"]:
                self._logged[path] = limit
                name = "cpu_limit" if self.limits_enforced(self.groups[path]) else "cpu_would_limit"
                event(log, logging.INFO, name, group=f"/{path}", milli=limit, before=before, **self.limits.terms)

    def _target(self, tree: Tree, group: BatchGroup, view: NodeView) -> GroupTarget | None:
        """The target of a group; `None` if it is not changed."""
        limits = self.limits_enforced(group) and "cpu" in tree.controllers
        texts, cpus = group_texts(self.policy, tree, group, view), self._cpus(tree, group)
        if not limits and not texts and cpus is None and group.path not in tree.writer.changed_groups:
            return None
        milli = self.limits.groups.get(group.path) if self.limits is not None and limits else None
        return GroupTarget(
            clusters=group.clusters,
            limit=None if milli is None else Fraction(milli, 1000),
            keep_limit=limits and milli is None,
            texts=texts,
            cpus=cpus,
            untouched=frozenset() if self.reclaimer is None else self.reclaimer.untouched(group.path),
        )

    def _cpus(self, tree: Tree, group: BatchGroup) -> Cpus | None:
        if self.cpu_sets is None or tree is not self._cpuset or not self.limits_enforced(group):
            return None
        return self.cpu_sets.chosen.get(group.path)


def _use(view: NodeView, group: BatchGroup) -> GroupUse:
    return GroupUse(
        used=sum(view.use(task, "cpu") or 0 for task in group.tasks),
        requested=sum(task.requested.cpu_milli for task in group.tasks),
        tasks=len(group.tasks),
    )
