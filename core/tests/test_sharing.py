from itertools import cycle, islice, permutations
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fallow_core.ledger.sharing import Claim, Part, Share, demand, divided, grown, promised_to_all, shares, whole_units


def claim(
    allocated: int,
    *,
    demand: int | None = None,
    limit: int | None = None,
    floor: int = 0,
    weight: int = 1,
    unit: int = 1,
) -> Claim:
    return Claim(weight=weight, allocated=allocated, demand=demand, limit=limit, floor=floor, unit=unit)


def targets(batch: int, *claims: Claim, step: int = 1) -> list[int]:
    return [share.target for share in shares(batch, claims, step)]


def fair(batch: int, *claims: Claim) -> list[int]:
    return [share.fair for share in shares(batch, claims, 1)]


# What an account wants


def test_what_is_pending_is_wanted_on_top_of_what_is_allocated() -> None:
    assert demand(4, 20, 3, 5, 1) == 7


@pytest.mark.parametrize(("allocated", "in_force"), [(8, 10), (10, 10), (12, 10), (0, 0), (0, 4), (96, 100)])
def test_a_full_account_wants_everything_when_pending_is_unknown(allocated: int, in_force: int) -> None:
    assert demand(allocated, in_force, None, 5, 1) is None


def test_an_account_that_is_not_full_wants_room_to_start_something() -> None:
    assert demand(0, 5, None, 5, 1) == 5
    assert demand(10, 20, None, 5, 1) == 15


def test_what_an_account_with_room_wants_leaves_it_with_room() -> None:
    wanted = demand(100, 200, None, 5, 10)
    assert wanted == 130
    assert demand(100, wanted, None, 5, 10) == wanted


@given(st.integers(0, 1000), st.integers(0, 100), st.integers(1, 20))
def test_an_account_given_what_it_wants_is_not_full(allocated: int, step: int, unit: int) -> None:
    wanted = demand(allocated, 10**6, None, step, unit)
    assert wanted is not None
    assert wanted % unit == 0
    assert demand(allocated, wanted, None, step, unit) == wanted


# What an account gets


def test_accounts_that_fit_below_their_fair_shares_get_them() -> None:
    assert targets(12, claim(6), claim(4)) == [6, 6]


def test_in_an_overdraft_who_is_above_fair_falls_and_nobody_adds() -> None:
    pods, yarn = shares(9_000, [claim(6_000, unit=1_000), claim(4_000, unit=1_000)], 450)
    assert (pods, yarn) == (Share(fair=4_500, target=5_000), Share(fair=4_500, target=4_000))


def test_after_the_overdraft_one_unit_apart_is_fair_enough() -> None:
    assert targets(9_000, claim(5_000, unit=1_000), claim(4_000, unit=1_000)) == [5_000, 4_000]


def test_an_account_above_fair_drains_by_a_step_for_one_that_waits() -> None:
    full, waiting = shares(100, [claim(100), claim(0)], 5)
    assert full == Share(fair=50, target=95, drains_for_others=True)
    assert waiting == Share(fair=50, target=0)
    assert targets(100, claim(52), claim(48), step=5) == [50, 48]


def test_nobody_drains_for_an_account_that_wants_no_more() -> None:
    assert targets(100, claim(90), claim(10, demand=10)) == [90, 10]


def test_what_nobody_wants_is_spread_by_weight() -> None:
    assert targets(100, claim(10, demand=10, weight=3), claim(0, demand=0, weight=1)) == [75, 25]


def test_what_one_does_not_want_another_may_have() -> None:
    assert targets(100, claim(10, demand=20), claim(70)) == [20, 80]
    assert fair(100, claim(10, demand=20), claim(70)) == [20, 80]


def test_a_limit_cuts_growth_and_what_is_spread_but_not_what_is_allocated() -> None:
    assert targets(100, claim(0, limit=30), claim(0, demand=0)) == [30, 70]
    assert targets(100, claim(10, demand=10, limit=30), claim(0, demand=0, limit=40)) == [30, 40]
    assert targets(100, claim(60, limit=30), claim(10, demand=10)) == [60, 40]


def test_an_account_above_its_limit_drains_for_one_that_waits() -> None:
    assert shares(100, [claim(60, limit=30), claim(40)], 5)[0] == Share(fair=30, target=55, drains_for_others=True)


def test_a_floor_is_part_of_the_fair_share() -> None:
    assert targets(100, claim(0, demand=0, floor=20), claim(0)) == [20, 80]


def test_floors_above_batch_are_the_fair_shares() -> None:
    assert shares(10, [claim(0, floor=8), claim(0, floor=7)], 1) == [Share(fair=8, target=8), Share(fair=7, target=7)]


def test_all_of_an_overdraft_that_cannot_be_got_stays() -> None:
    assert targets(10, claim(8, floor=8), claim(7, floor=7)) == [8, 7]


