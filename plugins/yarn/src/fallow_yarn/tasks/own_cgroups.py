"""Remembers the cgroups of containers between two lists, since most of them never change."""

from pathlib import Path

from fallow_hookspecs import Process
from fallow_yarn.nm.procfs import SETTLED_TICKS, TURNS, own_cgroups, read_cgroups


class OwnCgroups:
    """The cgroup directories that containers own, by the first process of each. One thread calls its methods.

    A process is moved soon after its start, if at all. So its file is read at every list while it is young, and later
    once in `TURNS` lists. `known` are those that the newest list asked for so far.
    """

    def __init__(self, proc_root: Path) -> None:
        self._proc_root = proc_root
        self._before: dict[Process, tuple[str, ...]] = {}
        self.known: dict[Process, tuple[str, ...]] = {}
        self._turn = self._now_ticks = 0

    def start(self, now_ticks: int) -> None:
        """A list begins: what the list before did not ask for is forgotten."""
        self._before, self.known = self.known, {}
        self._turn, self._now_ticks = (self._turn + 1) % TURNS, now_ticks

    def of(self, container_id: str, process: Process) -> tuple[str, ...]:
        """The directories of a container, from its first process."""
        found = self._before.get(process)
        is_young = process.start_ticks > self._now_ticks - SETTLED_TICKS
        if found is None or is_young or process.pid % TURNS == self._turn:
            found = own_cgroups(container_id, read_cgroups(self._proc_root, process.pid))
        self.known[process] = found
        return found
