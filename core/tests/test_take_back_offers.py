from dataclasses import replace

import pytest

from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.rows import Row, RowKey, Sent
from fallow_core.ledger.take_back import Active, Decision, PartState, Started
from fallow_core.ledger.take_back_offers import with_take_backs
from fallow_hookspecs import NodeState, ResourceName, Resources

KEY = RowKey("n1", "yarn/etl", "n1:8041")
NOW = 100.0
OVER = Active(size=60, notice_seconds=60, started=Started(30.0, 40), warned_at=40.0, ordered_at=NOW)
UNDER_WAY = replace(OVER, ordered_at=None)


def size(cpu: int, memory: int) -> Resources:
    return Resources(cpu, memory)


def row(in_force: Resources | None, *sent: Sent, arrived_sent_at: float = 1.0, refused_at: float | None = None) -> Row:
    return Row(
        key=KEY,
        state=NodeState.RUNNING,
        unit=size(1, 1),
        floor=size(1, 10),
        allocated=size(8, 100),
        measured_at=NOW,
        in_force=in_force,
        in_flight=sent,
        arrived_sent_at=arrived_sent_at,
        refused_at=refused_at,
    )


DRAINS = row(size(8, 50))


def due(wanted: Resources) -> DueOffer:
    return DueOffer(key=KEY, size=wanted, urgent=False, why="it drains")


def combined(
    row: Row, active: Active | None, *before: DueOffer, name: ResourceName = "memory"
) -> list[tuple[Resources, dict[ResourceName, int]]]:
    """What is due, as sizes and down to what tasks are terminated."""
    decision = Decision(state=PartState(active=active), overdraft=40)
    return [(d.size, dict(d.take_back)) for d in with_take_backs(before, [row], {name: {row.key: decision}})]


@pytest.mark.parametrize("active", [None, UNDER_WAY])
def test_before_a_notice_is_over_what_is_due_stays_as_it_is(active: Active | None) -> None:
    assert combined(DRAINS, active) == []
    assert combined(DRAINS, active, due(size(5, 40))) == [(size(5, 40), {})]
    assert with_take_backs([due(size(5, 40))], [DRAINS], {}) == [due(size(5, 40))]


def test_at_the_end_of_a_notice_the_size_stays_and_says_down_to_what_tasks_are_terminated() -> None:
    decisions = {"memory": {KEY: Decision(state=PartState(active=OVER), overdraft=40)}}
    (found,) = with_take_backs([], [DRAINS], decisions)  # type: ignore[arg-type]
    assert (found.size, dict(found.take_back), found.urgent) == (size(8, 50), {"memory": 60}, True)
    assert found.why == "memory: the notice of a take-back is over"


def test_a_size_that_is_due_goes_with_it_and_never_above_what_is_taken_back_to() -> None:
    assert combined(DRAINS, OVER, due(size(5, 40))) == [(size(5, 40), {"memory": 60})]
    assert combined(row(size(8, 200)), OVER, due(size(5, 80))) == [(size(5, 60), {"memory": 60})]
    assert combined(row(size(8, 100)), replace(OVER, size=3), due(size(5, 80)), name="cpu") == [
        (size(3, 80), {"cpu": 3})
    ]


def test_it_is_due_until_something_was_sent() -> None:
    for waiting in (DRAINS, row(size(8, 60), Sent(size=size(8, 50), sent_at=99.0))):
        assert combined(waiting, OVER) == [(size(8, 50), {"memory": 60})]
    for told in (row(size(8, 60), Sent(size=size(8, 50), sent_at=NOW)), row(size(8, 50), arrived_sent_at=NOW)):
        assert combined(told, OVER) == []
        assert combined(told, OVER, due(size(8, 40))) == [(size(8, 40), {})]


def test_what_the_framework_refused_is_asked_for_again_when_the_row_is_due_anyway() -> None:
    refused = row(size(8, 50), refused_at=101.0)
    assert combined(refused, OVER) == []
    assert combined(refused, OVER, due(size(8, 40))) == [(size(8, 40), {"memory": 60})]
    assert combined(row(size(8, 50), refused_at=99.0), OVER) == [(size(8, 50), {"memory": 60})]


def test_a_row_without_any_size_is_told_nothing() -> None:
    assert combined(row(None), OVER) == []
