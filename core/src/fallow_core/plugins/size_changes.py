"""Names the cause of a size in force that none of the sizes in flight explains. It changes nothing that is decided."""

from collections.abc import Iterable
from enum import StrEnum

from fallow_core.ledger.rows import Row, RowKey
from fallow_hookspecs import Daemon, NodeState

REGISTRATION_SECONDS = 300.0
"""A daemon that was started so long ago has registered, or will not be what changes a size."""


class SizeCause(StrEnum):
    """How a size may have come into force."""

    RESENT = "a size that Fallow sent before is in force again: it was sent again, or arrived late"
    LOST = "the size that Fallow sent last did not come into force"
    REGISTERED = "the node registered with a size of its own"
    SCHEDULER = "the framework's scheduler was started anew, or another one took over, and has this size from the node"
    OTHERS = "somebody else changed the size"


class SizeChanges:
    """What is known of starts: when each node's daemon was seen to be started anew, and which start of the scheduler
    each row was reported by.
    """

    def __init__(self) -> None:
        self._daemon_started_at: dict[str, float] = {}
        self._schedulers: dict[RowKey, str] = {}

    def note_daemons(self, before: Iterable[Daemon], now_there: Iterable[Daemon], now: float) -> None:
        """Take a changed list of the daemons of one host."""
        known = {daemon.process for daemon in before}
        for daemon in now_there:
            if daemon.framework_node is not None and daemon.process not in known:
                self._daemon_started_at[daemon.framework_node] = now

    def forget(self, key: RowKey) -> None:
        """A row that is no longer there."""
        self._schedulers.pop(key, None)

    def cause(self, before: Row | None, row: Row, scheduler_start: str, now: float) -> SizeCause | None:
        """Why the row has its size in force, if no size in flight explains a change; `None` if nothing has to be said.

        :param before: the row before the report.
        :param scheduler_start: the start of the scheduler that reported the row; empty if unknown.
        """
        last_start = self._schedulers.get(row.key, "")
        if scheduler_start:
            self._schedulers[row.key] = scheduler_start
        if before is None or row.in_force is None or row.state in (NodeState.GONE, NodeState.DRAINING):
            return None
        if row.foreign is None or row.foreign == before.foreign:
            resent = row.in_force not in (before.in_force, *(sent.size for sent in before.in_flight))
            return SizeCause.RESENT if resent and row.in_force == row.last_sent else None
        if row.in_force == before.in_force:
            return SizeCause.LOST
        started_at = self._daemon_started_at.pop(row.key.framework_node, None)
        came_back = before.state not in (NodeState.RUNNING, NodeState.UNHEALTHY)
        if came_back or (started_at is not None and now - started_at <= REGISTRATION_SECONDS):
            return SizeCause.REGISTERED
        return SizeCause.SCHEDULER if last_start and scheduler_start not in ("", last_start) else SizeCause.OTHERS
