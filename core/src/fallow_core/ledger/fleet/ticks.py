"""Numbers for the times at which targets were pushed: two bytes an entry instead of eight."""

import numpy as np

from fallow_core.ledger.fleet.arrays import Floats, Record

COUNT = 1 << 16

TIMES = np.dtype([("times", np.float64, COUNT)])
"""A record, as compiled functions count who refers to an array each time that one is handed on."""


class Ticks:
    """The last 65,536 distinct times, by number. A time for which none is free gets the newest one, and that counts as
    the later of both; so what holds growth holds it longer.
    """

    def __init__(self) -> None:
        self.table: Record = np.zeros(1, TIMES)[0]
        self.times: Floats = self.table["times"]
        self.times[:] = -np.inf
        self._last = 0
        self._horizon = -np.inf

    def forget(self, horizon: float) -> None:
        """Nothing from before that is asked for any more."""
        self._horizon = max(horizon, self._horizon)

    def number(self, time: float) -> int:
        """The number of a time."""
        if time != self.times[self._last]:
            following = (self._last + 1) % COUNT
            if self.times[following] < self._horizon or self.times[following] == -np.inf:
                self._last = following
                self.times[following] = time
            else:
                self.times[self._last] = max(time, self.times[self._last])
        return self._last
