"""Units: tasks or gangs that can be terminated, with what each frees and costs."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fallow_core.model.task import ApplicationKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A task, or a gang that is terminated as a whole. `name` identifies it, and breaks ties.

    `terminations`: the number of its tasks. `harm` in milli-core-seconds, `freed` in the unit of the need. Units of one
    `gang` may be chosen together if the sum of their `take` is at most its `room`.
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
    """In order of importance: masters, terminations above an application's budget, harm, and the sum of ages."""

    masters: int
    above_budget: int
    harm: int
    age_ms: int


Budgets = Mapping[ApplicationKey, int]
"""How many more terminations each application may have; it contains the applications of all units."""


def cost(units: Iterable[Unit], budgets: Budgets) -> Cost:
    """The cost of terminating these."""
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
    """The sum of what they free."""
    return sum(unit.freed for unit in units)


def may_join(unit: Unit, taken: Counter[tuple[str, ...]]) -> bool:
    """Whether its gang has room for it; `taken`: the used room of each gang."""
    return unit.gang is None or taken[unit.gang] + unit.take <= unit.room
