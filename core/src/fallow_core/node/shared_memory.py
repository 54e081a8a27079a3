"""The shared memory of a process: shared mappings without a file, memfd, tmpfs, and heaps that a JVM maps like that.

`statm` counts it together with pages of files, which cost nobody anything. So where that sum is large, `status` is read
for the part that is shared memory, and `smaps_rollup` for the share of this process: a page that several map counts
once. See proc(5).
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fallow_core.node.procfs import content_of_process
from fallow_hookspecs import Process

LEAST_BYTES: Final = 16 << 20
"""Less than this, pages of files included, is not examined: programs have so much of their libraries."""
CHANGED_SHARE: Final = 8
"""It is examined again when the sum has changed by one in so many, and else once in `TURNS` readings."""
TURNS: Final = 16
MOST_BYTES: Final = 1 << 16
_RESIDENT = re.compile(rb"^RssShmem:\s+(\d+) kB$", re.MULTILINE)
_OWN = re.compile(rb"^Pss_Shmem:\s+(\d+) kB$", re.MULTILINE)


@dataclass(slots=True)
class _Examined:
    """The shared memory of one process at a sum of shared and file pages. It holds for `turns_left` readings."""

    sum_bytes: int
    shared_bytes: int
    turns_left: int


class SharedMemory:
    """Examines processes, and remembers what it found. Belongs to one thread."""

    def __init__(self, proc_root: Path) -> None:
        self._proc_root = proc_root
        self._examined: dict[Process, _Examined] = {}

    def bytes_of(self, process: Process, sum_bytes: int) -> int:
        """The shared memory of a process that is not counted in another one. `sum_bytes`: with its pages of files."""
        if sum_bytes < LEAST_BYTES:
            return 0
        known = self._examined.get(process)
        if known is None or not known.turns_left or abs(sum_bytes - known.sum_bytes) * CHANGED_SHARE > sum_bytes:
            known = self._examined[process] = _Examined(sum_bytes, self._read(process.pid), TURNS)
        known.turns_left -= 1
        return known.shared_bytes

    def forget_except(self, processes: Collection[Process]) -> None:
        """Forget all processes but these."""
        self._examined = {process: known for process, known in self._examined.items() if process in processes}

    def _read(self, pid: int) -> int:
        resident = self._kibibytes(pid, "status", _RESIDENT)
        if not resident:
            return 0
        own = self._kibibytes(pid, "smaps_rollup", _OWN)
        return (resident if own is None else own) << 10

    def _kibibytes(self, pid: int, name: str, pattern: re.Pattern[bytes]) -> int | None:
        """`None` if the kernel does not report it to this user, or the process has ended."""
        content = content_of_process(f"{self._proc_root}/{pid}/{name}", MOST_BYTES)
        found = None if content is None else pattern.search(content)
        return None if found is None else int(found[1])
