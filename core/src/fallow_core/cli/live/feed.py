"""Snapshots at an interval, in a thread of their own: a Fallow that does not answer keeps no key from working."""

import threading
import time
from collections.abc import Callable

from fallow_core.cli.live.snapshot import Snapshot
from fallow_core.errors import FallowError


class Feed:
    """`newest` is the last snapshot, `number` counts tries, `trouble` says why the last one failed.

    `answered_at`: when the newest came, on the monotonic clock; at first, when this began. `broken` is an error that is
    no word of Fallow's: a mistake here, and the end of the thread.
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
        """Ask no more."""
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
