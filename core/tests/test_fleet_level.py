from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.ledger import level as plain
from fallow_core.ledger import sharing
from fallow_core.ledger.fleet import arrays
from fallow_core.ledger.fleet.level import levels, whole_units

amounts = st.integers(0, 30) | st.integers(0, arrays.LARGEST - 1)
shares = st.tuples(st.integers(1, 4) | st.integers(1, arrays.HEAVIEST), amounts, st.none() | amounts)
problems = st.tuples(amounts, st.lists(shares, max_size=4))


@given(st.lists(problems, min_size=1, max_size=8))
def test_levels_are_those_of_the_plain_version(problems: list[tuple[int, list[tuple[int, int, int | None]]]]) -> None:
    weight, lower, upper = (np.zeros((4, len(problems)), np.int64) for _ in range(3))
    for p, (_, of) in enumerate(problems):
        for s, (heavy, low, high) in enumerate(of):
            weight[s, p], lower[s, p], upper[s, p] = heavy, low, arrays.NONE if high is None else high
    found = levels(np.array([total for total, _ in problems]), weight, lower, upper)
    for p, (total, of) in enumerate(problems):
        expected = plain.level(total, [plain.Bounds(weight=w, lower=low, upper=high) for w, low, high in of])
        assert found[: len(of), p].tolist() == expected


@given(st.lists(st.tuples(amounts, amounts, st.integers(1, 50) | st.just(1 << 30)), min_size=1, max_size=4), amounts)
def test_amounts_are_rounded_to_units_as_in_the_plain_version(of: list[tuple[int, int, int]], more: int) -> None:
    values, units = [amount for amount, _, _ in of], [unit for _, _, unit in of]
    for total in (sum(values), more, sum(values) + more):
        found = whole_units(np.array([total]), np.array(values)[:, None], np.array(units)[:, None])
        assert found[:, 0].tolist() == sharing.whole_units(total, values, units)


large = st.integers(0, arrays.LARGEST_PENDING)
rows = st.lists(st.tuples(large, amounts, st.integers(1, arrays.LARGEST)), min_size=1, max_size=9)


@given(rows)
def test_quotients_of_products_are_exact_although_products_do_not_fit(rows: list[tuple[int, int, int]]) -> None:
    fits = [(a, b, c) for a, b, c in rows if a * b // c < 1 << 50]
    a, b, c = (np.array([row[i] for row in fits], np.int64) for i in range(3))
    assert arrays.product_quotient(a, b, c).tolist() == [a * b // c for a, b, c in fits]


@given(st.lists(st.tuples(large, large, large, large), min_size=1, max_size=9), st.integers(1, 1 << 20))
def test_products_are_compared_exactly(rows: list[tuple[int, int, int, int]], factor: int) -> None:
    rows += [(a * factor // 2**20, b, b, a * factor // 2**20) for a, b, _, _ in rows]
    rows += [(a, b, b, max(a - 1, 0)) for a, b, _, _ in rows]
    found = arrays.product_sign(*(np.array([row[i] for row in rows]) for i in range(4)))
    assert found.tolist() == [(a * b > c * d) - (a * b < c * d) for a, b, c, d in rows]


@given(st.lists(st.tuples(st.integers(0, (1 << 53) - 1), st.integers(1, 1 << 45)), min_size=1, max_size=9))
def test_quotients_are_exact(rows: list[tuple[int, int]]) -> None:
    rows += [(a // b * b - 1, b) for a, b in rows if a >= b]
    a, b = (np.array([row[i] for row in rows]) for i in range(2))
    assert arrays.quotient(a, b).tolist() == [int(Fraction(a, b)) for a, b in rows]
    assert arrays.in_units(a, b).tolist() == [a // b * b for a, b in rows]
