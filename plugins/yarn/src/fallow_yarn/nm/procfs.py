"""Reads the processes of this host from /proc: parents, sessions, cgroups, and the containers that they name.

Layouts are those of proc(5). A process that ends while it is read, or is hidden from this user, is left out.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fallow_hookspecs import Process
from fallow_yarn.model.container_id import ContainerId, named_in

PROC_ROOT: Final = Path("/proc")
TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
SETTLED_TICKS: Final = 10 * TICKS_PER_SECOND
"""A process of this age has done its exec, as a rule, and runs the program that it was started for."""
TURNS: Final = 16
"""What rarely changes is read again once in so many searches, for another part of the processes each time."""
ENDED: Final = (b"Z", b"X")
CHUNK_BYTES: Final = 16 << 10
MOST_BYTES: Final = 256 << 10
"""The most bytes of a file whose content a process chooses, such as its command line. A longer file is unreadable."""
CGROUP_TYPES: Final = ("cgroup", "cgroup2")


@dataclass(frozen=True, slots=True)
class Stat:
    """A process at one time. `is_alive` is false for a zombie. `name`: of its program, at most 15 bytes."""

    process: Process
    parent_pid: int
    session: int
    is_alive: bool
    name: bytes = b""

    @property
    def pid(self) -> int:
        """Its number."""
        return self.process.pid

    @property
    def start_ticks(self) -> int:
        """When it started, in ticks since boot."""
        return self.process.start_ticks

    @property
    def leads_session(self) -> bool:
        """Whether it is the leader of its session."""
        return self.session == self.process.pid


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The container and node ids in a process's environment. `node_id` is empty where it is missing."""

    container_id: str
    node_id: str


def parent_of(stat: Stat, stats: Mapping[int, Stat]) -> Stat | None:
    """The parent of a process. No process is older than its parent: such a pair was read before and after a reuse."""
    parent = stats.get(stat.parent_pid)
    return parent if parent is not None and parent.start_ticks <= stat.start_ticks else None


def ancestors(stat: Stat, stats: Mapping[int, Stat]) -> list[Stat]:
    """The ancestors of a process, from its parent upwards."""
    chain: list[Stat] = []
    seen = {stat.pid}
    above = parent_of(stat, stats)
    while above is not None and above.pid not in seen:
        seen.add(above.pid)
        chain.append(above)
        above = parent_of(above, stats)
    return chain


