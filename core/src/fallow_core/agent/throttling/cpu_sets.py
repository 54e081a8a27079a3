"""On which CPUs each group of batch is to be: what is looked up for it, and when."""

from collections.abc import Mapping

from fallow_core.agent.throttling.batch_groups import BatchGroup
from fallow_core.agent.throttling.memberships import LOOK_AGAIN_SECONDS
from fallow_core.agent.throttling.tree import Tree
from fallow_core.errors import CgroupError
from fallow_core.model.qos_policy import Placing
from fallow_core.node import topology
from fallow_core.node.cgroups import cpuset
from fallow_core.node.cgroups.control_file import Knob
from fallow_core.node.cgroups.cpuset import Cpus
from fallow_core.qos.cpuset import Cpu, choose, wanted_count


class CpuSets:
    """The newest choice. `barred`: the CPUs that somebody has alone. `unavailable` says why nothing is chosen."""

    def __init__(self, tree: Tree, kubelet_state: str) -> None:
        self.chosen: dict[str, Cpus] = {}
        self.barred: Cpus = frozenset()
        self.unavailable = ""
        self._tree = tree
        self._kubelet_state = kubelet_state
        self._cpus: tuple[Cpu, ...] = ()
        self._count: int | None = None
        self._looked_at: float | None = None

    def forget(self) -> None:
        """Nothing is to be chosen."""
        self.chosen, self._count, self._looked_at, self.unavailable = {}, None, None, ""

    def choose(self, groups: Mapping[str, BatchGroup], limit_milli: int, placing: Placing, now: float) -> None:
        """Choose for all groups, which share `limit_milli`."""
        if self._looked_at is None or now - self._looked_at >= LOOK_AGAIN_SECONDS:
            try:
                self._look(groups)
            except CgroupError as error:
                self.unavailable = str(error)
                return
            self._looked_at = now
        self.unavailable = ""
        self._count = wanted_count(limit_milli, self._count)
        self.chosen = {
            path: choose(self._cpus, self._count, within=within, barred=self.barred, placing=placing)
            for path in groups
            if (within := self._within(path))
        }

    def _look(self, groups: Mapping[str, BatchGroup]) -> None:
        hierarchy = self._tree.hierarchy
        self._cpus = topology.read_topology(hierarchy.files)
        online = frozenset(cpu.number for cpu in self._cpus)
        exclusive = cpuset.kubelet_exclusive(hierarchy.files, self._kubelet_state)
        self.barred = (exclusive | cpuset.pinned(hierarchy, groups, online)) & online

    def _within(self, group: str) -> Cpus:
        """What a group may have: no more than the one above has, or than it was found with; none if unknown."""
        try:
            return self._known_within(group)
        except CgroupError as error:
            self.unavailable = str(error)
        except OSError as error:
            if self._tree.hierarchy.identity(group) is not None:
                self.unavailable = f"{error.filename}: {error.strerror}"
        return frozenset()

    def _known_within(self, group: str) -> Cpus:
        hierarchy, kept = self._tree.hierarchy, self._tree.knobs.kept.get(group)
        if hierarchy.identity(group) is None:
            return frozenset()
        above = cpuset.available(hierarchy, group)
        if kept is not None and kept.home is not None:
            return above
        original = None if kept is None else kept.originals.get(Knob.CPUS)
        where = hierarchy.path(group, "cpuset.cpus")
        own = cpuset.cpus_of(hierarchy, group) if original is None else cpuset.parse(original, where)
        return (own & above) or above
