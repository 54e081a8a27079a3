"""Squeezing batch in `fallow run`: what it is told each round, and what it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fallow_core.agent.knobs import Knobs
from fallow_core.agent.knobs_file import KnobsFile
from fallow_core.agent.squeeze import Squeeze
from fallow_core.errors import CgroupError
from fallow_core.model.policy import SwitchState
from fallow_core.model.qos_policy import StrategyMode
from fallow_core.node.cgroups import cpu
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import find
from fallow_core.qos.need import NodeView

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fallow_core.agent.batch_groups import BatchGroup
    from fallow_core.config.settings import Config
    from fallow_core.model.listed import Listed
    from fallow_core.node.cgroups.hierarchy import Hierarchy
    from fallow_core.standalone.process import Standalone
    from fallow_hookspecs import Node

View = dict[str, Any]


class Squeezing:
    """`squeeze` is `None` where `missing` says what this host lacks. `listed`: whose tasks were all known once."""

    def __init__(self, node: Node, config: Config, files: Files | None = None) -> None:
        self.missing = ""
        self.squeeze: Squeeze | None = None
        self.listed: set[str] = set()
        file = KnobsFile(config.state_dir)
        try:
            hierarchy = find("cpu", files or Files(), host_root=str(config.host_root))
        except CgroupError as error:
            self.missing = str(error)
            self._stuck = dict.fromkeys(file.load()[0], self.missing)
            return
        self.squeeze = Squeeze(node, config.qos, hierarchy, Knobs(hierarchy, file))

    def step(self, fallow: Standalone, lists: Mapping[str, Listed], is_known: bool) -> None:
        """One round. `is_known`: each cluster that lists tasks has an instance."""
        if self.squeeze is None:
            return
        self.listed |= {name for name, found in lists.items() if found.complete}
        now, controller, agent = fallow.clock(), fallow.controller, fallow.agent
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
        self.squeeze.policy = fallow.config.qos
        self.squeeze.act(view, agent.members(), fallow.sampler.batch, instances, clusters)

    def leave(self, config: Config) -> None:
        """An orderly stop: limits stay, or are lifted, as configured."""
        if self.squeeze is not None and config.qos.release_on_exit:
            self.squeeze.release_all()

    def problems(self, config: Config) -> list[str]:
        """What keeps a strategy that enforces from what it wants, and what was lost."""
        if self.squeeze is None:
            modes = (config.qos.cpu_suppress.mode, config.qos.cgroup_reconcile.mode)
            return [f"batch is not slowed down: {self.missing}"] if StrategyMode.ENFORCE in modes else []
        knobs = self.squeeze.knobs
        return [*filter(None, [knobs.lost]), *(f"/{group}: {why}" for group, why in sorted(knobs.problems.items()))]

    def changed(self) -> dict[str, str]:
        """The groups that are not as they were found, and of each what was wrong with the last change."""
        if self.squeeze is None:
            return self._stuck
        return {group: self.squeeze.knobs.problems.get(group, "") for group in self.squeeze.knobs.kept}

    def shown(self, config: Config) -> View:
        """For `fallow explain`: limits in milli-cores."""
        squeeze, modes = self.squeeze, config.qos
        shown: View = {
            "cpu_suppress": modes.cpu_suppress.mode,
            "cgroup_reconcile": modes.cgroup_reconcile.mode,
            "missing": self.missing,
            "problems": self.problems(config),
        }
        if squeeze is None:
            return {**shown, "groups": [], "terms": {}, "why": "", "without": {}}
        limits, without = squeeze.limits, squeeze.found.without
        return {
            **shown,
            "groups": [_group(squeeze, group) for _, group in sorted(squeeze.groups.items())],
            "terms": dict(limits.terms) if limits is not None else {},
            "why": limits.why if limits is not None else "",
            "without": {"/".join(key): why for key, why in sorted(without.items())},
        }


def _group(squeeze: Squeeze, group: BatchGroup) -> View:
    limit = squeeze.limits.groups.get(group.path) if squeeze.limits is not None else None
    return {
        "group": f"/{group.path}",
        "clusters": sorted(group.clusters),
        "tasks": len(group.tasks),
        "to_move": sum(map(len, group.to_move.values())),
        "limit_milli": limit,
        "enforced": squeeze.limits_enforced(group),
        "in_force_milli": in_force_milli(squeeze.hierarchy, group.path),
        "throttled_seconds": cpu.throttled_seconds(squeeze.hierarchy, group.path),
    }


def in_force_milli(hierarchy: Hierarchy, group: str) -> int | None:
    """The limit that the kernel holds a group to; `None` if there is none, or the group is not there."""
    try:
        text = hierarchy.read(group, cpu.file_of(cpu.Knob.LIMIT, hierarchy.version))
        limit = cpu.limit_of(hierarchy, group, text)
    except (OSError, CgroupError):
        return None
    return None if limit is None else int(limit * 1000)
