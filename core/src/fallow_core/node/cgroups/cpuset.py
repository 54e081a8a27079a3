"""CPU sets: the kernel's format, the CPUs that others use exclusively, and the order in which sets can be written."""

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

from fallow_core.errors import CgroupError
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.hierarchy import Hierarchy

KUBELET_STATE = "/var/lib/kubelet/cpu_manager_state"
MOST_CPUS = 1 << 16

Cpus = frozenset[int]


def parse(text: str, where: str) -> Cpus:
    """Parse a list of CPUs such as `0-3,8`, which may be empty.

    :raises CgroupError: it is not such a list.
    """
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (first.isdigit() and last.isdigit() and int(first) <= int(last) < MOST_CPUS):
            raise CgroupError(f"{where}: expected a list of CPUs such as 0-3,8, found {text[:80]!r}")
        found |= set(range(int(first), int(last) + 1))
    return frozenset(found)


def text_of(cpus: Collection[int]) -> str:
    """Format a list of CPUs as the kernel does."""
    runs = [[cpu for _, cpu in run] for _, run in groupby(enumerate(sorted(cpus)), key=lambda item: item[1] - item[0])]
    return ",".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def cpus_of(hierarchy: Hierarchy, group: str, name: str = "cpuset.cpus") -> Cpus:
    """The set of a group; on v2 an empty set means that of the group above.

    :raises OSError: it cannot be read.
    :raises CgroupError: its format is unknown.
    """
    return parse(hierarchy.read(group, name), hierarchy.path(group, name))


def all_cpus(hierarchy: Hierarchy) -> Cpus:
    """The CPUs of the root. On v2 a group with this set behaves like a group with an empty set."""
    return cpus_of(hierarchy, "", "cpuset.cpus" if hierarchy.version == 1 else "cpuset.cpus.effective")


def available(hierarchy: Hierarchy, group: str) -> Cpus:
    """The CPUs that a group may have: the set of the group above."""
    above = group.rpartition("/")[0]
    return cpus_of(hierarchy, above, "cpuset.cpus" if hierarchy.version == 1 else "cpuset.cpus.effective")


def safe_steps(
    parents_first: Sequence[str], now: Mapping[str, Cpus], targets: Mapping[str, Cpus]
) -> list[tuple[str, Cpus]]:
    """The order of writes to a group and the groups below it that keeps each set a superset of the sets below it: first
    CPUs are added, from the top; then CPUs are removed, from the bottom.
    """
    wider = {group: now[group] | targets[group] for group in parents_first}
    grown = [(group, wider[group]) for group in parents_first if wider[group] != now[group]]
    shrunk = [(group, targets[group]) for group in reversed(parents_first) if wider[group] != targets[group]]
    return grown + shrunk


def kubelet_exclusive(files: Files, path: str) -> Cpus:
    """The CPUs that the kubelet's static policy assigned exclusively to containers; none without such a kubelet.

    :raises CgroupError: the format of the file is unknown.
    """
    try:
        text = files.read(path)
    except OSError:
        return frozenset()
    try:
        entries = json.loads(text).get("entries") or {}
        texts = [cpus for containers in entries.values() for cpus in containers.values()]
        return frozenset().union(*(parse(cpus, path) for cpus in texts))
    except (ValueError, AttributeError, TypeError) as error:
        raise CgroupError(f"{path}: this is not the state of a kubelet's CPU manager: {error}") from error


def pinned(hierarchy: Hierarchy, batch: Collection[str], online: Cpus) -> Cpus:
    """The CPUs to which populated groups other than those of batch are bound.

    A group with more than half of the CPUs does not count as bound: it can use others.
    """
    found: Cpus = frozenset()
    for group in hierarchy.below(""):
        if any(f"{group}/".startswith(f"{other}/") or f"{other}/".startswith(f"{group}/") for other in batch):
            continue
        try:
            cpus = cpus_of(hierarchy, group) & online
            if cpus and not cpus <= found and 2 * len(cpus) <= len(online) and _is_populated(hierarchy, group):
                found |= cpus
        except (OSError, CgroupError):
            continue  # it is gone, or does not have the controller
    return found


def _is_populated(hierarchy: Hierarchy, group: str) -> bool:
    return any(map(hierarchy.processes, (group, *hierarchy.below(group))))
