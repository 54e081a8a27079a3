"""A quick probe of the node: reads a few files that stay open, with one call each.

A value that cannot be read, or makes no sense, is `None`; the next full probe reports the reason.
"""

import os
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fallow_core.errors import CgroupError
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import find
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.memory_info import in_cpu_lists_bytes
from fallow_core.node.procfs import PROC_ROOT, TICKS_PER_SECOND

_READ_BYTES = 1 << 16
_ALL_BYTES = 1 << 22
"""More than the size of a file with a few lines for each zone and CPU."""
_MEMORY = re.compile(rb"MemTotal: +(\d+) kB\n(?:MemFree: +(\d+) kB\n)?MemAvailable: +(\d+) kB\n")
_CPU = re.compile(rb"^cpu +(\d+) (\d+) (\d+) \d+ \d+ (\d+) (\d+) ")
_USAGE = re.compile(rb"^(?:usage_usec )?(\d+)$", re.MULTILINE)
_NANOSECONDS = {"cpuacct.usage": 1, "cpu.stat": 1000}

WINDOW_SECONDS, TICK_WINDOW_SECONDS = 0.04, 0.2
"""The time over which CPU is measured: where the kernel counts nanoseconds, and where it counts ticks of 10 ms."""


class KeptFile:
    """A file that stays open and is read from its beginning each time; it is opened again after a failure."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor: int | None = None

    def read(self) -> bytes:
        """The content that one read returns; empty after a failure."""
        for _ in range(2):
            try:
                if self._descriptor is None:
                    self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
                return os.pread(self._descriptor, _READ_BYTES, 0)
            except OSError:
                self.close()
        return b""

    def read_all(self) -> bytes:
        """The whole content, where the kernel may return it in several parts; empty after a failure."""
        content = part = self.read()
        try:
            while part and self._descriptor is not None and len(content) < _ALL_BYTES:
                part = os.pread(self._descriptor, _READ_BYTES, len(content))
                content += part
        except OSError:
            self.close()
            return b""
        return content

    def close(self) -> None:
        """Close it until the next read."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@dataclass(frozen=True, slots=True)
class _Reading:
    """CPU time at `at`, since any time in the past."""

    at: float
    batch_seconds: float
    others_seconds: float


@dataclass(frozen=True, slots=True)
class CpuReading:
    """CPU in use in milli-cores over a short time: in batch groups, and outside of them without this process."""

    batch_milli: int
    others_milli: int


class QuickProbe:
    """Reads memory and CPU in use. Belongs to one thread. `window_seconds`: the time over which CPU is measured.

    `total`: the file with the CPU time of the host in nanoseconds, if there is one. `missing`: why CPU in use outside
    of batch is not known; empty if it is.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        proc_root: Path = PROC_ROOT,
        host_root: str = "/",
        own_seconds: Callable[[], float] = time.process_time,
    ) -> None:
        self._clock, self._own_seconds = clock, own_seconds
        self._memory, self._zones, self._stat = (
            KeptFile(str(proc_root / name)) for name in ("meminfo", "zoneinfo", "stat")
        )
        self._usages: dict[str, KeptFile] = {}
        self._accounting = _accounting(host_root, str(proc_root))
        self.total: KeptFile | None = None
        self.window_seconds = TICK_WINDOW_SECONDS
        if self._accounting is not None and self._accounting[1] == "cpuacct.usage" and self._accounting[0].root == "/":
            self.total = KeptFile(self._accounting[0].path("", "cpuacct.usage"))
            self.window_seconds = WINDOW_SECONDS
        self._before: _Reading | None = None
        self._cpu: CpuReading | None = None
        self.missing = "" if self._accounting is not None else "no control group accounts CPU"

    def memory_used(self, near: int) -> int | None:
        """Bytes in use without droppable page cache; from `near` on also without free pages in the lists of CPUs."""
        found = _MEMORY.match(self._memory.read())
        if found is None:
            return None
        total, free, available = (int(each or 0) * 1024 for each in found.groups())
        used = total - max(free, available)
        if used >= near:
            used -= in_cpu_lists_bytes(total, free, self._zones.read_all())
        return max(used, 0)

    def cpu(self, groups: Iterable[str]) -> CpuReading | None:
        """CPU in use in these groups and outside of them, over at least `window_seconds`.

        It is not known the first time, and after the groups have changed.
        """
        now, total, batch = self._clock(), self._total_seconds(), self._batch_seconds(frozenset(groups))
        if total is None or batch is None:
            self._before = self._cpu = None
            return None
        # The work of this process comes in bursts. Counted as load it would cause more probes.
        reading = _Reading(now, batch, total - batch - self._own_seconds())
        before, elapsed = self._before, 0.0 if self._before is None else now - self._before.at
        if before is None:
            self._before = reading
        elif elapsed >= self.window_seconds:
            self._before = reading
            self._cpu = CpuReading(
                _milli(reading.batch_seconds - before.batch_seconds, elapsed),
                _milli(reading.others_seconds - before.others_seconds, elapsed),
            )
        return self._cpu

    def close(self) -> None:
        """Close all files."""
        for file in (self._memory, self._zones, self._stat, self.total, *self._usages.values()):
            if file is not None:
                file.close()

    def _total_seconds(self) -> float | None:
        """CPU time of the host since any time in the past."""
        if self.total is not None:
            found = _USAGE.search(self.total.read())
            return None if found is None else int(found[1]) / 1e9
        found = _CPU.match(self._stat.read())
        return None if found is None else sum(map(int, found.groups())) / TICKS_PER_SECOND

    def _batch_seconds(self, groups: frozenset[str]) -> float | None:
        """CPU time of the groups since they were created; `None` if a file cannot be read."""
        if self._accounting is None:
            return None
        hierarchy, name = self._accounting
        if groups != self._usages.keys():
            for gone in self._usages.keys() - groups:
                self._usages.pop(gone).close()
            for new in groups - self._usages.keys():
                self._usages[new] = KeptFile(hierarchy.path(new, name))
            self._before = self._cpu = None
        nanoseconds = 0
        for file in self._usages.values():
            found = _USAGE.search(file.read())
            if found is None:
                self.missing = f"{file.path} cannot be read"
                return None
            nanoseconds += int(found[1]) * _NANOSECONDS[name]
        self.missing = ""
        return nanoseconds / 1e9


def _milli(seconds: float, elapsed_seconds: float) -> int:
    return max(round(seconds / elapsed_seconds * 1000), 0)


def _accounting(host_root: str, proc_root: str) -> tuple[Hierarchy, str] | None:
    """The hierarchy that counts the CPU time of groups, and the name of the file; `None` if there is none."""
    for controller, name in (("cpuacct", "cpuacct.usage"), ("cpu", "cpu.stat")):
        with suppress(CgroupError):
            hierarchy = find(controller, Files(), proc_root=proc_root, host_root=host_root)
            if hierarchy.version == 2 or controller == "cpuacct":
                return hierarchy, name
    return None
