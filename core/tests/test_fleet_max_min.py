from typing import TypeVar

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.ledger import max_min as plain
from fallow_core.ledger import sharing
from fallow_core.ledger.fleet import arrays
from fallow_core.ledger.fleet.lanes import LANES, room
from fallow_core.ledger.fleet.max_min import level, whole_units

T = TypeVar("T")
SLOTS = 4
amounts = st.integers(0, 30) | st.integers(0, arrays.LARGEST - 1)
shares = st.tuples(st.integers(1, 4) | st.integers(1, arrays.HEAVIEST), amounts, st.none() | amounts)
in_units = st.tuples(amounts, st.integers(1, 50) | st.just(1 << 30))


def several(what: st.SearchStrategy[T]) -> st.SearchStrategy[list[tuple[int, list[T]]]]:
    """Nodes side by side: a total, and up to four of these."""
    return st.lists(st.tuples(amounts, st.lists(what, min_size=1, max_size=SLOTS)), min_size=1, max_size=LANES)


@given(several(shares))
def test_levels_are_those_of_the_plain_version(nodes: list[tuple[int, list[tuple[int, int, int | None]]]]) -> None:
    side = room(SLOTS)[0]
    for i, (total, of) in enumerate(nodes):
        side["total"][i] = total
        for s, (weight, low, high) in enumerate(of):
            side["free"][s, i], side["lower"][s, i] = weight, low
            side["upper"][s, i] = arrays.NONE if high is None else high
    level(side)
    for i, (total, of) in enumerate(nodes):
        bounds = [plain.Bounds(weight=weight, lower=low, upper=high) for weight, low, high in of]
        assert side["share"][: len(of), i].tolist() == plain.level(total, bounds)


@given(several(in_units))
def test_amounts_are_rounded_to_units_as_in_the_plain_version(nodes: list[tuple[int, list[tuple[int, int]]]]) -> None:
    wholes, more = [sum(amount for amount, _ in of) for _, of in nodes], [total for total, _ in nodes]
    for totals in (wholes, more, np.add(wholes, more).tolist()):
        side = room(SLOTS)[0]
        side["total"][: len(nodes)] = totals
        for i, (_, of) in enumerate(nodes):
            side["share"][: len(of), i], side["unit"][: len(of), i] = np.array(of).T
        whole_units(side)
        for i, (total, (_, of)) in enumerate(zip(totals, nodes, strict=True)):
            values, units = zip(*of, strict=True)
            assert side["share"][: len(of), i].tolist() == sharing.whole_units(total, values, units)
