"""Keeps the files of batch processes in /proc open between passes, since opening a file costs more than reading it.

An open file belongs to the process that had the pid when it was opened: after that process has ended, reads fail.

Most processes sleep most of the time. If the `stat` of a process is unchanged, it has not run and touched no page since
(`stat` counts page faults too). Then the text is not parsed again, and its memory is not read again.
"""

import os
import resource
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fallow_core.node import procfs
from fallow_core.node.procfs import ProcessStat
from fallow_core.node.shared_memory import SharedMemory
from fallow_hookspecs import Process

SPARE_DESCRIPTORS = 256
"""The descriptors that are left for other purposes."""
MOST_DESCRIPTORS = 1 << 16


def raise_limit() -> None:
    """Raise the limit of open files of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


@dataclass(slots=True)
class _Files:
    """The open files of one process: `stat` and `statm`."""

    process: Process
    descriptors: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Read:
    """The newest reading of one process. `memory_bytes` is `None` until it is needed; it is valid while `raw` is."""

    raw: bytes
    stat: ProcessStat
    memory_bytes: int | None = None


class ProcessFiles:
    """Reads processes. Belongs to one thread."""

    def __init__(self, proc_root: Path) -> None:
        self._proc_root = proc_root
        self._kept: dict[int, _Files] = {}
        self._wanted: AbstractSet[Process] = frozenset()
        self._read: dict[int, _Read] = {}
        self._before: dict[int, _Read] = {}
        self._shared = SharedMemory(proc_root)

    def stats(self) -> dict[int, ProcessStat]:
        """All visible processes by pid, without those that end meanwhile.

        :raises SampleError: as `procfs.read_processes`.
        """
        self._before, self._read = self._read, {}
        processes = procfs.read_processes(self._proc_root, self._stat)
        self._before = {}
        return processes

    def memory_bytes(self, process: Process) -> int:
        """The resident memory of a process at the newest pass: private, and its share of shared memory."""
        read = self._read.get(process.pid)
        if read is None or read.stat.process != process:
            return 0
        if read.memory_bytes is None:
            found = procfs.read_process_memory(self._proc_root, process.pid, self._content)
            read.memory_bytes = found.private_bytes + self._shared.bytes_of(process, found.shared_bytes)
        return read.memory_bytes

    def keep(self, processes: AbstractSet[Process]) -> None:
        """Keep the files of these processes open, if there are enough descriptors, and close all others."""
        if processes == self._wanted:
            return
        self._wanted = processes
        self._shared.forget_except(processes)
        for pid in [pid for pid, files in self._kept.items() if files.process not in processes]:
            self._close(pid)
        room = (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE_DESCRIPTORS) // 2
        for process in processes:
            if process.pid not in self._kept and len(self._kept) < room:
                self._kept[process.pid] = _Files(process)

    def close(self) -> None:
        """Close all files."""
        self.keep(frozenset())

    def _stat(self, pid: int) -> ProcessStat | None:
        raw = self._content(pid, "stat")
        if raw is None:
            return None
        read = self._before.get(pid)
        if read is None or raw != read.raw:
            read = _Read(raw, procfs.parse_stat(self._proc_root, pid, raw))
        self._read[pid] = read
        return read.stat

    def _content(self, pid: int, name: str) -> bytes | None:
        """The content of a file of a process; `None` if it has ended or is hidden."""
        files = self._kept.get(pid)
        if files is not None:
            try:
                return os.pread(files.descriptors.get(name) or self._open(files, name), procfs.READ_BYTES, 0)
            except OSError:
                self._close(pid)
        return procfs.content_of_process(f"{self._proc_root}/{pid}/{name}")

    def _open(self, files: _Files, name: str) -> int:
        path = f"{self._proc_root}/{files.process.pid}/{name}"
        files.descriptors[name] = descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return descriptor

    def _close(self, pid: int) -> None:
        for descriptor in self._kept.pop(pid).descriptors.values():
            os.close(descriptor)
