"""The targets of the last while of all rows of a block, of one resource: most are few, and the others lie apart.

A target that varies at random has as many entries as a sequence has records: five in an hour's worth of readings. One
that rises steadily has an entry for each.
"""

import numpy as np
import numpy.typing as npt

from fallow_core.ledger.fleet.arrays import AnyArray, Ints
from fallow_core.ledger.fleet.stacks import Stacks
from fallow_core.ledger.fleet.ticks import Ticks

NEAR, FAR = 12, 20
"""How many entries have room in the table of all, and in that of the deep ones before that grows."""


class History:
    """By column. `far`: which columns lie in the deep table; in the other one they have no entries."""

    def __init__(self, columns: int, ticks: Ticks, dtype: npt.DTypeLike) -> None:
        self._ticks = ticks
        self._near = Stacks(NEAR, columns, dtype)
        self._deep = Stacks(FAR, 0, dtype)
        self._far = np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        arrays = [self._far, *(a for s in (self._near, self._deep) for a in (s.targets, s.ticks, s.count))]
        return sum(array.nbytes for array in arrays)

    def push(self, new: Ints, now: float, horizon: float) -> None:
        """Add a target to all columns; nothing from before `horizon` is asked for any more."""
        tick = self._ticks.number(now, horizon)
        if self._far.size:
            self._push_deep(self._deep, new.take(self._far), tick, horizon)
        full = self._near.push(new, tick)
        self._near.count[self._far] = 0
        self._make_room(full, new, tick, horizon)
        self._bring_back()

    def _make_room(self, full: Ints, new: Ints, tick: int, horizon: float) -> None:
        """Push to columns without room: what is over goes, and a column that still has none becomes a deep one."""
        if not full.size:
            return
        some = self._near.of(full)
        some.expire(self._ticks, horizon)
        still = some.push(new.take(full), tick)
        self._near.put(full, some)
        if still.size:
            deep = Stacks(self._deep.depth, still.size, some.targets.dtype)
            deep.put(np.arange(still.size), some.of(still))
            deep.push(new.take(full.take(still)), tick)
            self._deep = self._deep.joined(deep)
            self._far = np.concatenate([self._far, full.take(still)])
            self._near.count[self._far] = 0

    def _push_deep(self, deep: Stacks, new: Ints, tick: int, horizon: float) -> None:
        deep.expire(self._ticks, horizon)
        full = deep.push(new, tick)
        if full.size:
            self._deep = deep = deep.deeper()
            some = deep.of(full)
            some.push(new.take(full), tick)
            deep.put(full, some)

    def _bring_back(self) -> None:
        shallow = self._deep.count <= NEAR // 2
        if shallow.any():
            back = np.flatnonzero(shallow)
            self._near.put(self._far.take(back), self._deep.of(back))
            rest = np.flatnonzero(~shallow)
            self._deep, self._far = self._deep.of(rest), self._far.take(rest)

    def least(self, columns: Ints, since: float) -> AnyArray:
        """The smallest target of each of some columns since then."""
        found = self._near.least(columns, self._ticks, since)
        if self._far.size:
            of_deep = np.full(len(self._near.count), -1)
            of_deep[self._far] = np.arange(self._far.size)
            at = of_deep.take(columns)
            deep = np.flatnonzero(at >= 0)
            found[deep] = self._deep.least(at.take(deep), self._ticks, since)
        return found

    def entries(self, column: int) -> list[tuple[int, int]]:
        """The numbers of the times, and the targets, of one column."""
        stacks, at = self._place(column)
        count = int(stacks.count[at])
        return list(zip(stacks.ticks[:count, at].tolist(), map(int, stacks.targets[:count, at]), strict=True))

    def replace(self, column: int, entries: list[tuple[int, int]]) -> None:
        """Give a column other entries."""
        stacks, at = self._place(column)
        if len(entries) > stacks.depth:
            while len(entries) > self._deep.depth:
                self._deep = self._deep.deeper()
            if stacks is self._near:
                self._deep = self._deep.joined(Stacks(1, 1, self._deep.targets.dtype))
                self._far = np.append(self._far, column)
                self._near.count[column] = 0
            stacks, at = self._place(column)
        stacks.count[at] = len(entries)
        for k, (tick, target) in enumerate(entries):
            stacks.ticks[k, at], stacks.targets[k, at] = tick, target

    def _place(self, column: int) -> tuple[Stacks, int]:
        if self._near.count[column]:
            return self._near, column
        own = np.flatnonzero(self._far == column)
        return (self._deep, int(own[0])) if own.size else (self._near, column)
