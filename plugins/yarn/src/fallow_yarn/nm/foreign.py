"""Which NodeManagers on this host are of other clusters, so that their sockets are read rarely."""

from collections.abc import Collection, Iterable

from fallow_hookspecs import Process
from fallow_yarn.nm.procfs import TURNS


class Foreign:
    """NodeManagers that listen on the port of no node that is ours. They are passed over in the next searches: in one,
    in three, and so on up to `TURNS`. To read sockets takes long on a host with many connections, and one that starts
    may listen on our port a little later.
    """

    def __init__(self) -> None:
        self._pauses: dict[Process, tuple[int, int]] = {}
        self._node_ids: frozenset[str] = frozenset()

    def start(self, running: Iterable[Process], node_ids: Collection[str]) -> None:
        """A search begins, for these nodes: if they are others than before, nothing is passed over."""
        if self._node_ids != (node_ids := frozenset(node_ids)):
            self._node_ids, self._pauses = node_ids, {}
        self._pauses = {each: self._pauses[each] for each in running if each in self._pauses}

    def passes_over(self, process: Process) -> bool:
        """Whether a process is not examined in this search. Call it once in each."""
        pause, left = self._pauses.get(process, (0, 0))
        self._pauses[process] = (pause, max(left - 1, 0))
        return left > 0

    def note(self, process: Process) -> None:
        """A process was examined and is still not ours."""
        pause = min(2 * self._pauses[process][0] + 1, TURNS - 1)
        self._pauses[process] = (pause, pause)
