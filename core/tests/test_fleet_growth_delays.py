"""What is remembered of growth, in columns: the same as `GrowthDelay`, however long targets rise."""

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fallow_core.ledger.fleet.growth_delays import HOLD, adopt, ahead, drains, least_since, plain, push
from fallow_core.ledger.fleet.ticks import COUNT, Ticks
from fallow_core.ledger.growth_delay import DEPTH, SLOW, GrowthDelay

SECONDS = 10.0
MEMORY = 1


class Both:
    """One hold in both forms."""

    def __init__(self) -> None:
        self.ticks, self.record = Ticks(), np.zeros(1, HOLD)[0]
        self.record["since"] = np.nan
        self.plain: GrowthDelay | None = None

    def push(self, now: float, newest: int, target: int) -> None:
        self.plain = self.plain or GrowthDelay(since=now, newest=newest)
        self.plain.push(now, newest, target, SECONDS)
        tick, oldest = self.ticks.number(now), now - SLOW * SECONDS
        push(self.record, MEMORY, newest, target, now, tick, self.ticks.table, oldest)
        falls, over = self.plain.falls, target < newest
        falls.note(now, over)
        assert drains(self.record, MEMORY, now, over) == falls.drains(now)
        assert ahead(self.record, MEMORY, now + 1, target - 1) == falls.ahead(now + 1, target - 1)
        assert plain(self.record, MEMORY, self.ticks) == self.plain
        for seconds in (SECONDS, SLOW * SECONDS):
            least = least_since(self.record, MEMORY, now, seconds, self.ticks.table)
            assert least == self.plain.least(now, seconds)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from([1.0, 9.0, 60.0]), st.integers(0, 9), st.integers(0, 9)), max_size=60))
def test_growth_holds_in_both_forms_are_the_same(rounds: list[tuple[float, int, int]]) -> None:
    both = Both()
    for now, newest, target in accumulate(rounds, lambda before, this: (before[0] + this[0], *this[1:])):
        both.push(now, newest, target)


@pytest.mark.parametrize("seconds", [0.1, 1.0, 5.0])
def test_of_targets_that_rise_for_long_no_more_than_so_many_are_remembered(seconds: float) -> None:
    both, now = Both(), 100.0
    for target in [*range(1, 400), *range(200, 300), 0, 1, 2]:
        now += seconds
        both.push(now, 0, target)
        assert both.plain is not None
        assert len(both.plain.targets) <= DEPTH
    assert both.plain is not None
    assert [target for _, target in both.plain.targets] == [0, 1, 2]


def test_a_hold_may_be_taken_over_from_the_plain_form() -> None:
    both, hold = Both(), GrowthDelay(since=3.0, newest=7, targets=[(1.0, 2), (5.0, 9)])
    adopt(both.record, MEMORY, hold, both.ticks)
    assert plain(both.record, MEMORY, both.ticks) == hold
    assert plain(both.record, 0, both.ticks) is None


def test_when_the_numbers_of_times_run_out_targets_count_as_later() -> None:
    ticks = Ticks()
    ticks.forget(0.0)
    numbers = [ticks.number(float(i)) for i in range(COUNT + 10)]
    assert len(set(numbers)) == COUNT
    assert all(ticks.times[number] >= i for i, number in enumerate(numbers))
    ticks.forget(9.0)
    assert ticks.number(1e6) not in numbers[9:]
