"""Throttling on this host: its trees of control groups, one round of them, and what is not available or failed."""

from collections.abc import Collection, Mapping
from pathlib import Path

from fallow_core.agent.throttling import batch_groups
from fallow_core.agent.throttling.batch_limiter import OWN_PREFIX, BatchLimiter
from fallow_core.agent.throttling.memberships import Memberships
from fallow_core.agent.throttling.tree import Tree
from fallow_core.config.settings import Config
from fallow_core.model.control_file import ControlFile
from fallow_core.model.qos_policy import Placing, QosPolicy, StrategyMode
from fallow_core.model.task import TaskKey
from fallow_core.node.cgroups import cpu, cpuset
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import hierarchies
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.task_usage import BatchPass
from fallow_core.plugins.instance import PluginInstance
from fallow_core.qos.need import NodeView
from fallow_core.qos.relief import NodeRelief
from fallow_core.state.lost_files import LostFile
from fallow_core.state.original_values import OriginalValuesFile
from fallow_hookspecs import Node, Process


class HostThrottling:
    """`limiter` is `None` if this host has no CPU control groups; `missing` then says why.

    `hierarchies`: by controller; `lacking`: for each controller that this host does not have, the reason. `policy`:
    that of the newest round.
    """

    def __init__(self, node: Node, config: Config, files: Files | None = None) -> None:
        self.missing = ""
        self.policy = config.qos
        self.limiter: BatchLimiter | None = None
        found, self.lacking = self.hierarchies, _ = hierarchies(files or Files(), str(config.host_root))
        unused = {name: OriginalValuesFile(config.state_dir, controller=name) for name in self.lacking}
        self._unreachable = {group: self.lacking[name] for name, file in unused.items() for group in file.load()}
        self._files = list(unused.values())
        if "cpu" not in found:
            self.missing = self.lacking["cpu"]
            return
        trees = trees_of(found, config.state_dir, OWN_PREFIX + node.name)
        self._files += [tree.writer.originals_file for tree in {id(tree): tree for tree in trees.values()}.values()]
        self.limiter = BatchLimiter(node, config.qos, trees, str(config.host_root).rstrip("/") + cpuset.KUBELET_STATE)

    def step(
        self,
        view: NodeView,
        policy: QosPolicy,
        members: Mapping[TaskKey, Collection[Process]],
        batch: BatchPass,
        instances: Mapping[str, PluginInstance],
        clusters: Collection[str],
    ) -> NodeRelief:
        """One round.

        :param members: the living processes of each task.
        :param clusters: the clusters whose groups may be changed. All other groups are restored.
        :returns: what throttling may still free before tasks are terminated.
        """
        self.policy = policy
        if self.limiter is None:
            return NodeRelief()
        self.limiter.policy = policy
        self.limiter.step(view, members, batch, instances, clusters)
        return self.limiter.relief()

    @property
    def pressed(self) -> bool:
        """Whether online services wait for memory at this moment."""
        return self.limiter is not None and self.limiter.pressure.state.pressed_at is not None

    def leave(self, policy: QosPolicy) -> None:
        """At an orderly stop: the limits stay, or all groups are restored, as configured."""
        if self.limiter is not None and policy.release_on_exit:
            self.limiter.release_all()

    def unavailable(self) -> dict[str, str]:
        """For each strategy that is on and cannot do all of its work on this host, the reason."""
        limiter, policy = self.limiter, self.policy
        if limiter is None:
            return {}
        found: dict[str, str] = {}
        if policy.memory_reclaim.mode is not StrategyMode.OFF:
            groups = {} if limiter.reclaimer is None else limiter.reclaimer.unavailable
            found["memory_reclaim"] = self.lacking.get("memory") or _by_group(groups) or _no_group(limiter.memory)
        if policy.online_pressure.mode is not StrategyMode.OFF:
            found["online_pressure"] = _by_group(limiter.pressure.unavailable)
        if policy.identity.mode is not StrategyMode.OFF:
            found["identity"] = _no_identity(limiter)
        if policy.cpu_suppress.mode is not StrategyMode.OFF and policy.cpu_suppress.cpuset is not Placing.OFF:
            found["cpuset"] = limiter.cpu_sets.unavailable if limiter.cpu_sets else self.lacking.get("cpuset", "")
        return {name: why for name, why in found.items() if why}

    def problems(self) -> list[str]:
        """What prevents enforcing strategies from their work."""
        policy = self.policy
        if self.limiter is None:
            modes = (policy.cpu_suppress.mode, policy.cgroup_reconcile.mode)
            return [f"batch is not slowed down: {self.missing}"] if StrategyMode.ENFORCE in modes else []
        writers = [tree.writer for tree in self.limiter.trees]
        found = [f"memoryReclaim: {why}" for why in self._lacking("memory", policy.memory_reclaim.mode)]
        if policy.cpu_suppress.cpuset is not Placing.OFF:
            found += [f"cpuSuppress.cpuset: {why}" for why in self._lacking("cpuset", policy.cpu_suppress.mode)]
        found += [f"{why}; its limit stays" for why in self.limiter.cpu.finder.strangers.values()]
        return found + [f"/{group}: {why}" for writer in writers for group, why in sorted(writer.problems.items())]

    @property
    def lost(self) -> list[LostFile]:
        """The files with original values that cannot be read."""
        return [file.lost for file in self._files if file.lost is not None]

    def given_up(self) -> None:
        """The lost files were renamed: what control groups have now counts as original."""
        for file in self._files:
            file.given_up()

    def changed_groups(self) -> dict[str, str]:
        """The groups that do not have their original values, each with the problem of its last change."""
        if self.limiter is None:
            return self._unreachable
        writers = [tree.writer for tree in self.limiter.trees]
        changed = {group: writer.problems.get(group, "") for writer in writers for group in writer.changed_groups}
        return self._unreachable | changed

    def exempt_groups(self) -> dict[str, int]:
        """The groups in which nothing is changed, with the number of tasks that are not throttled for it."""
        reasons = {} if self.limiter is None else self.limiter.cpu.finder.ungrouped
        return {
            group: sum(why.endswith(batch_groups.EXEMPT + group) for why in reasons.values())
            for group in self.policy.exempt
        }

    def originals(self, hierarchy: Hierarchy, group: str) -> Mapping[ControlFile, str]:
        """The original values of a group that was changed; empty if it was not."""
        trees = () if self.limiter is None else self.limiter.trees
        writers = (tree.writer for tree in trees if tree.hierarchy.mount == hierarchy.mount)
        changed = next((writer.changed_groups.get(group) for writer in writers), None)
        return {} if changed is None else changed.originals

    def _lacking(self, controller: str, mode: StrategyMode) -> list[str]:
        return [self.lacking[controller]] if mode is StrategyMode.ENFORCE and controller in self.lacking else []


