"""A short simulated day; `tests/benchmarks/ledger_day.py` lives through whole ones."""

import pytest
from tests.benchmarks.day.judge import Tally, Want, fair_tasks
from tests.benchmarks.day.without import RULES, without
from tests.benchmarks.day.world import Day, World

from fallow_hookspecs import Resources

DAY = Day(seed=1, hours=2, nodes=2, trouble_percent=20, restarts_a_day=12)


@pytest.mark.timeout(120)
def test_on_a_short_day_nobody_starves_nothing_is_lent_twice_and_sizes_change_seldom() -> None:
    tally = World(DAY).run()
    assert tally.judged_hours >= 3
    assert tally.starved() == []
    assert (tally.grown_beyond, tally.more_than_believed) == (0, 0)
    assert tally.lent >= 0.85 * tally.possible
    # More than on a whole day: every other hour somebody restarts, and one call in five is late or lost.
    assert sum(tally.sizes_sent.values()) <= 22 * DAY.hours * DAY.nodes * len(DAY.kinds)


def test_without_what_others_may_not_believe_capacity_is_lent_twice() -> None:
    with without(
        "growth out of what others may not believe", Day(seed=2, hours=0.6, nodes=1, restarts_a_day=50)
    ) as day:
        assert World(day).run().grown_beyond > 0


def test_every_rule_can_be_switched_off() -> None:
    for rule in RULES:
        with without(rule, Day(seed=1, hours=0.02, nodes=1)) as day:
            World(day).run()


def test_accounts_with_tasks_of_different_shapes_are_stopped_by_what_each_runs_out_of() -> None:
    cpu, memory = Resources(2, 1), Resources(1, 4)
    assert fair_tasks(Resources(20, 40), [Want(1, cpu, 100), Want(1, memory, 100)]) == pytest.approx([6.67, 6.67], 0.1)
    assert fair_tasks(Resources(20, 40), [Want(1, cpu, 100), Want(1, memory, 2)]) == pytest.approx([9, 2])
    assert fair_tasks(Resources(20, 40), [Want(3, cpu, 100), Want(1, cpu, 100)]) == pytest.approx([7.5, 2.5])


def test_an_hour_below_half_of_the_fair_share_is_a_starved_one() -> None:
    tally = Tally()
    tally.moments[0] = tally.wanted["a", 0] = tally.wanted["b", 0] = tally.wanted["c", 0] = 100
    tally.fair |= {("a", 0): 400.0, ("b", 0): 400.0, ("c", 0): 40.0}
    tally.got |= {("a", 0): 199.0, ("b", 0): 200.0}
    assert tally.starved() == [("a", 0, 199 / 400)]
    assert tally.judged_hours == 2
