"""Kills what is in a container's own cgroups, whoever its parents are, also processes that replace each other.

A process of the container cannot leave these directories, so whatever is in them belongs to it. Launchers are spared
as long as possible: container-executor is in them too, and reports the exit code.
"""

import os
import signal
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from fallow_yarn.nm.procfs import PROC_ROOT, own_cgroups, read_cgroup_mounts, read_cgroups

MOST_TURNS: Final = 200
"""How often the members are read and killed; a turn takes a tenth of a millisecond."""
EMPTY_TURNS: Final = 2
"""The number of turns in a row that must find nothing: a process may start another one while members are read."""

Send = Callable[[int, int], None]
"""Sends a signal through a pidfd: descriptor, number."""


class ContainerCgroups:
    """Reads and kills the members of cgroups, each given relative to the root of its hierarchy."""

    def __init__(self, proc_root: Path = PROC_ROOT, send: Send = signal.pidfd_send_signal) -> None:
        self._proc_root = proc_root
        self._send = send

    def kill(self, container_id: str, cgroups: Collection[str], spared: Collection[int]) -> bool | None:
        """Kill all processes there but the spared ones; whether each one got its signal. `None` if there are none.

        With cgroup v1 they are stopped first where they are in the freezer; with v2 the kernel kills what is left.
        """
        folders = self._folders(cgroups)
        if not _pids(folders) - set(spared):
            return None
        empty, handled = 0, set(spared)
        for turn in range(MOST_TURNS):
            new = _pids(folders) - handled
            with _frozen(folders if new and turn == 0 else ()):
                handled |= {pid for pid in new if self._kill_one(container_id, pid)}
            empty = 0 if new else empty + 1
            if empty == EMPTY_TURNS:
                return True
        for folder in folders:
            with suppress(OSError):
                (folder / "cgroup.kill").write_text("1")
        return not _pids(folders) - handled

    def _kill_one(self, container_id: str, pid: int) -> bool:
        """Kill a process that is still in the cgroup now that a pidfd holds it; whether it got the signal."""
        with suppress(OSError):  # it has ended, or may not be signalled, which the next turn shows
            descriptor = os.pidfd_open(pid)
            try:
                if own_cgroups(container_id, read_cgroups(self._proc_root, pid)):
                    self._send(descriptor, signal.SIGKILL)
                    return True
            finally:
                os.close(descriptor)
        return False

    def _folders(self, cgroups: Collection[str]) -> list[Path]:
        mounts = read_cgroup_mounts(self._proc_root) if cgroups else ()
        found = (mount / cgroup for mount in mounts for cgroup in cgroups)
        return [folder for folder in dict.fromkeys(found) if folder.is_dir()]


def _pids(folders: Iterable[Path]) -> set[int]:
    """The processes in these directories and in all directories below."""
    pids: set[int] = set()
    for folder in folders:
        for path, _, _ in os.walk(folder):
            with suppress(OSError):
                pids.update(map(int, Path(path, "cgroup.procs").read_text().split()))
    return pids


@contextmanager
def _frozen(folders: Iterable[Path]) -> Iterator[None]:
    """Stops the processes in the directories that belong to the freezer of cgroup v1."""
    states = [file for folder in folders if (file := folder / "freezer.state").exists()]
    try:
        for file in states:
            with suppress(OSError):
                file.write_text("FROZEN")
        yield
    finally:
        for file in states:  # a signal reaches a process when it is thawed
            with suppress(OSError):
                file.write_text("THAWED")
