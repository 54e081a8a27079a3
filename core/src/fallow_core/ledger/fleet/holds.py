"""`GrowthHold` of all rows and resources of a block: how much of a growth has held for long enough."""

import numpy as np

from fallow_core.ledger.fleet.arrays import Bools, Floats, Ints
from fallow_core.ledger.fleet.columns import RESOURCES
from fallow_core.ledger.fleet.history import History
from fallow_core.ledger.fleet.ticks import Ticks
from fallow_core.ledger.publishing import SLOW, GrowthHold
from fallow_core.model.policy import PublishingPolicy


class Holds:
    """By slot, resource and node. `since` is NaN where nothing was watched yet."""

    def __init__(self, slots: int, nodes: int, ticks: Ticks) -> None:
        self._shape = (slots, RESOURCES, nodes)
        self._since: Floats = np.full(self._shape, np.nan)
        self._newest: Floats = np.zeros(self._shape)
        self._ticks = ticks
        self._histories = [History(slots * nodes, ticks, dtype) for dtype in (np.int32, np.float64)]
        self._horizon = -np.inf

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self._since.nbytes + self._newest.nbytes + sum(history.nbytes for history in self._histories)

    def push(self, newest: Floats, wanted: Floats, policy: PublishingPolicy, now: float) -> None:
        """Bring all up to date with the newest sizes and the targets."""
        np.copyto(self._since, now, where=np.isnan(self._since) | (newest > self._newest))
        self._newest[...] = newest
        self._horizon = max(self._horizon, now - SLOW * policy.growth_hold_seconds)
        for r, history in enumerate(self._histories):
            history.push(wanted[:, r].reshape(-1), now, self._horizon)

    def held(self, asked: Bools, unit: Floats, behind: Bools, policy: PublishingPolicy, now: float) -> Floats:
        """The sizes that rows may grow to, as far as time is concerned: the newest ones where it is not asked.

        `behind`: which are far below their fair share; those do not have to hold for longer.
        """
        found = self._newest.copy()
        at = np.flatnonzero(asked)
        newest, since = found.reshape(-1).take(at), self._since.reshape(-1).take(at)
        hold = policy.growth_hold_seconds
        least = self._least(at, newest, since, now, hold)
        little = np.abs(least - newest) * 100 <= newest * 2 * policy.band_percent
        little |= least - newest <= unit.reshape(-1).take(at)
        little &= ~behind.reshape(-1).take(at)
        slow = np.flatnonzero(little)
        least[slow] = self._least(at.take(slow), newest.take(slow), since.take(slow), now, SLOW * hold)
        found.reshape(-1)[at] = np.maximum(newest, least)
        return found

    def _least(self, at: Ints, newest: Floats, since: Floats, now: float, seconds: float) -> Floats:
        """The smallest target of the last seconds; the newest size where that stood for less long."""
        watched = np.flatnonzero(now - since >= seconds)
        found = newest.copy()
        slots, within = np.divmod(at.take(watched), RESOURCES * self._shape[2])
        of, nodes = np.divmod(within, self._shape[2])
        columns = slots * self._shape[2] + nodes
        for r, history in enumerate(self._histories):
            some = np.flatnonzero(of == r)
            found[watched.take(some)] = history.least(columns.take(some), now - seconds)
        return found

    def plain(self, slot: int, resource: int, node: int, hold_seconds: float) -> GrowthHold | None:
        """The same in the form for one row; `None` where nothing was watched yet."""
        since = float(self._since[slot, resource, node])
        if np.isnan(since):
            return None
        hold = GrowthHold(since=since, newest=int(self._newest[slot, resource, node]))
        for tick, target in self._histories[resource].entries(self._column(slot, node)):
            hold.push(self._ticks.time(tick), hold.newest, target, hold_seconds)
        return hold

    def push_one(self, slot: int, resource: int, node: int, newest: int, wanted: int, now: float, since: float) -> None:
        """Bring one row and resource up to date; targets from before `since` are forgotten."""
        at, column, history = (slot, resource, node), self._column(slot, node), self._histories[resource]
        if np.isnan(self._since[at]) or newest > self._newest[at]:
            self._since[at] = now
        self._newest[at] = newest
        kept = [
            (tick, target)
            for tick, target in history.entries(column)
            if target < wanted and self._ticks.time(tick) >= since
        ]
        history.replace(column, [*kept, (self._ticks.number(now, self._horizon), wanted)])

    def adopt(self, slot: int, resource: int, node: int, hold: GrowthHold) -> None:
        """Take over the form for one row."""
        self._since[slot, resource, node], self._newest[slot, resource, node] = hold.since, hold.newest
        entries = [(self._ticks.number(time, self._horizon), target) for time, target in hold.targets]
        self._histories[resource].replace(self._column(slot, node), entries)

    def forget(self, slot: int, node: int) -> None:
        """Nothing was watched of a slot."""
        self._since[slot, :, node] = np.nan
        for history in self._histories:
            history.replace(self._column(slot, node), [])

    def _column(self, slot: int, node: int) -> int:
        return slot * self._shape[2] + node
