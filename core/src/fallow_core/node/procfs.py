"""Reads numbers from /proc, in the formats of proc(5).

A file that cannot be read, or has another format, is a `SampleError` that names the file and its content.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from fallow_core.errors import SampleError
from fallow_core.node.memory_info import PAGE_BYTES, MemoryInfo, memory_info
from fallow_hookspecs import Process, proc_stat

PROC_ROOT = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

_MEMORY = ((b"MemTotal:", None), (b"MemAvailable:", None), (b"MemFree:", b"0"))
READ_BYTES = 4096
"""More than the size of /proc/PID/stat and statm."""

ReadProcess = Callable[[int, str], bytes | None]
"""Reads a file of a process, by pid and name; `None` if the process has ended or is hidden from this user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuCounters:
    """CPU time that this host has used since boot, on all CPUs, and the number of online CPUs.

    `stolen_ticks`: time in which a CPU had work, and the hypervisor ran something else on it.
    """

    busy_ticks: int
    online_cpus: int
    stolen_ticks: int = 0


class ProcessMemory(NamedTuple):
    """Resident bytes of a process: private ones, and pages of files with shared memory, which others may map too."""

    private_bytes: int
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """A process in one pass, with its parent and its CPU time in user and system mode.

    `own_ticks` is its own time, `reaped_ticks` that of all descendants that it has waited for. `ended`: it is a zombie
    without running threads.
    """

    pid: int
    parent_pid: int
    start_ticks: int
    own_ticks: int
    reaped_ticks: int
    ended: bool = False
    process: Process = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Create `process` once, since each probe uses it many times."""
        object.__setattr__(self, "process", Process(self.pid, self.start_ticks))

    @property
    def total_ticks(self) -> int:
        """The ticks that its parent reaps."""
        return self.own_ticks + self.reaped_ticks


def read_cpu(proc_root: Path) -> CpuCounters:
    """CPU counters of the host.

    User time includes guest time. Idle and iowait are no use; stolen time is used by other hosts. Kernels before 2.6.11
    do not report it.
    """
    path = proc_root / "stat"
    lines = [line.split() for line in _content(path).splitlines() if line.startswith(b"cpu")]
    total = next((line[1:] for line in lines if line[0] == b"cpu"), [])
    online = sum(line[0] != b"cpu" for line in lines)
    if len(total) < 7 or not online:
        raise _strange(
            path, "a line 'cpu' of at least 7 counters and one line a CPU", b"\n".join(map(b" ".join, lines))
        )
    user, nice, system, _idle, _iowait, irq, softirq, *more = _numbers(path, total[:8])
    return CpuCounters(busy_ticks=user + nice + system + irq + softirq, online_cpus=online, stolen_ticks=sum(more))


def read_memory(proc_root: Path) -> MemoryInfo:
    """Memory of the host in bytes.

    :raises SampleError: a file cannot be read, or says what cannot be.
    """
    path = proc_root / "meminfo"
    lines = [line.split() for line in _content(path).splitlines()]
    kibibytes = {line[0]: line[1] for line in lines if len(line) == 3 and line[2] == b"kB"}
    found = [kibibytes.get(name, default) for name, default in _MEMORY]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        raise _strange(path, "MemTotal and MemAvailable in kB", b", ".join(map(b" ".join, lines)))
    total, available, free = _numbers(path, known)
    if not 0 < total >= max(available, free):
        raise SampleError(
            f"{path}: expected MemAvailable and MemFree within MemTotal, found {available} and {free} of {total} kB"
        )
    try:
        zones = (proc_root / "zoneinfo").read_bytes()
    except OSError:
        zones = b""
    return memory_info(total * 1024, free * 1024, available * 1024, zones)


def read_processes(proc_root: Path, read: Callable[[int], ProcessStat | None] | None = None) -> dict[int, ProcessStat]:
    """All visible processes by pid, without those that end meanwhile.

    :param read: reads one of them, by default as `read_process`.
    """
    try:
        pids = [name for name in os.listdir(proc_root) if name.isdigit()]  # noqa: PTH208 - names alone, no Path each
    except OSError as error:
        raise _unreadable(proc_root, error) from error
    if not pids:
        raise SampleError(f"{proc_root}: expected a directory a process, found none; is it a mounted proc file system?")
    stats = map(read or partial(read_process, proc_root), map(int, pids))
    return {stat.pid: stat for stat in stats if stat is not None}


def read_process(proc_root: Path, pid: int) -> ProcessStat | None:
    """One process; `None` when it has ended."""
    raw = _read(proc_root, pid, "stat")
    return None if raw is None else parse_stat(proc_root, pid, raw)


def parse_stat(proc_root: Path, pid: int, raw: bytes) -> ProcessStat:
    """Parse the `stat` of a process.

    :raises SampleError: its format is unknown.
    """
    try:
        stat = proc_stat.parse_stat(raw)
    except ValueError as error:
        raise SampleError(f"{proc_root}/{pid}/stat: {error}") from None
    own, reaped = stat.user_ticks + stat.system_ticks, stat.reaped_user_ticks + stat.reaped_system_ticks
    return ProcessStat(pid, stat.parent_pid, stat.start_ticks, own, reaped, stat.has_ended)


def read_process_memory(proc_root: Path, pid: int, read: ReadProcess | None = None) -> ProcessMemory:
    """The resident memory of a process; nothing if it has ended."""
    raw = (read or partial(_read, proc_root))(pid, "statm")
    if raw is None:
        return ProcessMemory(0, 0)
    fields = raw.split()
    path = f"{proc_root}/{pid}/statm"
    if len(fields) != 7:
        raise _strange(path, "7 numbers of pages", raw)
    _size, resident, shared = _numbers(path, fields[:3])
    return ProcessMemory((resident - shared) * PAGE_BYTES, shared * PAGE_BYTES)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def _read(proc_root: Path, pid: int, name: str) -> bytes | None:
    return content_of_process(f"{proc_root}/{pid}/{name}")


def content_of_process(path: str, most_bytes: int = READ_BYTES) -> bytes | None:
    """The content of a file of a process, as far as one read returns it; `None` if the process has ended or is hidden.

    :raises SampleError: it cannot be read for another reason.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(file, most_bytes)
        finally:
            os.close(file)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None  # ended, or hidden from this user (mount option hidepid)
    except OSError as error:
        raise _unreadable(path, error) from error


def _numbers(path: str | Path, fields: Sequence[bytes]) -> list[int]:
    if not all(map(bytes.isdigit, fields)):
        raise _strange(path, "whole numbers", b" ".join(fields))
    return list(map(int, fields))


def _unreadable(path: str | Path, error: OSError) -> SampleError:
    return SampleError(f"{path}: cannot be read: {error.strerror}; Fallow needs the proc file system of Linux")


def _strange(path: str | Path, expected: str, found: bytes) -> SampleError:
    text = found[:80].decode(errors="backslashreplace")
    return SampleError(f"{path}: expected {expected}, found {text!r}")