def test_the_largest_fraction_is_rounded_up_where_there_is_room_ties_in_order() -> None:
    assert whole_units(9_000, [4_500, 4_500], [1_000, 1_000]) == [5_000, 4_000]
    assert whole_units(9_000, [4_300, 4_700], [1_000, 1_000]) == [4_000, 5_000]
    assert whole_units(8_900, [4_200, 4_700], [1_000, 1_000]) == [4_000, 4_000]
    assert whole_units(1_507, [7, 1_500], [1, 1_000]) == [7, 1_000]
    assert whole_units(1_000, [333, 333, 333], [1_000] * 3) == [1_000, 0, 0]
    assert whole_units(9_000, [4_300, 0], [1_000, 1_000]) == [5_000, 0]


claims = st.builds(
    Claim,
    weight=st.integers(1, 4),
    allocated=st.integers(0, 30).map(lambda n: n * 10),
    demand=st.none() | st.integers(0, 600),
    limit=st.none() | st.integers(0, 40).map(lambda n: n * 10),
    floor=st.integers(0, 6).map(lambda n: n * 10),
    unit=st.sampled_from([1, 10]),
)
batches = st.integers(0, 800)
steps = st.integers(0, 50)


@given(batches, st.lists(claims, max_size=5), steps)
def test_targets_stay_within_batch_unless_allocations_or_floors_do_not(
    batch: int, claims: list[Claim], step: int
) -> None:
    found = shares(batch, claims, step)
    lowest = sum(max(c.allocated, c.floor) for c in claims)
    assert sum(share.target for share in found) <= max(batch, lowest)
    assert all(share.target >= 0 and share.target % c.unit == 0 for share, c in zip(found, claims, strict=True))


@given(batches, st.lists(claims, max_size=5), steps)
def test_nobody_falls_below_what_it_has_except_in_an_overdraft_or_for_one_that_waits(
    batch: int, claims: list[Claim], step: int
) -> None:
    overdraft = sum(c.allocated for c in claims) > batch
    for share, c in zip(shares(batch, claims, step), claims, strict=True):
        if share.target < c.allocated:
            assert overdraft or share.drains_for_others
            assert c.allocated > share.fair >= c.floor
            assert share.target > share.fair - c.unit
        if overdraft:
            assert share.target <= c.allocated


@given(batches, st.lists(claims, max_size=4), steps)
def test_the_order_of_accounts_decides_about_single_units_only(batch: int, claims: list[Claim], step: int) -> None:
    found = shares(batch, claims, step)
    for order in permutations(range(len(claims))):
        for share, i in zip(shares(batch, [claims[i] for i in order], step), order, strict=True):
            assert share.fair == found[i].fair
            assert abs(share.target - found[i].target) <= claims[i].unit


@settings(max_examples=50)
@given(
    batch=st.integers(0, 200),
    claims=st.lists(claims, min_size=1, max_size=4),
    step=st.integers(20, 50),
    ends=st.lists(st.integers(0, 100), min_size=1, max_size=4),
)
def test_accounts_that_fill_what_they_get_come_to_rest_at_their_fair_shares(
    batch: int, claims: list[Claim], step: int, ends: list[int]
) -> None:
    """In each round tasks end, in the last ones all of them, and schedulers fill whatever is offered and wanted."""
    percents = [*islice(cycle(ends), 12), *(100,) * 12]
    for percent in percents:
        offered = [max(s.target, c.floor) for s, c in zip(shares(batch, claims, step), claims, strict=True)]
        claims = [filled(c, size, percent) for c, size in zip(claims, offered, strict=True)]
    found = shares(batch, claims, step)
    assert offered == [max(s.target, c.floor) for s, c in zip(found, claims, strict=True)]
    for c, share in zip(claims, found, strict=True):
        wanted = share.fair if c.demand is None else min(share.fair, c.demand)
        assert c.allocated > wanted - c.unit, f"{c} starves: fair is {share.fair}"


