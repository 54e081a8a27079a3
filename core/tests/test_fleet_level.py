import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.ledger import level as plain
from fallow_core.ledger import sharing
from fallow_core.ledger.fleet import arrays
from fallow_core.ledger.fleet.level import level, whole_units

amounts = st.integers(0, 30) | st.integers(0, arrays.LARGEST - 1)
shares = st.tuples(st.integers(1, 4) | st.integers(1, arrays.HEAVIEST), amounts, st.none() | amounts)


@given(amounts, st.lists(shares, min_size=1, max_size=4))
def test_levels_are_those_of_the_plain_version(total: int, of: list[tuple[int, int, int | None]]) -> None:
    bounds = [plain.Bounds(weight=weight, lower=low, upper=high) for weight, low, high in of]
    upper = [arrays.NONE if high is None else high for _, _, high in of]
    weight, lower, upper_bounds = (
        np.array(column) for column in ([w for w, _, _ in of], [b.lower for b in bounds], upper)
    )
    found = np.zeros(len(of), np.int64)
    level(total, len(of), weight, lower, upper_bounds, found)
    assert found.tolist() == plain.level(total, bounds)


@given(st.lists(st.tuples(amounts, amounts, st.integers(1, 50) | st.just(1 << 30)), min_size=1, max_size=4), amounts)
def test_amounts_are_rounded_to_units_as_in_the_plain_version(of: list[tuple[int, int, int]], more: int) -> None:
    values, units = [amount for amount, _, _ in of], [unit for _, _, unit in of]
    for total in (sum(values), more, sum(values) + more):
        found = np.array(values)
        whole_units(total, len(of), found, np.array(units))
        assert found.tolist() == sharing.whole_units(total, values, units)
