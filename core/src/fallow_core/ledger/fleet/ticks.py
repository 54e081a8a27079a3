"""Numbers for the times at which targets were pushed: two bytes an entry instead of eight."""

import numpy as np

from fallow_core.ledger.fleet.arrays import AnyArray, Bools

COUNT = 1 << 16


class Ticks:
    """The last 65,536 distinct times. A time of which the number would still be in use gets the one before it; that one
    counts as later then, so what holds growth holds it longer.
    """

    def __init__(self) -> None:
        self._times = np.full(COUNT, -np.inf)
        self._last = 0
        self._before: dict[float, Bools] = {}

    def number(self, now: float, horizon: float) -> int:
        """The number of a time; nothing from before `horizon` is asked for any more."""
        if now != self._times[self._last]:
            following = (self._last + 1) % COUNT
            if self._times[following] < horizon or self._times[following] == -np.inf:
                self._last = following
            self._times[self._last] = now
            self._before = {}
        return self._last

    def before(self, numbers: AnyArray, time: float) -> Bools:
        """Which numbers are of times before that."""
        table = self._before.get(time)
        if table is None:
            table = self._before[time] = self._times < time
        found: Bools = table.take(numbers)
        return found

    def time(self, number: int) -> float:
        """The time of a number."""
        return float(self._times[number])
