"""The cheapest set of a few units, found by branch and bound.

The lower bound of an incomplete set adds the harm of the best remaining units for what is still missing, the last of
them in proportion to the part that is needed.
"""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

from fallow_core.qos.units import Budgets, Unit, may_join

EXACT, MOST_STEPS = 12, 2048
"""With more units than `EXACT` the search stops after `MOST_STEPS`, 10 to 20 ms, with the best set so far."""

_Price = tuple[int, int, int]
"""Masters, terminations above budgets, and harm and the sum of ages combined in one number."""


def best_set(
    fixed: Sequence[Unit], units: Sequence[Unit], need: int, budgets: Budgets, at_most: int | None
) -> list[Unit] | None:
    """The cheapest set that frees `need` with all `fixed` and some of the other units; `None` if there is none.

    :param at_most: the most that it may free.
    """
    search = _Search(units, need, budgets, at_most)
    price, freed = (0, 0, 0), 0
    for unit in fixed:
        price = search.take(unit, price)
        freed += unit.freed
    search.go(0, freed, price)
    return search.best


class _Search:
    """`best` is the best set so far, `_taken` the set that is being tried; `_rooms` and `_budgets` belong to that."""

    def __init__(self, units: Sequence[Unit], need: int, budgets: Budgets, at_most: int | None) -> None:
        self.best: list[Unit] | None = None
        self._scale = 1 + sum(unit.age_ms for unit in units)
        self._units = sorted(units, key=lambda unit: (Fraction(self._weight(unit), unit.freed), unit.name))
        self._weights = [self._weight(unit) for unit in self._units]
        self._frees = [unit.freed for unit in self._units]
        workers = [0 if unit.masters else unit.freed for unit in reversed(self._units)]
        self._workers_free = [*reversed(list(accumulate(workers))), 0]
        self._largest = [*reversed(list(accumulate((unit.freed for unit in reversed(self._units)), max))), 1]
        self._need = need
        self._at_most = at_most
        self._budgets = Counter(budgets)
        self._rooms: Counter[tuple[str, ...]] = Counter()
        self._taken: list[Unit] = []
        self._price: _Price | None = None
        self._steps_left = MOST_STEPS if len(units) > EXACT else 2 << len(units)

    def go(self, at: int, freed: int, price: _Price) -> None:
        """Try all sets of the taken units and any of the units from `at` on."""
        if freed >= self._need:
            if self._price is None or price < self._price:
                self.best, self._price = list(self._taken), price
            return
        if not self._steps_left or not self._can_be_better(at, self._need - freed, price):
            return
        self._steps_left -= 1
        unit = self._units[at]
        fits = self._at_most is None or freed + unit.freed <= self._at_most
        if fits and may_join(unit, self._rooms):
            self.go(at + 1, freed + unit.freed, self.take(unit, price))
            self._give_back(unit)
        self.go(at + 1, freed, price)

    def take(self, unit: Unit, price: _Price) -> _Price:
        """Take one more unit; the new price."""
        self._taken.append(unit)
        if unit.gang is not None:
            self._rooms[unit.gang] += unit.take
        above = max(unit.terminations - max(self._budgets[unit.application], 0), 0)
        self._budgets[unit.application] -= unit.terminations
        return price[0] + unit.masters, price[1] + above, price[2] + self._weight(unit)

    def _give_back(self, unit: Unit) -> None:
        self._taken.pop()
        if unit.gang is not None:
            self._rooms[unit.gang] -= unit.take
        self._budgets[unit.application] += unit.terminations

    def _can_be_better(self, at: int, missing: int, price: _Price) -> bool:
        """Whether the units from `at` on suffice, and the lower bound is below the price of the best set."""
        masters = price[0] + (missing > self._workers_free[at])
        terminations = -(-missing // self._largest[at])
        above = price[1] + max(terminations - sum(left for left in self._budgets.values() if left > 0), 0)
        weight = price[2]
        for one in range(at, len(self._units)):
            frees = self._frees[one]
            if frees >= missing:
                weight += self._weights[one] * missing // frees
                return self._price is None or (masters, above, weight) < self._price
            weight += self._weights[one]
            missing -= frees
        return False

    def _weight(self, unit: Unit) -> int:
        return unit.harm * self._scale + unit.age_ms
