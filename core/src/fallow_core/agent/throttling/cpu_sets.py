"""Chooses the CPUs of each batch group, from the host's topology and from the CPUs that others use exclusively."""

from collections.abc import Mapping

from fallow_core.agent.throttling.batch_groups import BatchGroup
from fallow_core.agent.throttling.memberships import REREAD_SECONDS
from fallow_core.agent.throttling.tree import Tree
from fallow_core.errors import CgroupError
from fallow_core.model.control_file import ControlFile
from fallow_core.model.qos_policy import Placing
from fallow_core.node import topology
from fallow_core.node.cgroups import cpuset
from fallow_core.node.cgroups.cpuset import Cpus
from fallow_core.qos.cpuset import Cpu, choose, cpu_count


class CpuSets:
    """The newest choice. `exclusive`: CPUs that others use exclusively. `unavailable`: why nothing is chosen."""

    def __init__(self, tree: Tree, kubelet_state: str) -> None:
        self.chosen: dict[str, Cpus] = {}
        self.exclusive: Cpus = frozenset()
        self.unavailable = ""
        self._tree = tree
        self._kubelet_state = kubelet_state
        self._cpus: tuple[Cpu, ...] = ()
        self._count: int | None = None
        self._read_at: float | None = None

    def clear(self) -> None:
        """Choose no CPUs."""
        self.chosen, self._count, self._read_at, self.unavailable = {}, None, None, ""

    def choose(self, groups: Mapping[str, BatchGroup], limit_milli: int, placing: Placing, now: float) -> None:
        """Choose the CPUs of all groups, which share `limit_milli`."""
        if self._read_at is None or now - self._read_at >= REREAD_SECONDS:
            try:
                self._read_host(groups)
            except CgroupError as error:
                self.unavailable = str(error)
                return
            self._read_at = now
        self.unavailable = ""
        self._count = cpu_count(limit_milli, self._count)
        self.chosen = {
            path: choose(self._cpus, self._count, within=within, exclusive=self.exclusive, placing=placing)
            for path in groups
            if (within := self._allowed(path))
        }

    def _read_host(self, groups: Mapping[str, BatchGroup]) -> None:
        hierarchy = self._tree.hierarchy
        self._cpus = topology.read_topology(hierarchy.files)
        online = frozenset(cpu.number for cpu in self._cpus)
        exclusive = cpuset.kubelet_exclusive(hierarchy.files, self._kubelet_state)
        self.exclusive = (exclusive | cpuset.pinned(hierarchy, groups, online)) & online

    def _allowed(self, group: str) -> Cpus:
        """The CPUs that a group may have: at most those of the group above and its original ones; none if unknown."""
        try:
            return self._known_allowed(group)
        except CgroupError as error:
            self.unavailable = str(error)
        except OSError as error:
            if self._tree.hierarchy.identity(group) is not None:
                self.unavailable = f"{error.filename}: {error.strerror}"
        return frozenset()

    def _known_allowed(self, group: str) -> Cpus:
        hierarchy, changed = self._tree.hierarchy, self._tree.writer.changed_groups.get(group)
        if hierarchy.identity(group) is None:
            return frozenset()
        above = cpuset.available(hierarchy, group)
        if changed is not None and changed.home is not None:
            return above
        original = None if changed is None else changed.originals.get(ControlFile.CPUS)
        where = hierarchy.path(group, "cpuset.cpus")
        own = cpuset.cpus_of(hierarchy, group) if original is None else cpuset.parse(original, where)
        return (own & above) or above
