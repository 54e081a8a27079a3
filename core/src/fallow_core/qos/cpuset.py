"""Chooses the CPUs that batch runs on. Pure.

The CPUs that batch may have are sorted, and batch gets the first ones: a set that grows keeps its CPUs, a set that
shrinks gets no new one, and no state is needed. The threads of a core are adjacent in this order, so at most one core
is shared with others. The core of CPU 0, where the kernel does most of its own work, comes last but one; the last are
cores with a thread that others use exclusively.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from fallow_core.model.qos_policy import Placing

DEAD_BAND_MILLI = 250
"""How far the limit has to fall below a whole CPU before batch loses that CPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """One online CPU: a thread of a core in a NUMA zone. Core numbers are unique on the node."""

    number: int
    core: int
    zone: int


def cpu_count(limit_milli: int, before: int | None) -> int:
    """How many CPUs a limit needs, rounded up. `before`: the previous count, which the dead band may keep."""
    count = max(-(-limit_milli // 1000), 1)
    if before is not None and count == before - 1 and limit_milli > count * 1000 - DEAD_BAND_MILLI:
        return before
    return count


def choose(
    cpus: Collection[Cpu], count: int, *, within: Collection[int], exclusive: Collection[int], placing: Placing
) -> frozenset[int]:
    """The CPUs that batch gets: `count`, or fewer if there are no more, but at least one.

    :param within: the CPUs that its group may have.
    :param exclusive: the CPUs that others use exclusively. They are taken only if no other is left, since a group needs
        a CPU.
    """
    own = [cpu for cpu in cpus if cpu.number in within]
    free = [cpu for cpu in own if cpu.number not in exclusive] or own
    taken = {cpu.core for cpu in cpus if cpu.number in exclusive}
    return frozenset(cpu.number for cpu in _in_order(free, taken, placing)[: max(count, 1)])


def _in_order(cpus: Iterable[Cpu], taken: Collection[int], placing: Placing) -> list[Cpu]:
    cores: defaultdict[tuple[int, int], list[Cpu]] = defaultdict(list)
    for cpu in cpus:
        cores[cpu.zone, cpu.core].append(cpu)
    ordered: list[Cpu] = []
    for rank in range(3):
        zones: defaultdict[int, list[list[Cpu]]] = defaultdict(list)
        for (zone, core), threads in sorted(cores.items(), key=lambda item: item[0], reverse=True):
            if _rank(threads, is_taken=core in taken) == rank:
                zones[zone].append(threads)
        ordered += [cpu for core_of_zone in _joined(list(zones.values()), placing) for cpu in core_of_zone]
    return ordered


def _rank(threads: Sequence[Cpu], *, is_taken: bool) -> int:
    """The position of a core in the order: lower ranks come first."""
    if is_taken:
        return 2
    return 1 if any(cpu.number == 0 for cpu in threads) else 0


def _joined(zones: Sequence[Sequence[list[Cpu]]], placing: Placing) -> list[list[Cpu]]:
    """The cores of all zones: zone by zone, or one core of each zone in turn."""
    if placing is Placing.PACKED:
        return [core for zone in zones for core in zone]
    return [core for turn in zip_longest(*zones) for core in turn if core is not None]
