"""What the memory figures of a host mean, as the kernel reports them. Pure.

not in use = the larger of MemFree and MemAvailable, and free pages in the lists of CPUs
unusable   = what of that is free, but not available: the kernel keeps it back behind watermarks

MemAvailable is what is left above all watermarks, and never negative. On a host with large watermarks
(`vm.min_free_kbytes`, `vm.watermark_scale_factor`) it is 0 long before memory is in use: no task could free that part
by its end, so it is no use. Nobody can have it either, so it is not lent.

From Linux 6.7 on the kernel keeps up to an eighth of the memory, after processes freed it, in lists of each CPU for
minutes. MemFree and MemAvailable exclude these pages although every allocation can use them. Without adding them, the
end of a task would seem to free nothing. They are added only where both files are of the same host: in a container,
meminfo may be the container's (lxcfs) and zoneinfo the host's. Of one host, both say the same of what is not free.
"""

import os
import re
from dataclasses import dataclass

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SAME_HOST_SHARE = 32
"""Both files are of one host if what is not free differs by less than this part: they are not read at one moment."""

_LISTED = re.compile(rb"^ +count: +(\d+)$", re.MULTILINE)
_MANAGED = re.compile(rb"^ +managed +(\d+)$", re.MULTILINE)
_FREE = re.compile(rb"^ +pages free +(\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryInfo:
    """Memory of the host. Unused memory includes droppable page cache and free pages in the lists of CPUs.

    `unusable_bytes`: the part of the unused memory that the kernel keeps back. `in_cpu_lists_bytes`: another part.
    """

    total_bytes: int
    unused_bytes: int
    unusable_bytes: int = 0
    in_cpu_lists_bytes: int = 0


def memory_info(total_bytes: int, free_bytes: int, available_bytes: int, zoneinfo: bytes) -> MemoryInfo:
    """The memory of a host, from three figures of meminfo and from zoneinfo, which is empty where it is not known."""
    listed = in_cpu_lists_bytes(total_bytes, free_bytes, zoneinfo)
    unused = min(max(free_bytes, available_bytes) + listed, total_bytes)
    return MemoryInfo(
        total_bytes=total_bytes,
        unused_bytes=unused,
        unusable_bytes=max(unused - available_bytes - listed, 0),
        in_cpu_lists_bytes=listed,
    )


def in_cpu_lists_bytes(total_bytes: int, free_bytes: int, zoneinfo: bytes) -> int:
    """Free memory in the lists of CPUs; 0 if it is not reported, or is that of another host than the other figures."""
    managed, free, listed = (sum(map(int, each.findall(zoneinfo))) * PAGE_BYTES for each in (_MANAGED, _FREE, _LISTED))
    differs = abs((managed - free) - (total_bytes - free_bytes))
    return listed if managed and differs * SAME_HOST_SHARE < total_bytes else 0
