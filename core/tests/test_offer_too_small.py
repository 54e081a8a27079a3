from dataclasses import replace

import pytest

from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.offer_filter import too_small
from fallow_core.ledger.rows import Row, RowKey, Sent
from fallow_hookspecs import Capabilities, NodeState, Pending, ResourceCapability, Resources

GIB = 1 << 30
KEY = RowKey("n1", "yarn/a", "n1:1")
ROW = Row(
    key=KEY,
    state=NodeState.RUNNING,
    unit=Resources(1000, 1 << 20),
    floor=Resources(1000, GIB),
    allocated=Resources(2000, 4 * GIB),
    measured_at=0,
    in_force=Resources(2000, 4 * GIB),
)
ALL = Capabilities(cpu=ResourceCapability(honoured=True), memory=ResourceCapability(honoured=True))
NO_CPU = Capabilities(cpu=ResourceCapability(honoured=False), memory=ResourceCapability(honoured=True))
WAITS = Pending(total=Resources(8000, 16 * GIB), smallest=Resources(2000, 4 * GIB), largest=Resources(4000, 8 * GIB))


def due(cpu_milli: int, gib: int, **more: object) -> DueOffer:
    return DueOffer(key=KEY, size=Resources(cpu_milli, gib * GIB), urgent=False, why="", **more)  # type: ignore[arg-type]


def why(due: DueOffer, row: Row = ROW, pending: Pending | None = WAITS, capabilities: Capabilities = ALL) -> str:
    return too_small(due, row, pending, capabilities)


def test_an_offer_into_which_the_smallest_request_does_not_fit_is_not_made() -> None:
    assert why(due(8000, 7)) == "too small for the smallest pending request: 3.00 GiB free of 4.00 GiB"
    assert why(due(3000, 16)) == "too small for the smallest pending request: 1.00 cores free of 2.00 cores"


def test_an_offer_into_which_it_fits_is_made() -> None:
    assert why(due(4000, 8)) == ""


def test_a_resource_that_is_not_heeded_keeps_nothing_away() -> None:
    assert why(due(2000, 8), capabilities=NO_CPU) == ""
    assert "GiB" in why(due(2000, 7), capabilities=NO_CPU)


@pytest.mark.parametrize(
    "pending",
    [None, replace(WAITS, smallest=None), Pending(total=Resources(0, 0), smallest=Resources(2000, 4 * GIB))],
    ids=["not known", "no size known", "nothing"],
)
def test_where_no_request_is_known_to_wait_every_offer_is_made(pending: Pending | None) -> None:
    assert why(due(8000, 7), pending=pending) == ""


@pytest.mark.parametrize(
    ("size", "row"),
    [
        (due(1000, 7), ROW),  # one resource shrinks
        (due(1000, 2), ROW),  # both do
        (due(2000, 4), ROW),  # it is sent again
        (DueOffer(key=KEY, size=Resources(2000, 4 * GIB + (1 << 20)), urgent=False, why=""), ROW),  # it is renewed
        (due(8000, 7), replace(ROW, in_flight=(Sent(size=Resources(8000, 7 * GIB), sent_at=1),))),  # it was sent
        (due(8000, 7), replace(ROW, floor=Resources(1000, 5 * GIB))),  # it is below its floor
        (due(8000, 7), replace(ROW, allocated=Resources(3000, 4 * GIB))),  # it is below what is allocated
        (due(8000, 7), replace(ROW, in_force=None)),  # its size is not known
        (due(8000, 7, take_back={"memory": 60}), ROW),
    ],
)
def test_an_offer_that_does_more_than_to_grow_is_made(size: DueOffer, row: Row) -> None:
    assert why(size, row) == ""
