from dataclasses import replace

import pytest

from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.rows import Row, RowKey, Sent
from fallow_core.ledger.take_back import Active, Decision, PartState
from fallow_core.ledger.take_back_offers import with_take_backs
from fallow_hookspecs import NodeState, ResourceName, Resources

KEY = RowKey("n1", "yarn/etl", "n1:8041")
NOW = 100.0
ACTIVE = Active(size=60, amount=40, notice_seconds=60, ordered_at=NOW)
UNDER_WAY = replace(ACTIVE, ordered_at=50.0, in_force_at=55.0)
LARGE = Resources(8, 100)


def size(cpu: int, memory: int) -> Resources:
    return Resources(cpu, memory)


def row(
    in_force: Resources | None = LARGE,
    *sent: Sent,
    allocated: Resources = LARGE,
    floor: int = 10,
    arrived_sent_at: float = 1.0,
    resend: bool = False,
    refused_at: float | None = None,
) -> Row:
    return Row(
        key=KEY,
        state=NodeState.RUNNING,
        unit=size(1, 1),
        floor=size(1, floor),
        allocated=allocated,
        measured_at=NOW,
        in_force=in_force,
        in_flight=sent,
        arrived_sent_at=arrived_sent_at,
        resend=resend,
        refused_at=refused_at,
    )


def due(wanted: Resources, why: str = "it shrinks") -> DueOffer:
    return DueOffer(key=KEY, size=wanted, urgent=False, why=why)


def running(active: Active = UNDER_WAY, **more: object) -> Decision:
    return Decision(state=PartState(active=active), overdraft=40, fits=100, why="for long", **more)  # type: ignore[arg-type]


def cancelled(at: float = NOW, fits: int = 100) -> Decision:
    return Decision(state=PartState(cancelled_at=at), overdraft=0, fits=fits, cancel=at == NOW, why="all fits")


def combined(
    row: Row, decision: Decision, *before: DueOffer, name: ResourceName = "memory", now: float = NOW
) -> list[tuple[Resources, dict[ResourceName, int]]]:
    """What is due, as sizes and notices."""
    found = with_take_backs(before, [row], {name: {row.key: decision}}, now)
    return [(d.size, dict(d.take_back)) for d in found]


def test_without_a_take_back_everything_stays_as_it_is() -> None:
    idle = Decision(state=PartState(), overdraft=40, fits=100, why="it drains")
    before = due(size(5, 50))
    assert with_take_backs([before], [row()], {"memory": {KEY: idle}}, NOW) == [before]
    assert with_take_backs([before], [row()], {}, NOW) == [before]
    assert combined(row(), idle) == []


def test_a_start_is_sent_with_its_size_and_the_whole_notice() -> None:
    decisions = {"memory": {KEY: running(ACTIVE, start=True)}}
    (found,) = with_take_backs([], [row()], decisions, NOW)  # type: ignore[arg-type]
    assert (found.size, dict(found.take_back), found.urgent) == (size(8, 60), {"memory": 60}, True)
    assert found.why == "memory: take-back starts: for long"


@pytest.mark.parametrize(
    ("wanted", "allocated", "in_force", "in_flight", "sent"),
    [
        pytest.param(2, 8, 2, [], 8, id="allocated"),
        pytest.param(2, 4, 6, [], 6, id="what is in force may be promised by now"),
        pytest.param(2, 4, 2, [7], 7, id="so may what is in flight"),
        pytest.param(9, 4, 2, [], 9, id="growth"),
    ],
)
def test_a_resource_that_is_not_meant_fits_whatever_the_scheduler_may_have_promised(
    wanted: int, allocated: int, in_force: int, in_flight: list[int], sent: int
) -> None:
    before = [Sent(size=size(cpu, 100), sent_at=2.0) for cpu in in_flight]
    found = row(size(in_force, 100), *before, allocated=size(allocated, 100))
    assert combined(found, running(ACTIVE), due(size(wanted, 50))) == [(size(sent, 60), {"memory": 60})]


def test_cpu_that_is_taken_back_leaves_memory_alone() -> None:
    active = replace(ACTIVE, size=3)
    assert combined(row(), running(active), due(size(2, 50)), name="cpu") == [(size(3, 100), {"cpu": 60})]


def test_a_start_that_could_not_be_sent_stays_due_with_the_whole_notice() -> None:
    assert combined(row(), running(ACTIVE), now=NOW + 300) == [(size(8, 60), {"memory": 60})]


