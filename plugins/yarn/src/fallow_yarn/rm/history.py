"""Records which sizes the scheduler may have for each node: those sent and those seen."""

from collections.abc import Iterable, Mapping
from threading import Lock

from fallow_yarn.model.size import Size
from fallow_yarn.rm.in_force import Possible, in_scheduler
from fallow_yarn.rm.nodes import Node


class SizeHistory:
    """The possible sizes of a cluster's nodes (see `in_force`). Threads that talk to one cluster share one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._moment = 0
        self._sizes: dict[str, dict[Size, int]] = {}  # with the moment from which on the size was possible
        self._settled: set[str] = set()

    def sent(self, sizes: Mapping[str, Size]) -> None:
        """Record sizes that are about to be sent: from now on they may come into force, even without an answer."""
        with self._lock:
            self._moment += 1
            for node_id, size in sizes.items():
                self._sizes.setdefault(node_id, {})[size] = self._moment

    def begin(self) -> int:
        """The current moment: a reading that begins now is at least as new."""
        with self._lock:
            return self._moment

    def seen(self, nodes: Iterable[Node], moment: int) -> Possible:
        """Record a node list whose reading began at `moment`, and return the possible sizes."""
        counted = in_scheduler(nodes)
        with self._lock:
            self._sizes = {node.node_id: self._sizes.get(node.node_id, {}) for node in counted}
            self._settled &= self._sizes.keys()
            for node in counted:
                self._sizes[node.node_id].setdefault(node.capability, moment)
            return {node_id: frozenset(self._sizes[node_id]) for node_id in self._settled}

    def settle(self, nodes: Iterable[Node], held: Mapping[str, Size], moment: int) -> None:
        """Record the sizes found in the scheduler by a reading that began at `moment`.

        If the size of a node is its capability, earlier sizes are past. If not, changes are still under way.
        """
        with self._lock:
            for node in nodes:
                size = held.get(node.node_id)
                if size is None or node.node_id not in self._sizes:
                    continue
                before = self._sizes[node.node_id]
                later = {other: since for other, since in before.items() if since > moment}
                self._sizes[node.node_id] = {size: moment} | (later if size == node.capability else before)
                self._settled.add(node.node_id)
