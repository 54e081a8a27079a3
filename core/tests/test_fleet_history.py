"""What is remembered of growth, in columns: the same as `GrowthHold`, however deep it gets."""

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fallow_core.ledger.fleet.history import FAR, NEAR, History
from fallow_core.ledger.fleet.holds import Holds
from fallow_core.ledger.fleet.ticks import COUNT, Ticks
from fallow_core.ledger.publishing import SLOW, GrowthHold
from fallow_core.model.policy import PublishingPolicy

COLUMNS, HOLD = 5, 10.0


def check(history: History, plain: list[GrowthHold], now: float) -> None:
    columns = np.arange(COLUMNS)
    for seconds in (HOLD, SLOW * HOLD):
        expected = [hold.least(now, seconds) for hold in plain]
        assert history.least(columns, now - seconds).tolist() == expected


targets = st.lists(st.integers(0, 5), min_size=COLUMNS, max_size=COLUMNS) | st.just([9] * COLUMNS)
rounds = st.lists(st.tuples(st.sampled_from([1.0, 2.0, 9.0, 60.0]), targets, st.booleans()), min_size=1, max_size=60)


@settings(deadline=None)
@given(rounds)
def test_the_smallest_target_of_the_last_while_is_that_of_the_plain_version(
    rounds: list[tuple[float, list[int], bool]],
) -> None:
    history, plain, now, risen = (
        History(COLUMNS, Ticks(), np.int64),
        [GrowthHold(0.0, 0) for _ in range(COLUMNS)],
        100.0,
        0,
    )
    for step, drawn, rises in rounds:
        now += step
        risen = risen + 10 if rises else risen
        new = [target + risen for target in drawn]
        history.push(np.array(new), now, now - SLOW * HOLD)
        for hold, target in zip(plain, new, strict=True):
            hold.push(now, 0, target, HOLD)
        check(history, plain, now)


@pytest.mark.parametrize("seconds", [0.1, 1.0, 5.0])
def test_targets_that_rise_for_long_are_all_remembered_and_the_memory_is_given_back(seconds: float) -> None:
    history, plain, now = History(COLUMNS, Ticks(), np.int64), [GrowthHold(0.0, 0) for _ in range(COLUMNS)], 100.0
    rising = [*range(1, 400), *range(200, 300), 0, 1, 2]
    for target in rising:
        now += seconds
        history.push(np.array([target] * (COLUMNS - 1) + [0]), now, now - SLOW * HOLD)
        for hold, own in zip(plain, [target] * (COLUMNS - 1) + [0], strict=True):
            hold.push(now, 0, own, HOLD)
        check(history, plain, now)
    assert [len(history.entries(column)) for column in range(COLUMNS)] == [3, 3, 3, 3, 1]


@pytest.mark.parametrize("count", [1, NEAR, NEAR + 1, FAR + 1, 3 * FAR])
def test_a_column_may_be_given_other_entries(count: int) -> None:
    history, ticks = History(COLUMNS, ticks := Ticks(), np.int32), ticks
    entries = [(ticks.number(float(i), -1.0), 10 * i) for i in range(count)]
    history.replace(3, entries)
    history.push(np.array([1, 1, 1, 10 * count, 1]), 1000.0, -1.0)
    assert history.entries(3) == [*entries, (ticks.number(1000.0, -1.0), 10 * count)]
    assert [len(history.entries(column)) for column in (0, 1, 2, 4)] == [1, 1, 1, 1]


def test_when_the_numbers_of_times_run_out_targets_count_as_later() -> None:
    ticks = Ticks()
    numbers = [ticks.number(float(i), 0.0) for i in range(COUNT + 10)]
    assert len(set(numbers)) == COUNT
    assert all(ticks.time(number) >= i for i, number in enumerate(numbers))


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from([1.0, 10.0]), st.integers(0, 30), st.integers(0, 40)), max_size=40))
def test_growth_holds_in_both_forms_are_the_same(rounds: list[tuple[float, int, int]]) -> None:
    policy, now = PublishingPolicy(growth_hold_seconds=HOLD), 50.0
    holds, plain, one = Holds(1, 1, Ticks()), None, np.ones((1, 2, 1), np.int64)
    for step, newest, wanted in accumulate(rounds, lambda before, this: (before[0] + this[0], *this[1:])):
        plain = plain or GrowthHold(since=now + step, newest=newest)
        plain.push(now + step, newest, wanted, HOLD)
        holds.push(one * newest, one * wanted, policy, now + step)
        found = holds.plain(0, 1, 0, HOLD)
        assert found is not None
        for seconds in (HOLD, SLOW * HOLD):
            assert found.least(now + step, seconds) == plain.least(now + step, seconds)