def test_a_take_back_under_way_is_left_alone() -> None:
    in_flight = row(size(8, 100), Sent(size=size(8, 60), sent_at=50.0))
    in_force = row(size(8, 60), arrived_sent_at=50.0)
    for found in (in_flight, in_force):
        assert combined(found, running()) == []
        assert combined(found, running(), due(size(2, 30))) == [], "it would be sent again with every tick"


@pytest.mark.parametrize(("now", "left"), [(NOW, 15), (500.0, 1)])
def test_what_has_to_be_sent_again_carries_the_notice_that_is_left(now: float, left: int) -> None:
    found = row(size(20, 200), arrived_sent_at=50.0, resend=True)
    assert combined(found, running(), due(size(2, 30)), now=now) == [(size(20, 60), {"memory": left})]


def test_a_take_back_that_was_not_seen_in_force_is_sent_again_with_the_whole_notice() -> None:
    found = row(size(8, 100), Sent(size=size(8, 60), sent_at=50.0, ended_at=70.0), resend=True)
    waiting = replace(UNDER_WAY, in_force_at=None)
    assert combined(found, running(waiting), due(size(8, 60))) == [(size(8, 60), {"memory": 60})]


def test_the_size_of_a_take_back_is_exact_even_where_the_framework_has_it_already() -> None:
    found = row(size(8, 60), allocated=size(8, 100))
    assert combined(found, running(ACTIVE)) == [(size(8, 60), {"memory": 60})]


def test_a_cancel_is_sent_at_once_without_notice_and_with_a_size_that_fits() -> None:
    (found,) = with_take_backs([], [row(size(8, 60))], {"memory": {KEY: cancelled(fits=110)}}, NOW)
    assert (found.size, found.take_back, found.urgent) == (size(8, 110), {}, True)
    assert found.why == "memory: take-back is cancelled: all fits"


def test_a_cancel_takes_the_size_that_is_due_if_that_is_larger() -> None:
    assert combined(row(size(8, 60)), cancelled(), due(size(2, 150))) == [(size(2, 150), {})]
    assert combined(row(size(8, 60)), cancelled(), due(size(2, 70))) == [(size(2, 100), {})]


def test_a_cancel_that_could_not_be_sent_stays_due_until_something_was_sent() -> None:
    assert combined(row(size(8, 60), arrived_sent_at=50.0), cancelled(at=90.0)) == [(size(8, 100), {})]
    later = due(size(2, 50))
    in_flight = row(size(8, 60), Sent(size=size(8, 100), sent_at=90.0))
    in_force = row(size(8, 100), arrived_sent_at=90.0)
    for told in (in_flight, in_force):
        assert combined(told, cancelled(at=90.0)) == []
        assert combined(told, cancelled(at=90.0), later) == [(later.size, {})]


@pytest.mark.parametrize(("floor", "sent"), [pytest.param(10, 98, id="less"), pytest.param(100, 101, id="floor")])
def test_a_cancel_is_another_size_than_the_framework_has_and_not_below_the_floor(floor: int, sent: int) -> None:
    found = row(size(8, 100), Sent(size=size(8, 99), sent_at=2.0), floor=floor)
    assert combined(found, cancelled()) == [(size(8, sent), {})]


def test_what_the_framework_refused_waits_until_the_row_is_due_anyway() -> None:
    refused = row(refused_at=NOW + 1)
    assert combined(refused, running(ACTIVE), now=NOW + 2) == []
    assert combined(refused, running(ACTIVE), due(size(2, 50)), now=NOW + 99) == [(size(8, 60), {"memory": 60})]
    before = row(refused_at=NOW - 1)
    assert combined(before, running(ACTIVE), now=NOW + 2) == [(size(8, 60), {"memory": 60})], "that was another size"


def test_nothing_is_sent_to_a_row_whose_size_is_not_known() -> None:
    assert combined(row(None), running(ACTIVE)) == []


def test_other_rows_are_not_touched() -> None:
    other = RowKey("n1", "yarn/etl", "n1:8042")
    rows = [row(), replace(row(), key=other)]
    before = DueOffer(key=other, size=size(1, 1), urgent=False, why="")
    found = with_take_backs([before], rows, {"memory": {KEY: running(ACTIVE)}}, NOW)
    assert before in found
    assert {d.key: dict(d.take_back) for d in found} == {KEY: {"memory": 60}, other: {}}