def _by_group(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"/{group}: {why}" for group, why in sorted(reasons.items()))


def _no_group(tree: Tree | None) -> str:
    """Why no group of a tree contains batch alone although there are tasks."""
    if tree is None or tree.groups or not (ungrouped := tree.finder.ungrouped):
        return ""
    return f"no group has batch alone; of {len(ungrouped)} tasks the first: {min(ungrouped.values())}"


def _no_identity(limiter: BatchLimiter) -> str:
    """Why batch has no scheduling class of its own; not known while no group exists."""
    hierarchy = limiter.cpu.hierarchy
    places = [place for group in limiter.groups.values() for place in (group.path, group.home) if place]
    there = [place for place in places if hierarchy.identity(place) is not None]
    return cpu.NO_IDENTITY if there and not any(cpu.identity_file(hierarchy, place) for place in there) else ""


def trees_of(found: Mapping[str, Hierarchy], state_dir: Path, own_name: str) -> dict[str, Tree]:
    """The tree of each controller; controllers that are mounted together have the same one."""
    trees: dict[str, Tree] = {}
    memberships: Memberships | None = None
    for controller, hierarchy in found.items():
        memberships = memberships or Memberships(hierarchy.files, hierarchy.proc_root)
        same = next((tree for tree in trees.values() if tree.hierarchy.mount == hierarchy.mount), None)
        file = OriginalValuesFile(state_dir, controller=controller)
        trees[controller] = same or Tree(hierarchy, file, own_name, memberships)
    return trees
