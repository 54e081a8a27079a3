"""Sends the newest size of each node again after a failover.

A ResourceManager does not store the sizes that it was sent. One that starts or becomes active takes a node's size from
its NodeManager, which may not have received the last one: a size that was accepted just before the failover is lost.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Lock

from fallow_yarn.errors import YarnError
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.admin import NodeUpdate, UpdateAnswer
from fallow_yarn.rm.batches import update_in_batches
from fallow_yarn.rm.manager import Manager
from fallow_yarn.rm.nodes import ACTIVE
from fallow_yarn.rm.readings import NodeReading

Start = tuple[str, int | None]
"""A start of a ResourceManager: its id, and when it became active (milliseconds)."""


class Resend:
    """The newest sizes of a cluster's nodes. The lanes share one, so that no older size is sent after a newer one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._updates: dict[str, NodeUpdate] = {}
        self._start: Start | None = None
        self._open: set[str] = set()  # not yet checked at the ResourceManager that has taken over

    def send(
        self, manager: Manager, batches: Iterable[Sequence[NodeUpdate]], deadline: Deadline
    ) -> Iterator[UpdateAnswer]:
        """Send new sizes (see `update_in_batches`). A size without an answer is recorded too: it may have arrived."""
        with self._lock:
            for answer in update_in_batches(manager, self._noted(batches), deadline):
                if not answer.accepted:
                    del self._updates[answer.node_id]
                yield answer

    def observe(self, start: Start, nodes: Mapping[str, NodeReading], manager: Manager, deadline: Deadline) -> None:
        """Record a reading: after a failover, send the sizes that the new ResourceManager lacks, in one call.

        Nodes register with it one after the other; each is checked once it has. A failure is retried after the next
        reading.
        """
        with self._lock:
            if start != self._start:
                self._open = set(self._updates) if self._start is not None else set()
                self._start = start
            shown = {node_id for node_id in self._open if node_id in nodes and nodes[node_id].node.state in ACTIVE}
            due = [
                replace(self._updates[node_id], custom=nodes[node_id].node.custom)
                for node_id in sorted(shown & self._updates.keys())
                if nodes[node_id].node.capability != self._updates[node_id].size
            ]
            with suppress(YarnError):
                if due:
                    manager.update(due, deadline)
                self._open -= shown

    def _noted(self, batches: Iterable[Sequence[NodeUpdate]]) -> Iterator[Sequence[NodeUpdate]]:
        for updates in batches:
            self._updates |= {update.node_id: update for update in updates}
            yield updates
