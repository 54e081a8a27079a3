import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.ledger import level as plain
from fallow_core.ledger import sharing
from fallow_core.ledger.fleet import arrays
from fallow_core.ledger.fleet.level import levels, whole_units

amounts = st.integers(0, 30) | st.integers(0, arrays.LARGEST - 1)
shares = st.tuples(st.integers(1, 4) | st.integers(1, arrays.HEAVIEST), amounts, st.none() | amounts)
problems = st.tuples(amounts, st.lists(shares, max_size=4), st.floats(0, 1e13) | st.floats(0, 60))


@given(st.lists(problems, min_size=1, max_size=8))
def test_levels_are_those_of_the_plain_version_whatever_is_guessed(
    problems: list[tuple[int, list[tuple[int, int, int | None]], float]],
) -> None:
    weight, lower, upper = (np.zeros((4, len(problems))) for _ in range(3))
    for p, (_, of, _) in enumerate(problems):
        for s, (heavy, low, high) in enumerate(of):
            weight[s, p], lower[s, p], upper[s, p] = heavy, low, arrays.NONE if high is None else high
    total = np.array([float(total) for total, _, _ in problems])
    guess = np.array([guessed for _, _, guessed in problems])
    for _ in range(2):
        found = levels(total, weight, lower, upper, guess)
        for p, (amount, of, _) in enumerate(problems):
            expected = plain.level(amount, [plain.Bounds(weight=w, lower=low, upper=high) for w, low, high in of])
            assert found[: len(of), p].tolist() == expected


def test_what_was_found_is_a_guess_that_is_right_when_bounds_have_changed_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = np.random.default_rng(1)
    weight, lower, more = (np.floor(drawn.uniform(1, most, (4, 1000))) for most in (4, 1 << 37, 1 << 37))
    upper, total, guess = lower + more, np.full(1000, float(1 << 38)), np.zeros(1000)
    levels(total, weight, lower, upper, guess)
    solved: list[int] = []
    monkeypatch.setattr("fallow_core.ledger.fleet.level._solve", lambda some, *_: solved.append(some.size))
    levels(total + 1000, weight, lower + 7, upper + 5, guess)
    assert sum(solved) < 10


@given(st.lists(st.tuples(amounts, amounts, st.integers(1, 50) | st.just(1 << 30)), min_size=1, max_size=4), amounts)
def test_amounts_are_rounded_to_units_as_in_the_plain_version(of: list[tuple[int, int, int]], more: int) -> None:
    values, units = [amount for amount, _, _ in of], [unit for _, _, unit in of]
    for total in (sum(values), more, sum(values) + more):
        found = whole_units(np.array([float(total)]), np.array(values)[:, None] * 1.0, np.array(units)[:, None] * 1.0)
        assert found[:, 0].tolist() == sharing.whole_units(total, values, units)


@given(st.lists(st.tuples(st.integers(0, (1 << 52) - 1), st.integers(1, 1 << 45)), min_size=1, max_size=9))
def test_quotients_are_exact(rows: list[tuple[int, int]]) -> None:
    rows += [(a // b * b - 1, b) for a, b in rows if a >= b]
    a, b = (np.array([float(row[i]) for row in rows]) for i in range(2))
    assert arrays.in_units(a, b).tolist() == [a // b * b for a, b in rows]
    assert arrays.up_to_units(a, b).tolist() == [-(-a // b) * b for a, b in rows]
    assert arrays.percent_of(a // 256, 130).tolist() == [a // 256 * 130 // 100 for a, _ in rows]
