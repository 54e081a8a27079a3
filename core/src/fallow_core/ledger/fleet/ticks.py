"""Numbers for the times at which targets were pushed: two bytes an entry instead of eight."""

import numpy as np

from fallow_core.ledger.fleet.arrays import AnyArray, Floats

COUNT = 1 << 16


class Ticks:
    """The last 65,536 distinct times. A time of which the number would still be in use gets the one before it; that one
    counts as later then, so what holds growth holds it longer.
    """

    def __init__(self) -> None:
        self._times = np.full(COUNT, -np.inf)
        self._last = 0

    def number(self, now: float, horizon: float) -> int:
        """The number of a time; nothing from before `horizon` is asked for any more."""
        if now != self._times[self._last]:
            following = (self._last + 1) % COUNT
            if self._times[following] < horizon or self._times[following] == -np.inf:
                self._last = following
            self._times[self._last] = now
        return self._last

    def times(self, numbers: AnyArray) -> Floats:
        """The times of numbers."""
        return self._times.take(numbers)

    def time(self, number: int) -> float:
        """The time of a number."""
        return float(self._times[number])
