"""Which rows have no daemon on their host any more, although their framework may go on naming them. Pure state."""

from collections.abc import Collection, Iterable
from typing import Final

from fallow_core.ledger.rows import RowKey
from fallow_hookspecs import Daemon, Task

UNSEEN_SECONDS: Final = 600.0
"""After this time without a daemon and without a task's process a row is given up: nothing can start there."""


class UnseenRows:
    """Of one cluster. `given_up`: the rows whose framework is not believed until a daemon of them is seen again.

    A plugin that never listed the daemon of a row says nothing about it: then only a person gives it up.
    """

    def __init__(self) -> None:
        self.given_up: set[RowKey] = set()
        self._seen: set[RowKey] = set()
        self._missing: dict[RowKey, float] = {}

    def note(
        self, rows: Collection[RowKey], daemons: Iterable[Daemon], tasks: Iterable[Task], now: float
    ) -> list[RowKey]:
        """A list of the node of these rows came; which of them are given up now."""
        known = {daemon.framework_node for daemon in daemons}
        busy = {task.framework_node for task in tasks if task.processes}
        for key in rows:
            if None in known or key.framework_node in known:
                self._seen.add(key)
                self._missing.pop(key, None)
                self.given_up.discard(key)
            elif key.framework_node in busy:
                self._missing.pop(key, None)
            else:
                self._missing.setdefault(key, now)
        due = [key for key in rows if key in self._seen and now - self._missing.get(key, now) >= UNSEEN_SECONDS]
        return self._give_up(due)

    def give_up_missing(self) -> list[RowKey]:
        """Give up all rows without a daemon and a task, if this plugin lists daemons. Returns them."""
        return self._give_up(list(self._missing)) if self._seen else []

    def forget(self, key: RowKey) -> None:
        """The row is no longer there."""
        self.given_up.discard(key)
        self._seen.discard(key)
        self._missing.pop(key, None)

    def _give_up(self, keys: Iterable[RowKey]) -> list[RowKey]:
        new = [key for key in keys if key not in self.given_up]
        self.given_up.update(new)
        return new
