"""The cheapest set that frees enough.

Every set of up to ten units is tried, so among so few the answer is the best there is. Of more, the best next one is
taken again and again, and only the ten around the point where it is enough are tried in every way. That is done twice,
once for the least harm and once for the fewest endings (budgets may forbid many small ones), and the cheaper one wins.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from fallow_core.model.task import ApplicationKey

EDGE = 10
"""Of how many units every set is tried."""


class Cost(NamedTuple):
    """What counts more comes first: masters, endings above an application's budget, harm, and the sum of ages."""

    masters: int
    above_budget: int
    harm: int
    age_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What ends together: a task, or a gang. `name` tells units apart, and decides where nothing else does.

    `endings`: of how many tasks. `harm` in milli-core-seconds, `freed` in the unit of what is needed.
    """

    name: tuple[str, ...]
    application: ApplicationKey
    endings: int
    masters: int
    harm: int
    age_ms: int
    freed: int


Budgets = Mapping[ApplicationKey, int]
"""How many more endings each application has; at least the applications of all units."""

Price = Callable[[Unit, int], Fraction]
"""How good a unit is as the next one while so much is missing; less is better."""


def cheapest(units: Iterable[Unit], need: int, budgets: Budgets) -> tuple[Unit, ...]:
    """The cheapest units that free `need` together; all that free anything where even those do not suffice.

    The least harmful comes first, no unit is redundant, and the order of `units` does not matter.
    """
    useful = sorted((unit for unit in units if unit.freed > 0), key=lambda unit: unit.name)
    if _freed(useful) < need:
        return _without_redundant(useful, need)
    tries = [_cheapest_by(price, useful, need, budgets) for price in (_harm_for_what_is_freed, _smallness)]
    return _without_redundant(min(tries, key=lambda units: cost(units, budgets)), need)


def cost(units: Iterable[Unit], budgets: Budgets) -> Cost:
    """What it costs to end these."""
    endings: Counter[ApplicationKey] = Counter()
    masters = harm = age_ms = 0
    for unit in units:
        endings[unit.application] += unit.endings
        masters += unit.masters
        harm += unit.harm
        age_ms += unit.age_ms
    above = sum(max(count - budgets[application], 0) for application, count in endings.items())
    return Cost(masters=masters, above_budget=above, harm=harm, age_ms=age_ms)


def _cheapest_by(price: Price, units: Sequence[Unit], need: int, budgets: Budgets) -> tuple[Unit, ...]:
    """The best set of those that hold the first best units, and any of the ten where it becomes enough."""
    ordered, enough = _best_first(price, units, need, budgets)
    first = max(min(enough - EDGE // 2, len(ordered) - EDGE), 0)
    sets = [tuple(ordered[:first])]
    for unit in ordered[first : first + EDGE]:
        sets += [(*each, unit) for each in sets]
    return min((each for each in sets if _freed(each) >= need), key=lambda each: cost(each, budgets))


def _best_first(price: Price, units: Sequence[Unit], need: int, budgets: Budgets) -> tuple[list[Unit], int]:
    """The units in the order in which each is the best next one, and how many of them are enough."""
    left, taken, missing, budget = list(units), list[Unit](), need, Counter(budgets)

    def rank(unit: Unit) -> tuple[int, int, Fraction, int, int]:
        above_budget = max(unit.endings - max(budget[unit.application], 0), 0)
        return unit.masters, above_budget, price(unit, missing), unit.harm, unit.age_ms

    while True:
        best = min(left, key=rank)
        left.remove(best)
        taken.append(best)
        if best.freed >= missing:
            return taken + sorted(left, key=rank), len(taken)
        budget[best.application] -= best.endings
        missing -= best.freed


def _harm_for_what_is_freed(unit: Unit, missing: int) -> Fraction:
    return Fraction(unit.harm, min(unit.freed, missing))


def _smallness(unit: Unit, missing: int) -> Fraction:
    return Fraction(-min(unit.freed, missing))


def _without_redundant(units: Iterable[Unit], need: int) -> tuple[Unit, ...]:
    """Without those that the others make redundant, the most harmful first."""
    kept = sorted(units, key=lambda unit: (unit.masters, unit.harm, unit.age_ms, unit.name))
    for unit in reversed(kept):
        if _freed(kept) - unit.freed >= need:
            kept = [other for other in kept if other is not unit]
    return tuple(kept)


def _freed(units: Iterable[Unit]) -> int:
    return sum(unit.freed for unit in units)
