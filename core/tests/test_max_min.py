from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.ledger.max_min import Bounds, level


def between(lower: int, upper: int | None = None, weight: int = 1) -> Bounds:
    return Bounds(weight=weight, lower=lower, upper=upper)


@pytest.mark.parametrize(
    ("total", "bounds", "shares"),
    [
        (12, [between(0), between(0)], [6, 6]),
        (40, [between(0, weight=4), between(0, weight=1)], [32, 8]),
        (12, [between(0, 2), between(0)], [2, 10]),
        (12, [between(9), between(0)], [9, 3]),
        (12, [between(0, 3), between(0, 4)], [3, 4]),
        (9, [between(6), between(4)], [6, 4]),
        (9, [between(5, 3), between(0)], [5, 4]),
        (10, [between(0), between(0), between(0)], [3, 3, 3]),
        (12, [between(0, 1), between(8), between(0)], [1, 8, 3]),
        (0, [between(0), between(0)], [0, 0]),
        (5, [], []),
    ],
    ids=[
        "equal parts",
        "by weight",
        "what one does not want goes to the others",
        "what one has already is taken from the others",
        "what nobody wants is left",
        "lower bounds above the total are the shares",
        "a lower bound counts more than an upper one",
        "rounded down",
        "both kinds of bounds at once",
        "nothing to share",
        "nobody there",
    ],
)
def test_everybody_gets_the_same_level_within_bounds(total: int, bounds: list[Bounds], shares: list[int]) -> None:
    assert level(total, bounds) == shares


def any_bounds(largest: int) -> st.SearchStrategy[Bounds]:
    amounts = st.integers(0, largest)
    return st.builds(Bounds, weight=st.integers(1, 9), lower=amounts, upper=st.none() | amounts)


def by_bisection(total: int, bounds: list[Bounds]) -> list[Fraction]:
    """The shares at the one level at which they add up to the total, or at the nearest there is."""

    def at(height: Fraction) -> list[Fraction]:
        uppers = [None if b.upper is None else max(b.upper, b.lower) for b in bounds]
        wanted = [max(Fraction(b.lower), b.weight * height) for b in bounds]
        return [w if u is None else min(w, Fraction(u)) for w, u in zip(wanted, uppers, strict=True)]

    low, high = Fraction(0), Fraction(total + 1)
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(at(middle)) <= total else (low, middle)
    return at(low)


@given(st.integers(0, 1000), st.lists(any_bounds(300), max_size=6))
def test_shares_are_those_of_the_one_level_that_uses_up_the_total(total: int, bounds: list[Bounds]) -> None:
    for share, exact in zip(level(total, bounds), by_bisection(total, bounds), strict=True):
        assert -1 < share - exact < Fraction(1, 1000)


@given(st.integers(0, 1000), st.lists(any_bounds(300), max_size=4))
def test_shares_do_not_depend_on_the_order(total: int, bounds: list[Bounds]) -> None:
    shares = level(total, bounds)
    for order in permutations(range(len(bounds))):
        assert level(total, [bounds[i] for i in order]) == [shares[i] for i in order]


@given(st.integers(0, 10**15), st.lists(any_bounds(10**15), max_size=6))
def test_all_of_the_total_is_shared_as_far_as_bounds_allow(total: int, bounds: list[Bounds]) -> None:
    shares = level(total, bounds)
    lowers = [b.lower for b in bounds]
    uppers = [None if b.upper is None else max(b.upper, b.lower) for b in bounds]
    assert all(share >= lower for share, lower in zip(shares, lowers, strict=True))
    assert total - len(bounds) < sum(shares) <= total or shares in (lowers, uppers)
