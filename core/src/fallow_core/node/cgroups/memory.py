"""The memory of a group: how much of it is cold, and how to reclaim it.

v2 has `memory.reclaim` (Linux 5.19), and before that `memory.high`; v1 has neither. On v1, and with `memory.high`, a
limit is set just below the use and restored at once: the kernel reclaims until the use fits, or refuses the limit
(EBUSY). While a v1 limit is in force, the kernel would kill a process that needs more than it can reclaim. Therefore a
reserve of cold memory is not reclaimed on v1.
"""

import errno

from fallow_core.errors import CgroupError
from fallow_core.model.control_file import ControlFile, file_name
from fallow_core.node import memory_info
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.qos.memory_reclaim import GroupMemory

RESERVE_BYTES = 32 << 20
"""The cold memory that is not reclaimed on v1: many times what a process can allocate while the limit is in force."""
PAGE_BYTES = memory_info.PAGE_BYTES
LEAST_LIMIT_BYTES = 16 << 20
NO_LIMIT = {1: str((2**63 - 1) // PAGE_BYTES * PAGE_BYTES), 2: "max"}
"""The text of a file without a limit, by version."""
RECLAIMED_LESS = (errno.EAGAIN, errno.EBUSY)


def lowered_limit(hierarchy: Hierarchy, group: str) -> ControlFile | None:
    """The limit that is lowered to reclaim memory; `None` if the kernel has `memory.reclaim`.

    :raises CgroupError: this kernel has no way to reclaim memory.
    """
    if hierarchy.version == 1:
        if hierarchy.has(group, "memory.use_hierarchy") and hierarchy.read(group, "memory.use_hierarchy") == "0":
            raise CgroupError(f"{hierarchy.path(group, 'memory.use_hierarchy')} is 0: groups below are not part of it")
        if hierarchy.has(group, "memory.limit_in_bytes"):
            return ControlFile.MEMORY
    elif hierarchy.has(group, "memory.reclaim"):
        return None
    elif hierarchy.has(group, "memory.high"):
        return ControlFile.HIGH
    raise CgroupError(f"{hierarchy.path(group)} has no memory controller")


def cold_memory(hierarchy: Hierarchy, group: str, swap_free_bytes: int) -> GroupMemory:
    """The cold memory of a group.

    :raises CgroupError: the format of its statistics is unknown.
    :raises OSError: they cannot be read.
    """
    prefix = "total_" if hierarchy.version == 1 else ""
    pairs = [line.split() for line in hierarchy.read(group, "memory.stat").splitlines()]
    found = {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
    names = (f"{prefix}inactive_file", f"{prefix}inactive_anon")
    if not all(found.get(name, "").isdigit() for name in names):
        raise CgroupError(f"{hierarchy.path(group, 'memory.stat')}: expected numbers of {' and '.join(names)}")
    droppable, anonymous = (int(found[name]) for name in names)
    swappable = min(anonymous, swap_free_bytes, _swap_allowed(hierarchy, group))
    if hierarchy.version == 1:
        kept = min(droppable, RESERVE_BYTES)
        return GroupMemory(droppable=droppable - kept, swappable=max(swappable - (RESERVE_BYTES - kept), 0))
    return GroupMemory(droppable=droppable, swappable=swappable)


def swap_free_bytes(hierarchy: Hierarchy) -> int:
    """Free swap of this host; 0 if it is not known."""
    try:
        pairs = [line.split() for line in hierarchy.files.read(f"{hierarchy.proc_root}/meminfo").splitlines()]
        return next((int(pair[1]) * 1024 for pair in pairs if pair[0] == "SwapFree:"), 0)
    except (OSError, ValueError, LookupError):
        return 0


def reclaim(hierarchy: Hierarchy, group: str, amount: int, lowered: ControlFile | None) -> None:
    """Reclaim up to `amount` bytes. The kernel may need a long time.

    :param lowered: the result of `lowered_limit`.
    :raises OSError: the kernel refuses it, for another reason than that less could be reclaimed.
    :raises CgroupError: the format of a file is unknown.
    """
    try:
        if lowered is None:
            hierarchy.write(group, "memory.reclaim", str(amount))
            return
        used = used_bytes(hierarchy, group)
        name = file_name(lowered, hierarchy.version)
        before = hierarchy.read(group, name)
        if before != "max" and not before.isdigit():
            raise CgroupError(f"{hierarchy.path(group, name)}: expected bytes or max, found {before[:80]!r}")
        try:
            hierarchy.write(group, name, limit_text(used - amount))
        finally:
            hierarchy.write(group, name, before)
    except OSError as error:
        if error.errno not in RECLAIMED_LESS:
            raise


def used_bytes(hierarchy: Hierarchy, group: str) -> int:
    """The memory that is charged to a group and all groups below it.

    :raises OSError: it cannot be read.
    :raises CgroupError: the format of the file is unknown.
    """
    name = "memory.usage_in_bytes" if hierarchy.version == 1 else "memory.current"
    text = hierarchy.read(group, name)
    if not text.isdigit():
        raise CgroupError(f"{hierarchy.path(group, name)}: expected bytes, found {text[:80]!r}")
    return int(text)


def limit_text(limit: int) -> str:
    """The text for a limit, as the kernel will show it: whole pages of this host (64 KiB on some), but at least what
    any process needs.
    """
    return str(max(limit, LEAST_LIMIT_BYTES) // PAGE_BYTES * PAGE_BYTES)


def limit_bytes(text: str) -> int | None:
    """Parse a limit; `None`: no limit, which v1 shows as the largest number of pages."""
    return int(text) if text.isdigit() and int(text) < 1 << 62 else None


def _swap_allowed(hierarchy: Hierarchy, group: str) -> int:
    """How much more a group may swap: v2 has a limit, v1 a swappiness that can be 0."""
    unlimited = 1 << 62
    try:
        if hierarchy.version == 1:
            return 0 if hierarchy.read(group, "memory.swappiness") == "0" else unlimited
        most = hierarchy.read(group, "memory.swap.max")
        return unlimited if most == "max" else max(int(most) - int(hierarchy.read(group, "memory.swap.current")), 0)
    except (OSError, ValueError):
        return unlimited
