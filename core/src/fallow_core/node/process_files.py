"""The files of batch processes in /proc, kept open from one pass to the next: to open one costs more than to read it.

A file that is kept is of the process that had the pid when it was opened, whatever becomes of the pid: of one that has
ended nothing can be read.
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


class ProcessFiles:
    """Reads processes. Belongs to one thread."""

    def __init__(self, proc_root: Path) -> None:
        self._proc_root = proc_root
        self._kept: dict[int, _Files] = {}

    def stats(self) -> dict[int, ProcessStat]:
        """All processes that this user may see, by pid; those that end meanwhile are left out.

        :raises SampleError: as `procfs.read_processes`.
        """
        return procfs.read_processes(self._proc_root, self._content)

    def private_bytes(self, process: Process) -> int:
        """As `procfs.read_private_memory`."""
        return procfs.read_private_memory(self._proc_root, process.pid, self._content)

    def keep(self, processes: AbstractSet[Process]) -> None:
        """From now on keep the files of these open, as far as there are descriptors, and of no others."""
        for pid in [pid for pid, files in self._kept.items() if files.process not in processes]:
            self._close(pid)
        room = (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE_DESCRIPTORS) // 2
        for process in processes:
            if process.pid not in self._kept and len(self._kept) < room:
                self._kept[process.pid] = _Files(process)

    def close(self) -> None:
        """Close all."""
        self.keep(frozenset())

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
