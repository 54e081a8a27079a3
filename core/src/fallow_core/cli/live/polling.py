"""Polling a Fallow at an interval, in a thread: keys work even while it does not answer."""

import threading
import time
from collections.abc import Callable

from fallow_core.cli.live.snapshot import Snapshot
from fallow_core.errors import FallowError


class Poller:
    """`newest` is the last snapshot, `number` counts the tries, `trouble` says why the last try failed.

    `answered_at`: when the last answer came, on the monotonic clock; before the first one, when polling began.
    `broken`: an error that is no FallowError, and so a bug; it ended the thread.
    """

    def __init__(self, source: Callable[[], Snapshot], interval_seconds: float) -> None:
        self.newest: Snapshot | None = None
        self.number = 0
        self.trouble = ""
        self.answered_at = time.monotonic()
        self.broken: Exception | None = None
        self._source = source
        self._interval = interval_seconds
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="live", daemon=True).start()

    def close(self) -> None:
        """Stop polling."""
        self._ended.set()

    def _run(self) -> None:
        try:
            due = time.monotonic()
            while not self._ended.wait(max(0.0, due - time.monotonic())):
                self._take()
                due = max(due + self._interval, time.monotonic())
        except Exception as error:
            self.broken = error

    def _take(self) -> None:
        try:
            newest = self._source()
        except FallowError as error:
            self.trouble = str(error)
        else:
            self.newest, self.trouble, self.answered_at = newest, "", time.monotonic()
        self.number += 1
