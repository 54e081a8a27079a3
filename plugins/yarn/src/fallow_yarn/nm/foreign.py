"""Which NodeManagers on this host are of other clusters, so that their sockets are read rarely."""

from collections.abc import Callable, Collection, Iterable
from typing import Final

from fallow_hookspecs import Process
from fallow_yarn.nm.procfs import TICKS_PER_SECOND, TURNS, now_ticks

STARTED_TICKS: Final = 60 * TICKS_PER_SECOND
"""A NodeManager of this age listens on its ports, as a rule."""


class Foreign:
    """NodeManagers that listen on the port of no node that is ours: once started, they are examined once in `TURNS`
    searches. To read sockets takes long on a host with many connections.
    """

    def __init__(self, clock: Callable[[], int] = now_ticks) -> None:
        self._clock = clock
        self._left: dict[Process, int] = {}
        self._node_ids: frozenset[str] = frozenset()

    def start(self, running: Iterable[Process], node_ids: Collection[str]) -> None:
        """A search begins, for these nodes: if they are others than before, nothing is passed over."""
        if self._node_ids != (node_ids := frozenset(node_ids)):
            self._node_ids, self._left = node_ids, {}
        self._left = {each: self._left[each] - 1 for each in running if self._left.get(each, 0) > 1}

    def passes_over(self, process: Process) -> bool:
        """Whether a process is not examined in this search."""
        return process in self._left

    def note(self, process: Process) -> None:
        """A process was examined and is not ours."""
        if self.is_started(process):
            self._left[process] = TURNS

    def is_started(self, process: Process) -> bool:
        """Whether a process has had the time to listen on its ports."""
        return process.start_ticks <= self._clock() - STARTED_TICKS
