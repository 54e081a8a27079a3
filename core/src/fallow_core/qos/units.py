"""What can be terminated to free something, and what that costs."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fallow_core.model.task import ApplicationKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What ends together: a task, or a gang. `name` tells units apart, and decides where nothing else does.

    `terminations`: of how many tasks. `harm` in milli-core-seconds, `freed` in the unit of what is needed. Of the units
    of one `gang` those may end together that `take` no more than its `room` in all.
    """

    name: tuple[str, ...]
    application: ApplicationKey
    terminations: int
    masters: int
    harm: int
    age_ms: int
    freed: int
    gang: tuple[str, ...] | None = None
    take: int = 1
    room: int = 1


class Cost(NamedTuple):
    """What counts more comes first: masters, terminations above an application's budget, harm, and the sum of ages."""

    masters: int
    above_budget: int
    harm: int
    age_ms: int


Budgets = Mapping[ApplicationKey, int]
"""How many more terminations each application has; at least the applications of all units."""


def cost(units: Iterable[Unit], budgets: Budgets) -> Cost:
    """What it costs to end these."""
    terminations: Counter[ApplicationKey] = Counter()
    masters = harm = age_ms = 0
    for unit in units:
        terminations[unit.application] += unit.terminations
        masters += unit.masters
        harm += unit.harm
        age_ms += unit.age_ms
    above = sum(max(count - budgets[application], 0) for application, count in terminations.items())
    return Cost(masters=masters, above_budget=above, harm=harm, age_ms=age_ms)


def freed(units: Iterable[Unit]) -> int:
    """What they free together."""
    return sum(unit.freed for unit in units)


def may_join(unit: Unit, taken: Counter[tuple[str, ...]]) -> bool:
    """Whether its gang has room for it; `taken`: how much of the room of each gang is used up."""
    return unit.gang is None or taken[unit.gang] + unit.take <= unit.room
