"""The cheapest set of units that frees enough.

Up to twenty units are searched for the best set (`best_set`). More units are sorted greedily, and only the twenty
around the point where they suffice are searched. This is done once by harm and once by the number of terminations,
since budgets may forbid many small terminations, and the cheaper set is chosen.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from fallow_core.qos.best_set import best_set
from fallow_core.qos.units import Budgets, Unit, cost, freed, may_join

EDGE = 20
"""The number of units that are searched for the best set."""

Price = Callable[[Unit, int], float]
"""The price of a unit as the next one, by the amount that is still missing."""


def cheapest(units: Iterable[Unit], need: int, budgets: Budgets, at_most: int | None = None) -> tuple[Unit, ...]:
    """The cheapest units that free `need` together; if all units do not suffice, all that free something.

    The least harmful unit comes first. No unit is redundant. The order of `units` does not matter.

    :param at_most: the most that the set may free, if such a set is found.
    """
    useful = sorted((unit for unit in units if unit.freed > 0), key=lambda unit: unit.name)
    most = _most(useful)
    if freed(most) < need:
        return _without_redundant(most, need)
    # With many units, members of gangs may displace whole gangs, so both are tried.
    pools = [useful, most] if len(useful) > EDGE and len(most) < len(useful) else [useful]
    prices = (_harm_for_what_is_freed, _smallness) if len(useful) > EDGE else (_harm_for_what_is_freed,)
    tries = [
        found
        for pool in pools
        for price in prices
        if (found := _cheapest_by(price, pool, need, budgets, at_most)) is not None
    ]
    if not tries:
        return cheapest(useful, need, budgets) if at_most is not None else _without_redundant(most, need)
    return _without_redundant(min(tries, key=lambda units: cost(units, budgets)), need)


def _most(units: Iterable[Unit]) -> list[Unit]:
    """A set that frees the most: whole gangs, or their largest members if a gang may not be terminated whole."""
    rooms: Counter[tuple[str, ...]] = Counter()
    found = []
    for unit in sorted(units, key=lambda unit: (-unit.take, -unit.freed, unit.name)):
        if may_join(unit, rooms):
            found.append(unit)
            if unit.gang is not None:
                rooms[unit.gang] += unit.take
    return sorted(found, key=lambda unit: unit.name)


def _cheapest_by(
    price: Price, units: Sequence[Unit], need: int, budgets: Budgets, at_most: int | None
) -> list[Unit] | None:
    """The best set of the first units by this price, and any of those around the point where they suffice."""
    ordered, enough = _best_first(price, units, need, budgets)
    first = max(min(enough - EDGE // 2, len(ordered) - EDGE), 0)
    return best_set(ordered[:first], ordered[first : first + EDGE], need, budgets, at_most)


def _best_first(price: Price, units: Sequence[Unit], need: int, budgets: Budgets) -> tuple[list[Unit], int]:
    """The units in greedy order, and how many of them suffice.

    Units for which their gang has no room come last.
    """
    left, taken, missing, budget = list(units), list[Unit](), need, Counter(budgets)
    rooms: Counter[tuple[str, ...]] = Counter()

    def rank(unit: Unit) -> tuple[bool, int, int, float, int, int]:
        above_budget = max(unit.terminations - max(budget[unit.application], 0), 0)
        return not may_join(unit, rooms), unit.masters, above_budget, price(unit, missing), unit.harm, unit.age_ms

    while missing > 0 and left:
        best = min(left, key=rank)
        if not may_join(best, rooms):
            break
        left.remove(best)
        taken.append(best)
        missing -= best.freed
        budget[best.application] -= best.terminations
        if best.gang is not None:
            rooms[best.gang] += best.take
    missing = max(missing, 1)
    return taken + sorted(left, key=rank), len(taken)


def _harm_for_what_is_freed(unit: Unit, missing: int) -> float:
    return unit.harm / min(unit.freed, missing)


def _smallness(unit: Unit, missing: int) -> float:
    return -min(unit.freed, missing)


def _without_redundant(units: Iterable[Unit], need: int) -> tuple[Unit, ...]:
    """Remove redundant units, the most harmful first."""
    kept = sorted(units, key=lambda unit: (unit.masters, unit.harm, unit.age_ms, unit.name))
    for unit in reversed(kept):
        if freed(kept) - unit.freed >= need:
            kept = [other for other in kept if other is not unit]
    return tuple(kept)
