"""Throttling batch: its groups are found, their limits decided, and what is in force is made so and kept so."""

import logging
from collections.abc import Collection, Mapping
from fractions import Fraction
from functools import partial

from fallow_core.agent.throttling.batch_groups import BatchGroup
from fallow_core.agent.throttling.cgroup_plan import Wanted
from fallow_core.agent.throttling.cpu_sets import CpuSets
from fallow_core.agent.throttling.memory_reclaim import Reclaiming
from fallow_core.agent.throttling.online_pressure import Pressure
from fallow_core.agent.throttling.placements import Placements
from fallow_core.agent.throttling.tree import Tree
from fallow_core.log import event
from fallow_core.model.qos_policy import Placing, QosPolicy, StrategyMode
from fallow_core.model.task import ObservedTask, TaskKey
from fallow_core.node.cgroups import cpu, cpuset, memory
from fallow_core.node.cgroups.control_file import Knob
from fallow_core.node.cgroups.cpuset import Cpus
from fallow_core.node.task_usage import BatchPass
from fallow_core.plugins.instance import PluginInstance
from fallow_core.qos import cpu_suppress
from fallow_core.qos.cpu_suppress import CpuLimits, CpuSuppressState, GroupUse
from fallow_core.qos.need import NodeView
from fallow_core.qos.plan import Throttled, Throttles
from fallow_hookspecs import Node, Process

log = logging.getLogger("fallow.agent")

OWN_PREFIX = "fallow."
TELL_SHARE = 4
"""A limit that changed by a quarter of the node is worth a line in the log."""