def filled(c: Claim, offered: int, percent: int) -> Claim:
    """The claim after `percent` of its tasks ended and new ones took what is offered and wanted."""
    kept = c.allocated * (100 - percent) // 100 // c.unit * c.unit
    wanted = offered if c.demand is None else min(offered, c.demand // c.unit * c.unit)
    return c._replace(allocated=max(kept, wanted))


# Where what is free is promised to everybody


def test_each_account_is_promised_all_that_is_free() -> None:
    pods, yarn = promised_to_all(12, [claim(6), claim(4)], 1)
    assert (pods, yarn) == (Share(fair=6, target=8), Share(fair=6, target=6))


def test_a_promise_stays_within_the_limit_and_in_whole_units_but_not_below_what_is_allocated() -> None:
    claims = [claim(10, limit=30), claim(40, limit=30), claim(5, unit=10)]
    assert [share.target for share in promised_to_all(100, claims, 5)] == [30, 40, 50]


def test_nobody_drains_for_another_where_all_is_promised_to_everybody() -> None:
    assert promised_to_all(100, [claim(100), claim(0)], 5) == [Share(fair=50, target=100), Share(fair=50, target=0)]


def test_in_an_overdraft_of_promises_who_is_above_fair_falls() -> None:
    claims = [claim(6_000, unit=1_000), claim(4_000, unit=1_000)]
    assert promised_to_all(9_000, claims, 450) == shares(9_000, claims, 450)


# What a row gets


def part(allocated: int, *, floor: int = 0, most: int | None = None, unit: int = 1) -> Part:
    return Part(allocated=allocated, floor=floor, most=most, unit=unit)


def test_what_is_free_goes_to_rows_by_what_they_have_allocated() -> None:
    assert divided(12, [part(6), part(2)]) == [9, 3]


def test_an_idle_row_gets_by_its_floor() -> None:
    assert divided(12, [part(6, floor=2), part(0, floor=2)]) == [9, 3]


def test_a_row_that_can_use_no_more_leaves_the_rest_to_the_other() -> None:
    assert divided(12, [part(6, most=7), part(2)]) == [7, 5]


def test_below_what_is_allocated_rows_fall_by_the_same_share_down_to_floors() -> None:
    assert divided(6, [part(8), part(4)]) == [4, 2]
    assert divided(6, [part(8, floor=3), part(4, floor=3)]) == [3, 3]
    assert divided(6, [part(10), part(0, floor=2)]) == [4, 2]


parts = st.builds(
    Part,
    allocated=st.integers(0, 20).map(lambda n: n * 10),
    floor=st.integers(0, 5).map(lambda n: n * 10),
    most=st.none() | st.integers(0, 30).map(lambda n: n * 10),
    unit=st.sampled_from([1, 10]),
)


@given(st.integers(0, 600), st.lists(parts, max_size=4))
def test_rows_together_get_no_more_than_their_account_unless_allocations_or_floors_do(
    target: int, parts: list[Part]
) -> None:
    got = divided(target, parts)
    assert sum(got) <= max(target, sum(max(p.allocated, p.floor) for p in parts))
    if target >= sum(p.allocated for p in parts):
        assert all(g >= p.allocated for g, p in zip(got, parts, strict=True))


# What may grow now


def test_a_row_grows_only_out_of_what_nobody_may_believe_it_has() -> None:
    assert grown(12, [12, 0], [4, 8], [4, 8], [1, 1]) == [4, 0]
    assert grown(12, [12, 0], [4, 0], [4, 2], [1, 1]) == [10, 0]


def test_two_rows_do_not_grow_into_the_same_capacity() -> None:
    assert grown(14, [10, 10], [4, 4], [4, 4], [1, 1]) == [7, 7]
    assert grown(14, [14, 6], [4, 4], [4, 4], [1, 1]) == [8, 6]


def test_whole_units_of_growth_are_not_lost_to_rounding() -> None:
    assert grown(15, [10, 10], [0, 0], [0, 0], [10, 10]) == [10, 0]
    assert grown(10, [10, 10, 10], [0, 0, 0], [0, 0, 0], [10, 10, 10]) == [10, 0, 0]


def test_what_rounding_takes_from_one_that_does_not_grow_is_no_growth_for_another() -> None:
    assert grown(99, [5, 100], [5, 70], [10, 70], [10, 10]) == [5, 80]


def test_who_believes_in_a_part_of_a_unit_grows_to_whole_ones() -> None:
    assert grown(30, [20, 20], [0, 0], [1, 1], [10, 10]) == [20, 10]


def test_while_too_much_is_believed_nothing_grows_not_even_up_to_its_own_belief() -> None:
    assert grown(12, [8, 2], [5, 4], [10, 4], [1, 1]) == [5, 2]
    assert grown(14, [8, 2], [5, 4], [10, 4], [1, 1]) == [8, 2]


class Growing(NamedTuple):
    unit: int
    wanted_units: int
    newest: int
    belief_above: int
    held: bool


growing = st.builds(
    Growing,
    unit=st.sampled_from([1, 10]),
    wanted_units=st.integers(0, 40),
    newest=st.integers(0, 300),
    belief_above=st.integers(0, 100),
    held=st.booleans(),
)


@given(st.lists(growing, max_size=5), st.integers(0, 1_000))
def test_growth_leaves_the_sum_of_beliefs_within_batch(rows: list[Growing], batch: int) -> None:
    newest = [row.newest for row in rows]
    beliefs = [row.newest + row.belief_above for row in rows]
    wanted = [min(row.wanted_units * row.unit, row.newest if row.held else 10**9) for row in rows]
    sizes = grown(batch, wanted, newest, beliefs, [row.unit for row in rows])
    assert all(0 <= size <= want for size, want in zip(sizes, wanted, strict=True))
    assert all(size <= row.newest or size % row.unit == 0 for size, row in zip(sizes, rows, strict=True))
    if any(size > new for size, new in zip(sizes, newest, strict=True)):
        assert sum(max(size, belief) for size, belief in zip(sizes, beliefs, strict=True)) <= batch
