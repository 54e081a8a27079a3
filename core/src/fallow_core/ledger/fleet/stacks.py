"""Targets of the last while, for many rows at once: what `GrowthHold` keeps in a deque, in columns.

Each column holds targets that grow from entry to entry, and the number of the time of each, so the first entry of a
time is the smallest target since then. What lies above `count` is over.
"""

import numpy as np
import numpy.typing as npt

from fallow_core.ledger.fleet.arrays import AnyArray, Ints
from fallow_core.ledger.fleet.ticks import Ticks

MORE = 4
"""How many entries more get room where that is not enough."""


class Stacks:
    """Entries by depth and column."""

    def __init__(self, depth: int, columns: int, dtype: npt.DTypeLike) -> None:
        self.targets: AnyArray = np.zeros((depth, columns), dtype)
        self.ticks = np.zeros((depth, columns), np.uint16)
        self.count: AnyArray = np.zeros(columns, np.uint8 if depth < 256 else np.uint16)

    @property
    def depth(self) -> int:
        """How many entries a column has room for."""
        return len(self.targets)

    def push(self, new: Ints, tick: int) -> Ints:
        """Add a target to each column, in place of those that are not smaller. A column that has no room is left as it
        was; returns which.
        """
        columns = len(self.count)
        kept = np.zeros(columns, self.count.dtype)
        smaller = np.ones(columns, np.bool_)
        new = new.astype(self.targets.dtype)
        for k in range(int(self.count.max(initial=0))):
            smaller &= self.targets[k] < new
            kept += smaller.view(np.uint8)
        np.minimum(kept, self.count, out=kept)
        full = np.flatnonzero(kept == self.depth)
        at = kept * np.int64(columns)
        at += np.arange(columns)
        if full.size:
            kept[full] -= 1
            at[full] = (self.depth - 1) * columns + full
            top = self.ticks[-1, full]
            new[full] = self.targets[-1, full]
        self.targets.reshape(-1)[at] = new
        self.ticks.reshape(-1)[at] = tick
        if full.size:
            self.ticks[-1, full] = top
        np.add(kept, 1, out=self.count)
        return full

    def of(self, columns: Ints) -> "Stacks":
        """A copy of some columns."""
        found = Stacks(0, 0, self.targets.dtype)
        found.targets, found.ticks = self.targets.take(columns, 1), self.ticks.take(columns, 1)
        found.count = self.count.take(columns)
        return found

    def put(self, columns: Ints, other: "Stacks") -> None:
        """Replace some columns by others that fit."""
        depth = min(self.depth, other.depth)
        self.targets[:depth, columns], self.ticks[:depth, columns] = other.targets[:depth], other.ticks[:depth]
        self.count[columns] = other.count

    def joined(self, other: "Stacks") -> "Stacks":
        """All columns of both, as deep as this one."""
        found = Stacks(self.depth, len(self.count) + len(other.count), self.targets.dtype)
        found.put(np.arange(len(self.count)), self)
        found.put(np.arange(len(self.count), len(found.count)), other)
        return found

    def deeper(self) -> "Stacks":
        """The same with more room."""
        found = Stacks(self.depth + MORE, len(self.count), self.targets.dtype)
        found.put(np.arange(len(self.count)), self)
        return found

    def expire(self, ticks: Ticks, since: float) -> None:
        """Drop the entries from before."""
        while (columns := np.flatnonzero((self.count > 0) & ticks.before(self.ticks[0], since))).size:
            self.targets[:-1, columns] = self.targets[1:, columns]
            self.ticks[:-1, columns] = self.ticks[1:, columns]
            self.count[columns] -= 1

    def least(self, columns: Ints, ticks: Ticks, since: float) -> AnyArray:
        """The smallest target of some columns since then."""
        found: AnyArray = self.targets[0].take(columns)
        going, count = np.arange(columns.size), self.count.take(columns)
        for k in range(self.depth - 1):
            old = ticks.before(self.ticks[k].take(columns.take(going)), since)
            going = going.compress(old & (count.take(going) > k + 1))
            if not going.size:
                break
            found[going] = self.targets[k + 1].take(columns.take(going))
        return found