class Throttle:
    """The batch groups of one node. Every method belongs to the thread that ticks it.

    `trees`: the hierarchy of each controller that this host has, at least of `cpu`; several may be one. `limits`: what
    was decided for the CPU of its groups.
    """

    def __init__(
        self, node: Node, policy: QosPolicy, trees: Mapping[str, Tree], kubelet_state: str = cpuset.KUBELET_STATE
    ) -> None:
        self.policy = policy
        self.cpu = trees["cpu"]
        self.memory = trees.get("memory")
        self.reclaiming = None if self.memory is None else Reclaiming(self.memory)
        self.cpu_sets = CpuSets(trees["cpuset"], kubelet_state) if "cpuset" in trees else None
        self.pressure = Pressure(self.cpu.hierarchy)
        self.limits: CpuLimits | None = None
        self.placements = Placements(node, OWN_PREFIX + node.name)
        self._cpuset = trees.get("cpuset")
        self._trees = list({id(tree): tree for tree in trees.values()}.values())
        self._state = CpuSuppressState()
        self._limited_at: float | None = None
        self._told: dict[str, int] = {}

    @property
    def groups(self) -> Mapping[str, BatchGroup]:
        """The groups of batch that have a limit of CPU."""
        return self.cpu.groups

    @property
    def trees(self) -> list[Tree]:
        """Each hierarchy once."""
        return self._trees

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
        used = [tree for tree in self._trees if self._is_used(tree)]
        if used:
            tasks = [task for task in view.tasks if task.cluster in clusters and members.get(task.key)]
            self.placements.step(tasks, instances, view.now)
        for tree in self._trees:
            if tree not in used:
                tree.release_all()
                continue
            tree.groups = tree.found.find(tasks, members, self.placements.known, batch, view.now)
        self._decide(view)
        if self.reclaiming is not None and self.memory is not None:
            self.reclaiming.step(view, self.memory.groups, self.policy.memory_reclaim)
        for tree in used:
            changes = self._changes(tree)
            makes = changes and self._makes()
            tree.put_back(clusters, changes=changes, makes=makes)
            wanted = {path: self._wanted(tree, group, view) for path, group in tree.groups.items()}
            tree.act(
                {path: one for path, one in wanted.items() if one is not None},
                partial(self._of_task, tree),
                view.now,
                makes=makes,
            )
        self._note_limited(view.now)

    def release_all(self) -> None:
        """Put every group back; what could not be is in the problems of its tree's knobs."""
        for tree in self._trees:
            tree.release_all()

    def throttles(self) -> Throttles:
        """What is throttled now, so that nothing is terminated before that had its time."""
        reclaiming, suppress = self.reclaiming, self.policy.cpu_suppress.mode
        enforced = self.policy.memory_reclaim.mode is StrategyMode.ENFORCE
        limits = suppress is StrategyMode.ENFORCE and bool(self.groups) and not self.cpu.knobs.problems
        return Throttles(
            memory=Throttled()
            if reclaiming is None or not enforced
            else Throttled(possible=reclaiming.state.swappable > 0, begun_at=reclaiming.state.begun_at),
            cpu=Throttled(possible=limits, begun_at=self._limited_at),
        )

    def limits_enforced(self, group: BatchGroup) -> bool:
        """Whether a limit of a group is put in force: one of Fallow's own is only made by the other strategy."""
        return (group.home is None or self._makes()) and self.policy.cpu_suppress.mode is StrategyMode.ENFORCE

    def _makes(self) -> bool:
        return self.policy.cgroup_reconcile.mode is StrategyMode.ENFORCE

    def _modes(self, tree: Tree) -> list[StrategyMode]:
        """The modes of the strategies that change something in a tree."""
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
        for path, limit in self.limits.groups.items():
            told = self._told.get(path)
            if told is None or abs(limit - told) * TELL_SHARE >= self.limits.terms["capacity"]:
                self._told[path] = limit
                name = "cpu_limit" if self.limits_enforced(self.groups[path]) else "cpu_would_limit"
                event(log, logging.INFO, name, group=f"/{path}", milli=limit, before=told, **self.limits.terms)

    def _choose_cpus(self, now: float) -> None:
        """Without a limit that was decided the CPUs stay as they are."""
        if self.cpu_sets is None or self._cpuset is None:
            return
        placing = self.policy.cpu_suppress.cpuset
        if placing is Placing.OFF:
            self.cpu_sets.forget()
        elif self.limits is not None and self.limits.groups:
            self.cpu_sets.choose(self._cpuset.groups, sum(self.limits.groups.values()), placing, now)

    def _note_limited(self, now: float) -> None:
        limited = self.limits is not None and any(map(self.limits_enforced, self.groups.values()))
        self._limited_at = (now if self._limited_at is None else self._limited_at) if limited else None

    def _wanted(self, tree: Tree, group: BatchGroup, view: NodeView) -> Wanted | None:
        """What a group is to have; `None` if it is left as it is."""
        limits = self.limits_enforced(group) and "cpu" in tree.controllers
        texts, cpus = self._texts(tree, group, view), self._cpus(tree, group)
        if not limits and not texts and cpus is None and group.path not in tree.knobs.kept:
            return None
        milli = self.limits.groups.get(group.path) if self.limits is not None and limits else None
        return Wanted(
            clusters=group.clusters,
            limit=None if milli is None else Fraction(milli, 1000),
            hold_limit=limits and milli is None,
            texts=texts,
            cpus=cpus,
            untouched=frozenset() if self.reclaiming is None else self.reclaiming.untouched(group.path),
        )

    def _cpus(self, tree: Tree, group: BatchGroup) -> Cpus | None:
        if self.cpu_sets is None or tree is not self._cpuset or not self.limits_enforced(group):
            return None
        return self.cpu_sets.chosen.get(group.path)

    def _texts(self, tree: Tree, group: BatchGroup, view: NodeView) -> dict[Knob, str]:
        reconcile = self.policy.cgroup_reconcile
        texts: dict[Knob, str] = {}
        if "cpu" in tree.controllers:
            idle = self._identity(tree, group)
            texts |= idle
            if self._makes() and Knob.IDLE not in idle:
                texts[Knob.WEIGHT] = cpu.LEAST_WEIGHT[tree.hierarchy.version]
        if "memory" in tree.controllers and self._makes() and reconcile.memory_limit_percent is not None:
            most = _most_memory(view, group) * reconcile.memory_limit_percent // 100
            texts[Knob.MEMORY] = memory.limit_text(most)
        return texts

    def _identity(self, tree: Tree, group: BatchGroup) -> dict[Knob, str]:
        if self.policy.identity.mode is not StrategyMode.ENFORCE or (group.home is not None and not self._makes()):
            return {}
        knob = cpu.identity_knob(tree.hierarchy, group.path)
        return {} if knob is None else {knob: cpu.BATCH_IDENTITY[knob]}

    def _of_task(self, tree: Tree, task: ObservedTask) -> dict[Knob, str]:
        """What the group of a task has in a group that was made."""
        texts: dict[Knob, str] = {}
        if "cpu" in tree.controllers:
            texts[Knob.WEIGHT] = cpu.weight_text(tree.hierarchy.version, task.requested.cpu_milli)
        percent = self.policy.cgroup_reconcile.memory_limit_percent
        if "memory" in tree.controllers:
            limit = None if percent is None else task.requested.memory_bytes * percent // 100
            texts[Knob.MEMORY] = memory.NO_LIMIT[tree.hierarchy.version] if limit is None else memory.limit_text(limit)
        return texts


def _use(view: NodeView, group: BatchGroup) -> GroupUse:
    return GroupUse(
        used=sum(view.use(task, "cpu") or 0 for task in group.tasks),
        requested=sum(task.requested.cpu_milli for task in group.tasks),
    )


def _most_memory(view: NodeView, group: BatchGroup) -> int:
    """The most bytes that tasks in a group may have been promised: also those that started since they were listed."""
    requested = sum(task.requested.memory_bytes for task in group.tasks)
    return max(requested, sum(row.belief for row in view.ledger.memory.rows if row.key.cluster in group.clusters))
