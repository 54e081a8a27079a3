"""The limits of the control groups in which daemons of frameworks are: no daemon can lend more than they allow.

A limit counts for all groups below, so each group from the daemon's own up to the root is read. A daemon may start its
tasks in groups elsewhere, as YARN's LinuxContainerExecutor does: limits that do not hold for these are left out, from
the first such task on. What Fallow itself set to slow batch down is no limit of the host: the original value counts.
"""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

from fallow_core.errors import CgroupError
from fallow_core.model.control_file import ControlFile, file_name
from fallow_core.model.host_limit import HostLimit
from fallow_core.model.sample import NodeSample
from fallow_core.node.cgroups import cpu, cpuset, memory
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.procfs import ProcessStat
from fallow_hookspecs import RESOURCE_NAMES, Process, ResourceName

REREAD_SECONDS = 10.0
_AFFINITY = "Cpus_allowed_list:"

Originals = Callable[[Hierarchy, str], Mapping[ControlFile, str]]
"""The original values of a group that Fallow changed."""
Limits = dict[Process, tuple[HostLimit, ...]]


class DaemonLimits:
    """Belongs to one thread. `hierarchies`: by controller. `problems`: why the limits of a daemon are not known."""

    def __init__(self, hierarchies: Mapping[str, Hierarchy], originals: Originals) -> None:
        self.problems: dict[Process, str] = {}
        self._hierarchies = hierarchies
        self._originals = originals
        self._groups: dict[tuple[Process, str], tuple[str, str]] = {}
        self._read: tuple[float, Collection[Process], Limits] | None = None

    def of(
        self, daemons: Collection[Process], processes: Mapping[int, ProcessStat], sample: NodeSample, now: float
    ) -> Limits:
        """The smallest limit of each resource for each daemon, where it is smaller than the host.

        :param processes: all processes of the host.
        """
        if self._read is None or now - self._read[0] >= REREAD_SECONDS or tuple(daemons) != self._read[1]:
            self._read = now, tuple(daemons), self._now(daemons, processes)
        capacity = {name: usage.capacity for name in RESOURCE_NAMES if (usage := sample.of(name)) is not None}
        return {
            daemon: tuple(limit for limit in limits if limit.amount < capacity.get(limit.resource, 0))
            for daemon, limits in self._read[2].items()
        }

    def _now(self, daemons: Collection[Process], processes: Mapping[int, ProcessStat]) -> Limits:
        self.problems = {}
        self._groups = {key: group for key, group in self._groups.items() if key[0] in daemons}
        found: dict[Process, list[HostLimit]] = {}
        for daemon in daemons:
            children = [stat.pid for stat in processes.values() if stat.parent_pid == daemon.pid]
            try:
                found[daemon] = list(self._limits(daemon, children))
            except (OSError, CgroupError) as error:
                self.problems[daemon] = str(error)
        sharing = Counter(limit.where for limits in found.values() for limit in limits)
        return {daemon: _smallest(limits, sharing) for daemon, limits in found.items()}

    def _limits(self, daemon: Process, children: Collection[int]) -> Iterator[HostLimit]:
        """All limits for a daemon, also of each group above."""
        own_cpus = True
        for controller, hierarchy in self._hierarchies.items():
            group = self._group(daemon, hierarchy, children)
            paths = [group] if not group else [group, *_above(group)]
            for path in paths:
                originals = self._originals(hierarchy, path)
                yield from _of_group(controller, hierarchy, path, originals)
                own_cpus = own_cpus and ControlFile.CPUS not in originals
            own_cpus = own_cpus and (controller != "cpuset" or group == hierarchy.group_of(daemon.pid))
        if own_cpus and self._hierarchies:
            yield from _affinity(next(iter(self._hierarchies.values())), daemon)

    def _group(self, daemon: Process, hierarchy: Hierarchy, children: Collection[int]) -> str:
        """The group that contains the daemon and all tasks that it was seen to start while in its own group."""
        key, own = (daemon, hierarchy.mount), hierarchy.group_of(daemon.pid)
        before, group = self._groups.get(key, (own, own))
        group = group if before == own else own
        for pid in children:
            try:
                group = _common(group, hierarchy.group_of(pid))
            except (OSError, CgroupError):
                continue  # it has ended
        self._groups[key] = own, group
        return group


def _smallest(limits: Collection[HostLimit], sharing: Mapping[str, int]) -> tuple[HostLimit, ...]:
    """The smallest limit of each resource; one that several daemons share is divided between them."""
    own = [replace(each, amount=each.amount // sharing[each.where], daemons=sharing[each.where]) for each in limits]
    by_resource = ([each for each in own if each.resource == name] for name in RESOURCE_NAMES)
    return tuple(min(each, key=lambda limit: limit.amount) for each in by_resource if each)


def _of_group(
    controller: str, hierarchy: Hierarchy, group: str, originals: Mapping[ControlFile, str]
) -> Iterator[HostLimit]:
    """The limits of one group alone; a file that it lacks, or whose format is unknown, is none."""
    readers: Mapping[str, tuple[tuple[ControlFile, Callable[[Hierarchy, str, str], int | None]], ...]] = {
        "cpu": ((ControlFile.LIMIT, _milli),),
        "cpuset": ((ControlFile.CPUS, _milli_of_cpus),),
        "memory": ((ControlFile.MEMORY, _bytes), (ControlFile.HIGH, _bytes)),
    }
    for file, read in readers[controller]:
        name = file_name(file, hierarchy.version)
        try:
            amount = read(hierarchy, group, originals.get(file) or hierarchy.read(group, name))
        except (OSError, CgroupError):
            continue
        if amount is not None:
            resource: ResourceName = "memory" if controller == "memory" else "cpu"
            yield HostLimit(resource=resource, amount=amount, where=hierarchy.path(group, name))


def _milli(hierarchy: Hierarchy, group: str, text: str) -> int | None:
    cores = cpu.limit_of(hierarchy, group, text)
    return None if cores is None else int(cores * 1000)


def _milli_of_cpus(hierarchy: Hierarchy, group: str, text: str) -> int | None:
    """An empty set means that of the group above."""
    return 1000 * len(cpuset.parse(text, group)) or None


def _bytes(_hierarchy: Hierarchy, _group: str, text: str) -> int | None:
    return memory.limit_bytes(text)


def _affinity(hierarchy: Hierarchy, daemon: Process) -> Iterator[HostLimit]:
    """The CPUs on which a daemon may run, and with it the tasks that it starts (taskset, CPUAffinity= of systemd)."""
    path = f"{hierarchy.proc_root}/{daemon.pid}/status"
    lines = hierarchy.files.read(path).splitlines()
    text = next((line.removeprefix(_AFFINITY) for line in lines if line.startswith(_AFFINITY)), "").strip()
    if cpus := cpuset.parse(text, path):
        yield HostLimit(resource="cpu", amount=1000 * len(cpus), where=f"the CPU affinity {text}")


def _above(group: str) -> list[str]:
    """All groups above a group, the root last."""
    parts = group.split("/")
    return ["/".join(parts[:length]) for length in range(len(parts) - 1, -1, -1)]


def _common(one: str, other: str) -> str:
    """The deepest group that contains both."""
    both = os.path.commonpath([f"/{one}", f"/{other}"])
    return both.strip("/")
