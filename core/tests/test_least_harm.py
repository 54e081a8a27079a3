from collections.abc import Sequence
from itertools import combinations
from random import Random

import pytest
from core.tests.qos_values import ETL
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.model.task import ApplicationKey
from fallow_core.qos.least_harm import cheapest
from fallow_core.qos.units import Cost, Unit, cost

UNITS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(1, 2),
        st.integers(0, 1),
        st.integers(0, 50),
        st.integers(0, 5),
        st.integers(0, 12),
    ),
    max_size=12,
).map(
    lambda many: [
        Unit(
            name=(f"u{n}",),
            application=ApplicationKey(ETL, f"app{app}"),
            terminations=terminations,
            masters=masters,
            harm=harm,
            age_ms=age,
            freed=freed,
        )
        for n, (app, terminations, masters, harm, age, freed) in enumerate(many)
    ]
)
BUDGETS = st.tuples(*[st.integers(0, 3)] * 3).map(
    lambda left: {ApplicationKey(ETL, f"app{n}"): each for n, each in enumerate(left)}
)


@given(UNITS, st.integers(1, 40), BUDGETS)
def test_of_up_to_twelve_the_best_set_is_found(
    units: list[Unit], need: int, budgets: dict[ApplicationKey, int]
) -> None:
    found = cheapest(units, need, budgets)
    enough = [each for each in _all_sets(units) if sum(unit.freed for unit in each) >= need]
    if enough:
        assert sum(unit.freed for unit in found) >= need
        assert cost(found, budgets) == min(cost(each, budgets) for each in enough)
        assert all(sum(unit.freed for unit in found) - unit.freed < need for unit in found), "nobody is redundant"
    else:
        assert set(found) == {unit for unit in units if unit.freed > 0}


def unit(name: str, harm: int, freed: int) -> Unit:
    application = ApplicationKey(ETL, "app")
    return Unit(name=(name,), application=application, terminations=1, masters=0, harm=harm, age_ms=0, freed=freed)


def test_a_set_that_frees_no_more_than_it_may_is_found_where_there_is_one() -> None:
    units = [unit("a", 1, 3), unit("b", 1, 3), unit("c", 9, 5)]
    budgets = {ApplicationKey(ETL, "app"): 9}
    assert [one.name for one in cheapest(units, 5, budgets)] == [("a",), ("b",)]
    assert [one.name for one in cheapest(units, 5, budgets, at_most=5)] == [("c",)]
    assert [one.name for one in cheapest(units[:2], 5, budgets, at_most=5)] == [("a",), ("b",)]


def _all_sets(units: Sequence[Unit]) -> list[tuple[Unit, ...]]:
    return [each for count in range(len(units) + 1) for each in combinations(units, count)]


@pytest.mark.parametrize("count", [15, 30, 60])
@pytest.mark.parametrize("part", [2, 5, 10])
@pytest.mark.parametrize("seed", range(5))
def test_of_many_a_set_near_the_best_is_found(count: int, part: int, seed: int) -> None:
    random = Random(seed)
    application = ApplicationKey(ETL, "app")
    units = [
        Unit(
            name=(f"u{n:02}",),
            application=application,
            terminations=1,
            masters=0,
            harm=60 + int(random.expovariate(1 / 600)),
            age_ms=0,
            freed=random.randint(1, 32),
        )
        for n in range(count)
    ]
    need = sum(unit.freed for unit in units) // part
    budgets = {application: count}
    assert cost(cheapest(units, need, budgets), budgets).harm <= 1.2 * _least_harm(units, need)


@pytest.mark.parametrize("seed", [220, 331, 383, 479])
def test_of_many_nobody_is_redundant(seed: int) -> None:
    """In these some that were taken first became redundant by one that was taken later."""
    random = Random(seed)
    application = ApplicationKey(ETL, "app")
    units = [
        Unit(
            name=(f"u{n:02}",),
            application=application,
            terminations=1,
            masters=0,
            harm=random.choice([1, 5, 50, 500, 5000]) * random.randint(1, 20),
            age_ms=0,
            freed=random.choice([1, 2, 3, 30, 100]),
        )
        for n in range(random.randint(12, 40))
    ]
    need = sum(unit.freed for unit in units) // random.randint(2, 12)
    found = cheapest(units, need, {application: len(units)})
    assert need <= sum(unit.freed for unit in found) < need + min(unit.freed for unit in found)


def _least_harm(units: Sequence[Unit], need: int) -> float:
    """By dynamic programming over what is freed: exact, since the amounts are small."""
    least = [0.0] + [float("inf")] * need
    for unit in units:
        for freed in range(need, 0, -1):
            least[freed] = min(least[freed], least[max(freed - unit.freed, 0)] + unit.harm)
    return least[need]


def test_costs_compare_by_masters_then_budgets_then_harm_then_age() -> None:
    costs = [Cost(0, 0, 9, 9), Cost(0, 0, 10, 0), Cost(0, 1, 0, 0), Cost(1, 0, 0, 0)]
    assert sorted(costs) == costs
