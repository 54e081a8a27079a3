"""Which CPUs batch runs on, where it is to run on some alone. Pure.

All CPUs that batch may have are put in one order, and it gets the first of them: so a set that grows keeps what it has,
one that shrinks gets no other CPU, and nothing has to be remembered. In that order the threads of a core are together,
so at most one core is shared with others. Last but one comes the core of CPU 0, where a kernel does most for itself,
last are cores with a thread that somebody else has alone.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from fallow_core.model.qos_policy import Placing

HOLD_MILLI = 250
"""The limit has to be so far below a whole CPU before batch loses that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """One CPU that is online: a thread of a core in a NUMA zone. Numbers of cores are unique on the node."""

    number: int
    core: int
    zone: int


def wanted_count(limit_milli: int, before: int | None) -> int:
    """How many CPUs a limit takes: as many as it would fill in part, and not one less for a little noise."""
    count = max(-(-limit_milli // 1000), 1)
    if before is not None and count == before - 1 and limit_milli > count * 1000 - HOLD_MILLI:
        return before
    return count


def choose(
    cpus: Collection[Cpu], count: int, *, within: Collection[int], barred: Collection[int], placing: Placing
) -> frozenset[int]:
    """The `count` CPUs that batch gets, fewer where there are no more, and never none.

    :param within: those that its group may have at all.
    :param barred: those that somebody has alone. If nobody else is left they are taken: a group without CPUs cannot be.
    """
    own = [cpu for cpu in cpus if cpu.number in within]
    free = [cpu for cpu in own if cpu.number not in barred] or own
    taken = {cpu.core for cpu in cpus if cpu.number in barred}
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
    """The lower the better."""
    if is_taken:
        return 2
    return 1 if any(cpu.number == 0 for cpu in threads) else 0


def _joined(zones: Sequence[Sequence[list[Cpu]]], placing: Placing) -> list[list[Cpu]]:
    """The cores of all zones: zone by zone, or of each zone in turn."""
    if placing is Placing.PACKED:
        return [core for zone in zones for core in zone]
    return [core for turn in zip_longest(*zones) for core in turn if core is not None]
