"""The texts of control files for batch groups and for the groups of tasks, except CPU limits and CPU sets."""

from fallow_core.agent.throttling.batch_groups import BatchGroup
from fallow_core.agent.throttling.tree import Tree
from fallow_core.model.control_file import ControlFile
from fallow_core.model.qos_policy import QosPolicy, StrategyMode
from fallow_core.model.task import ObservedTask
from fallow_core.node.cgroups import cpu, memory
from fallow_core.qos.need import NodeView

Texts = dict[ControlFile, str]


def group_texts(policy: QosPolicy, tree: Tree, group: BatchGroup, view: NodeView) -> Texts:
    """The texts for a batch group; empty if no strategy enforces."""
    reconciles = policy.cgroup_reconcile.mode is StrategyMode.ENFORCE
    percent = policy.cgroup_reconcile.memory_limit_percent
    texts: Texts = {}
    if "cpu" in tree.controllers:
        if policy.identity.mode is StrategyMode.ENFORCE and (group.home is None or reconciles):
            texts |= _identity(tree, group)
        if reconciles and ControlFile.IDLE not in texts:
            texts[ControlFile.WEIGHT] = cpu.LEAST_WEIGHT[tree.hierarchy.version]
    if "memory" in tree.controllers and reconciles and percent is not None:
        texts[ControlFile.MEMORY] = memory.limit_text(_most_memory(view, group) * percent // 100)
    return texts


def task_texts(policy: QosPolicy, tree: Tree, task: ObservedTask) -> Texts:
    """The texts for a task's group inside a group that Fallow created."""
    percent, version = policy.cgroup_reconcile.memory_limit_percent, tree.hierarchy.version
    texts: Texts = {}
    if "cpu" in tree.controllers:
        texts[ControlFile.WEIGHT] = cpu.weight_text(version, task.requested.cpu_milli)
    if "memory" in tree.controllers:
        limit = None if percent is None else task.requested.memory_bytes * percent // 100
        texts[ControlFile.MEMORY] = memory.NO_LIMIT[version] if limit is None else memory.limit_text(limit)
    return texts


def _identity(tree: Tree, group: BatchGroup) -> Texts:
    file = cpu.identity_file(tree.hierarchy, group.path)
    return {} if file is None else {file: cpu.BATCH_IDENTITY[file]}


def _most_memory(view: NodeView, group: BatchGroup) -> int:
    """The most bytes that tasks in a group may have been promised, including tasks that are not listed yet."""
    requested = sum(task.requested.memory_bytes for task in group.tasks)
    return max(requested, sum(row.belief for row in view.ledger.memory.rows if row.key.cluster in group.clusters))