def now_ticks() -> int:
    """The current time on the clock of start times: ticks since boot."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS_PER_SECOND)


def read_all(proc_root: Path) -> dict[int, Stat]:
    """All processes by pid."""
    return ProcessReader(proc_root).read_all()


@dataclass(frozen=True, slots=True)
class _Read:
    """The newest reading of a process. `inode`: the number of its directory, another one for each process."""

    inode: int
    stat: Stat


class ProcessReader:
    """Reads all processes again and again. Belongs to one thread.

    Most processes change nothing of what `Stat` has. So a process is read again while it is young, when its parent has
    ended, and otherwise once in `TURNS` searches. That it still is the same process is told by its directory.
    """

    def __init__(self, proc_root: Path, clock: Callable[[], int] = now_ticks) -> None:
        self._proc_root = proc_root
        self._clock = clock
        self._read: dict[int, _Read] = {}
        self._reads_all = False
        self._turn = 0

    def read_all(self) -> dict[int, Stat]:
        """All processes by pid; the same object for a process that was not read again."""
        self._turn = (self._turn + 1) % TURNS
        settled = self._clock() - SETTLED_TICKS
        with os.scandir(self._proc_root) as entries:
            inodes = {int(entry.name): entry.inode() for entry in entries if entry.name.isdigit()}
        before, found = {} if self._reads_all else self._read, dict[int, _Read]()
        self._reads_all = False
        for pid, inode in inodes.items():
            read = before.get(pid)
            if read is None or read.inode != inode or self._is_due(read.stat, settled, inodes):
                stat = read_stat(self._proc_root, pid)
                if stat is None:
                    continue
                read = _Read(inode, read.stat if read is not None and read.stat == stat else stat)
            found[pid] = read
        self._read = found
        return {pid: read.stat for pid, read in found.items()}

    def read_all_again(self) -> None:
        """Read every process at the next search, since some were signalled. Any thread may ask for it."""
        self._reads_all = True

    def _is_due(self, stat: Stat, settled: int, inodes: Mapping[int, int]) -> bool:
        if stat.start_ticks >= settled or stat.pid % TURNS == self._turn or not stat.is_alive:
            return True
        return stat.parent_pid not in inodes and stat.parent_pid != 0


def read_stat(proc_root: Path, pid: int) -> Stat | None:
    """One process; `None` if there is none."""
    return _parsed(_stat_text(f"{proc_root}/{pid}/stat"))


def _parsed(raw: bytes) -> Stat | None:
    # The name, in parentheses, may itself hold spaces, parentheses and line ends.
    end = raw.rfind(b")")
    fields = raw[end + 1 :].split(None, 20)
    if len(fields) < 21:
        return None
    process = Process(int(raw[: raw.find(b" ")]), int(fields[19]))
    return Stat(process, int(fields[1]), int(fields[3]), fields[0] not in ENDED, raw[raw.find(b"(") + 1 : end])


def read_user(proc_root: Path, pid: int) -> int | None:
    """The real user id of a process; `None` if there is none."""
    for line in _content(f"{proc_root}/{pid}/status").splitlines():
        if line.startswith(b"Uid:"):
            return int(line.split()[1])
    return None


def read_cgroups(proc_root: Path, pid: int) -> tuple[str, ...]:
    """The cgroup directories of a process, each relative to the root of its hierarchy, without repetition."""
    lines = _content(f"{proc_root}/{pid}/cgroup").decode(errors="surrogateescape").splitlines()
    return tuple(dict.fromkeys(line.split(":", 2)[-1].removesuffix(" (deleted)").strip("/") for line in lines))


def read_cgroup_mounts(proc_root: Path) -> tuple[Path, ...]:
    """Where the hierarchies of cgroups are mounted as a whole, those of v1 and that of v2."""
    lines = _content(f"{proc_root}/self/mountinfo").decode(errors="surrogateescape").splitlines()
    found = (line.split(" ") for line in lines)
    return tuple(Path(f[4]) for f in found if "-" in f and f[3] == "/" and f[f.index("-") + 1] in CGROUP_TYPES)


def container_of(cgroups: Iterable[str]) -> str | None:
    """The container that a component of a path names; the innermost if there are several."""
    parts = [part for path in cgroups for part in path.split("/") if ContainerId.parse(part) is not None]
    return parts[-1] if parts else None


def own_cgroups(container_id: str, cgroups: Iterable[str]) -> tuple[str, ...]:
    """A container's own directories, named by its id, among the given ones and their parents.

    A directory outside the reader's cgroup namespace has no path here, and is left out.
    """
    own = []
    for path in cgroups:
        parts = path.split("/")
        if container_id in parts and ".." not in parts:
            own.append("/".join(parts[: parts.index(container_id) + 1]))
    return tuple(dict.fromkeys(own))


def read_environment(proc_root: Path, pid: int) -> Environment | None:
    """The initial environment of a container's process; `None` if it is none, or cannot be read."""
    raw = _content(f"{proc_root}/{pid}/environ").decode(errors="replace")
    values = {name: value for name, _, value in (entry.partition("=") for entry in raw.split("\0"))}
    container_id = values.get("CONTAINER_ID", "")
    if ContainerId.parse(container_id) is None:
        return None
    host, port = values.get("NM_HOST", ""), values.get("NM_PORT", "")
    return Environment(container_id=container_id, node_id=f"{host}:{port}" if host and port else "")


def read_named(proc_root: Path, pid: int) -> set[str]:
    """The container ids in the command line of a process."""
    return named_in(_content(f"{proc_root}/{pid}/cmdline"))


def read_command(proc_root: Path, pid: int) -> list[bytes]:
    """The arguments of a process; empty if it has ended or they may not be read."""
    return _content(f"{proc_root}/{pid}/cmdline").split(b"\0")


def _stat_text(path: str) -> bytes:
    """As `_content`, for a `stat`: one read returns all of it."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(file, CHUNK_BYTES)
    except OSError:
        return b""
    finally:
        os.close(file)


def _content(path: str) -> bytes:
    """The content of a file in /proc; empty if the process has ended, the file may not be read, or it is too long."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    content = bytearray()
    try:
        while chunk := os.read(file, CHUNK_BYTES):
            content += chunk
            if len(content) > MOST_BYTES:
                return b""
    except OSError:
        return b""
    finally:
        os.close(file)
    return bytes(content)
