"""The files of batch processes in /proc, kept open from one pass to the next: to open one costs more than to read it.

A file that is kept is of the process that had the pid when it was opened, whatever becomes of the pid: of one that has
ended nothing can be read.

Most processes sleep most of the time. One whose `stat` reads as it did before has not run and touched no page since
(it counts page faults too), so neither is it taken apart again nor its memory read.
"""

import os
import resource
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fallow_core.node import procfs
from fallow_core.node.procfs import ProcessStat
from fallow_hookspecs import Process

SPARE_DESCRIPTORS = 256
"""So many descriptors are left for everything else."""
MOST_DESCRIPTORS = 1 << 16


def raise_limit() -> None:
    """Let this process have as many descriptors as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


@dataclass(slots=True)
class _Files:
    """`stat` and `statm` of one process, as far as they could be opened."""

    process: Process
    descriptors: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Read:
    """What was read of one process. `private_bytes` is `None` until it is asked for; it holds as long as `raw` does."""

    raw: bytes
    stat: ProcessStat
    private_bytes: int | None = None


class ProcessFiles:
    """Reads processes. Belongs to one thread."""

    def __init__(self, proc_root: Path) -> None:
        self._proc_root = proc_root
        self._kept: dict[int, _Files] = {}
        self._wanted: AbstractSet[Process] = frozenset()
        self._read: dict[int, _Read] = {}

    def stats(self) -> dict[int, ProcessStat]:
        """All processes that this user may see, by pid; those that end meanwhile are left out.

        :raises SampleError: as `procfs.read_processes`.
        """
        before, self._read = self._read, {}
        return procfs.read_processes(self._proc_root, lambda pid: self._stat(pid, before.get(pid)))

    def private_bytes(self, process: Process) -> int:
        """As `procfs.read_private_memory`, as of the newest pass."""
        read = self._read.get(process.pid)
        if read is None or read.stat.process != process:
            return 0
        if read.private_bytes is None:
            read.private_bytes = procfs.read_private_memory(self._proc_root, process.pid, self._content)
        return read.private_bytes

    def keep(self, processes: AbstractSet[Process]) -> None:
        """From now on keep the files of these open, as far as there are descriptors, and of no others."""
        if processes == self._wanted:
            return
        self._wanted = processes
        for pid in [pid for pid, files in self._kept.items() if files.process not in processes]:
            self._close(pid)
        room = (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE_DESCRIPTORS) // 2
        for process in processes:
            if process.pid not in self._kept and len(self._kept) < room:
                self._kept[process.pid] = _Files(process)

    def close(self) -> None:
        """Close all."""
        self.keep(frozenset())

    def _stat(self, pid: int, before: _Read | None) -> ProcessStat | None:
        raw = self._content(pid, "stat")
        if raw is None:
            return None
        if before is None or raw != before.raw:
            before = _Read(raw, procfs.parse_stat(self._proc_root, pid, raw))
        self._read[pid] = before
        return before.stat

    def _content(self, pid: int, name: str) -> bytes | None:
        """What a file of a process says; `None` if it has ended, or is not shown."""
        files = self._kept.get(pid)
        path = f"{self._proc_root}/{pid}/{name}"
        if files is None:
            return procfs.content_of_process(path)
        if name not in files.descriptors:
            try:
                files.descriptors[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return procfs.content_of_process(path)  # which knows what to make of it
        try:
            return os.pread(files.descriptors[name], procfs.READ_BYTES, 0)
        except OSError:
            self._close(pid)
            return procfs.content_of_process(path)

    def _close(self, pid: int) -> None:
        for descriptor in self._kept.pop(pid).descriptors.values():
            os.close(descriptor)
