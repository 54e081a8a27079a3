"""Throttling batch of one host: what it is told each round, and what it lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fallow_core.agent.throttling.memberships import Memberships
from fallow_core.agent.throttling.throttle import OWN_PREFIX, Throttle
from fallow_core.agent.throttling.tree import Tree
from fallow_core.model.policy import SwitchState
from fallow_core.model.qos_policy import Placing, StrategyMode
from fallow_core.node.cgroups import cpu, cpuset
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import hierarchies
from fallow_core.qos.need import NodeView
from fallow_core.state.original_values import KnobsFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fallow_core.config.settings import Config
    from fallow_core.model.listed import ListedTasks
    from fallow_core.node.cgroups.hierarchy import Hierarchy
    from fallow_core.runtime.node_process import NodeProcess
    from fallow_hookspecs import Node


class Throttling:
    """`throttle` is `None` where `missing` says what this host lacks. `listed`: whose tasks were all known once.

    `lacking`: of each controller that this host does not have, why. `config`: that of the newest round.
    """

    def __init__(self, node: Node, config: Config, files: Files | None = None) -> None:
        self.missing = ""
        self.config = config
        self.throttle: Throttle | None = None
        self.listed: set[str] = set()
        found, self.lacking = hierarchies(files or Files(), str(config.host_root))
        self._stuck = {
            group: why
            for controller, why in self.lacking.items()
            for group in KnobsFile(config.state_dir, controller=controller).load()[0]
        }
        if "cpu" not in found:
            self.missing = self.lacking["cpu"]
            return
        trees = trees_of(found, config.state_dir, OWN_PREFIX + node.name)
        self.throttle = Throttle(node, config.qos, trees, str(config.host_root).rstrip("/") + cpuset.KUBELET_STATE)

    def step(self, fallow: NodeProcess, lists: Mapping[str, ListedTasks], is_known: bool) -> None:
        """One round. `is_known`: each cluster that lists tasks has an instance."""
        if self.throttle is None:
            return
        self.listed |= {name for name, found in lists.items() if found.complete}
        now, controller, agent = fallow.clock(), fallow.ledgers, fallow.agent
        self.config = fallow.config
        view = NodeView(
            node=fallow.node.name,
            now=now,
            sample=fallow.sample,
            ledger=controller.ledgers[fallow.node.name],
            tasks=agent.tasks,
            tasks_complete=bool(lists) and is_known and lists.keys() <= self.listed,
            stale_seconds=fallow.config.qos.stale_seconds,
        )
        instances = {cluster.name: cluster.instance for cluster in controller.clusters.values()}
        clusters = [name for name in controller.names if controller.switch(name).state is not SwitchState.RESTORED]
        self.throttle.policy = fallow.config.qos
        self.throttle.act(view, agent.members(), fallow.sampler.batch, instances, clusters)
        agent.throttles = self.throttle.throttles()

    @property
    def pressed(self) -> bool:
        """Whether memory stalls online services at this moment."""
        return self.throttle is not None and self.throttle.pressure.state.pressed_at is not None

    def leave(self, config: Config) -> None:
        """An orderly stop: limits stay, or are lifted, as configured."""
        if self.throttle is not None and config.qos.release_on_exit:
            self.throttle.release_all()

    def unavailable(self, config: Config) -> dict[str, str]:
        """Of each strategy that is on and cannot do all it would, why."""
        throttle, qos = self.throttle, config.qos
        if throttle is None:
            return {}
        found: dict[str, str] = {}
        if qos.memory_reclaim.mode is not StrategyMode.OFF:
            groups = {} if throttle.reclaiming is None else throttle.reclaiming.unavailable
            reasons = [f"/{group}: {why}" for group, why in sorted(groups.items())]
            found["memory_reclaim"] = self.lacking.get("memory") or "; ".join(reasons) or _no_group(throttle.memory)
        if qos.online_pressure.mode is not StrategyMode.OFF:
            reasons = [f"/{group}: {why}" for group, why in sorted(throttle.pressure.unavailable.items())]
            found["online_pressure"] = "; ".join(reasons)
        if qos.identity.mode is not StrategyMode.OFF:
            found["identity"] = _no_identity(throttle)
        if qos.cpu_suppress.mode is not StrategyMode.OFF and qos.cpu_suppress.cpuset is not Placing.OFF:
            found["cpuset"] = throttle.cpu_sets.unavailable if throttle.cpu_sets else self.lacking.get("cpuset", "")
        return {name: why for name, why in found.items() if why}

    def problems(self, config: Config) -> list[str]:
        """What keeps a strategy that enforces from what it wants, and what was lost."""
        if self.throttle is None:
            modes = (config.qos.cpu_suppress.mode, config.qos.cgroup_reconcile.mode)
            return [f"batch is not slowed down: {self.missing}"] if StrategyMode.ENFORCE in modes else []
        trees = [tree.knobs for tree in self.throttle.trees]
        found = [knobs.lost for knobs in trees if knobs.lost]
        found += [f"memoryReclaim: {why}" for why in self._lacking("memory", config.qos.memory_reclaim.mode)]
        if config.qos.cpu_suppress.cpuset is not Placing.OFF:
            found += [f"cpuSuppress.cpuset: {why}" for why in self._lacking("cpuset", config.qos.cpu_suppress.mode)]
        return found + [f"/{group}: {why}" for knobs in trees for group, why in sorted(knobs.problems.items())]

    def _lacking(self, controller: str, mode: StrategyMode) -> list[str]:
        """Why a strategy that enforces cannot have its controller."""
        return [self.lacking[controller]] if mode is StrategyMode.ENFORCE and controller in self.lacking else []

    def changed(self) -> dict[str, str]:
        """The groups that are not as they were found, and of each what was wrong with the last change."""
        if self.throttle is None:
            return self._stuck
        trees = [tree.knobs for tree in self.throttle.trees]
        return self._stuck | {group: knobs.problems.get(group, "") for knobs in trees for group in knobs.kept}


def _no_group(tree: Tree | None) -> str:
    """Why no group in a tree has batch alone, though there are tasks."""
    if tree is None or tree.groups or not tree.found.without:
        return ""
    return f"no group has batch alone; of {len(tree.found.without)} tasks the first: {min(tree.found.without.values())}"


def _no_identity(throttle: Throttle) -> str:
    """Why batch has no scheduling class of its own, as far as there is a group to see it in."""
    hierarchy = throttle.cpu.hierarchy
    places = [place for group in throttle.groups.values() for place in (group.path, group.home) if place]
    there = [place for place in places if hierarchy.identity(place) is not None]
    return cpu.NO_IDENTITY if there and not any(cpu.identity_knob(hierarchy, place) for place in there) else ""


def trees_of(found: Mapping[str, Hierarchy], state_dir: Path, own_name: str) -> dict[str, Tree]:
    """The tree of each controller; one for all that are mounted together."""
    trees: dict[str, Tree] = {}
    memberships: Memberships | None = None
    for controller, hierarchy in found.items():
        memberships = memberships or Memberships(hierarchy.files, hierarchy.proc_root)
        same = next((tree for tree in trees.values() if tree.hierarchy.mount == hierarchy.mount), None)
        trees[controller] = same or Tree(hierarchy, KnobsFile(state_dir, controller=controller), own_name, memberships)
    return trees
