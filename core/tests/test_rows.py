import pytest

from fallow_core.ledger.rows import Row, RowKey, answered, expired, observed, refused, resumed, sent, unanswered
from fallow_hookspecs import NodeState, ReportRow, Resources

KEY = RowKey("node", "yarn/etl", "nm:1")
IN_FLIGHT = 60.0


def size(amount: int) -> Resources:
    return Resources(amount, amount)


def report(
    in_force: int | None, *, allocated: int = 0, age: float = 0, state: NodeState = NodeState.RUNNING, floor: int = 0
) -> ReportRow:
    return ReportRow(
        node=KEY.node,
        framework_node=KEY.framework_node,
        age_seconds=age,
        state=state,
        allocated=size(allocated),
        in_force=None if in_force is None else size(in_force),
        unit=size(1),
        floor=size(floor),
        maximum=size(100),
    )


def see(row: Row | None, now: float, shown: ReportRow) -> Row:
    return observed(row, KEY, shown, now, IN_FLIGHT)


def first(in_force: int | None = 5, allocated: int = 0) -> Row:
    return see(None, 0, report(in_force, allocated=allocated))


def send(row: Row, amount: int, now: float, *, answer: bool = True) -> Row:
    """The row after a size was sent at `now` and its call ended one second later."""
    row = sent(row, size(amount), now)
    return answered(row, now, size(amount), now + 1) if answer else unanswered(row, now, now + 1)


@pytest.mark.parametrize(("in_force", "allocated", "belief"), [(5, 2, 5), (5, 8, 8), (None, 2, 2)])
def test_a_scheduler_may_promise_what_it_has_in_force_or_has_promised(
    in_force: int | None, allocated: int, belief: int
) -> None:
    assert first(in_force, allocated).belief("cpu") == belief


def test_a_size_counts_from_the_moment_it_is_sent() -> None:
    row = sent(first(5), size(8), 10)
    assert (row.belief("memory"), row.newest("memory")) == (8, 8)


def test_a_smaller_size_does_not_count_before_a_report_shows_it() -> None:
    row = send(first(5), 3, 10)
    assert (row.belief("cpu"), row.newest("cpu")) == (5, 3)
    row = see(row, 12, report(3))
    assert (row.belief("cpu"), row.in_flight) == (3, ())


def test_a_report_asked_for_before_the_answer_confirms_nothing() -> None:
    row = send(first(5), 8, 10)
    assert see(row, 12, report(8, age=2)).in_flight == row.in_flight


def test_the_newest_answered_size_confirms_the_older_ones() -> None:
    row = send(send(first(5), 8, 10), 3, 20)
    assert see(row, 22, report(8)).belief("cpu") == 8
    assert see(row, 22, report(3)).belief("cpu") == 3


def test_a_size_that_is_only_unconfirmed_is_not_sent_again() -> None:
    row = see(send(first(5), 8, 10), 69, report(5))
    assert (row.resend, row.belief("cpu"), row.newest("cpu")) == (False, 8, 8)


def test_another_size_long_after_the_answer_is_somebody_elses() -> None:
    row = see(send(first(5), 8, 10), 72, report(5))
    assert (row.in_flight, row.foreign, row.resend) == ((), size(5), True)


def test_a_size_nobody_here_sent_is_noticed_at_once() -> None:
    row = see(first(5), 10, report(7))
    assert (row.foreign, row.belief("cpu")) == (size(7), 7)
    row = see(send(first(5), 8, 10), 12, report(1))
    assert (row.foreign, row.resend, row.belief("cpu")) == (size(1), True, 8)


def test_sizes_of_a_node_that_is_taken_out_are_the_frameworks_own() -> None:
    row = see(first(8, 5), 10, report(5, allocated=5, state=NodeState.DRAINING))
    row = see(row, 20, report(2, allocated=2, state=NodeState.DRAINING))
    assert (row.in_force, row.foreign, row.resend, row.belief("cpu")) == (size(2), None, False, 2)
    row = see(row, 30, report(8, allocated=2))
    assert (row.foreign, row.resend) == (size(8), True), "it is in use again"


def test_a_confirmed_size_ends_the_word_of_somebody_elses() -> None:
    row = see(first(5), 10, report(7))
    assert see(send(row, 5, 20), 22, report(5)).foreign is None


def test_an_unanswered_size_counts_until_a_report_from_when_it_can_no_longer_be_carried_out() -> None:
    row = send(first(5), 8, 10, answer=False)
    assert row.resend
    row = see(row, 71, report(5))
    assert row.belief("cpu") == 8
    assert expired(row, 500, IN_FLIGHT).belief("cpu") == 8, "without a report nobody knows whether it was carried out"
    assert see(row, 500, report(5, age=429)).belief("cpu") == 8
    assert see(row, 500, report(None)).belief("cpu") == 8
    assert see(row, 72, report(5)).belief("cpu") == 5


def test_an_unanswered_size_that_was_carried_out_is_nobody_elses() -> None:
    row = see(send(first(5), 8, 10, answer=False), 72, report(8))
    assert (row.in_force, row.foreign, row.in_flight) == (size(8), None, ())


@pytest.mark.parametrize("answer", [True, False])
def test_a_size_sent_before_that_comes_into_force_again_is_nobody_elses(answer: bool) -> None:
    row = see(send(first(5), 8, 10, answer=answer), 72, report(8))
    row = see(row, 80, report(3))
    assert (row.foreign, row.last_sent) == (size(3), size(8))
    row = see(row, 90, report(8))
    assert (row.foreign, row.resend) == (None, True), "what was sent with it, as a notice, has to be sent again"


def test_an_unanswered_size_outlives_the_confirmation_of_a_later_one() -> None:
    row = send(send(first(5), 8, 10, answer=False), 3, 20)
    assert see(row, 22, report(3)).belief("cpu") == 8


def test_a_size_that_arrived_is_the_newest_although_an_older_one_is_still_believed() -> None:
    row = see(send(send(first(5), 8, 10, answer=False), 3, 20), 22, report(3))
    assert (row.belief("cpu"), row.newest("cpu")) == (8, 3)
    assert send(row, 4, 30).newest("cpu") == 4


def test_the_same_size_unanswered_again_and_again_is_kept_once() -> None:
    row = first(5)
    for now in (10, 20, 30):
        row = send(row, 8, now, answer=False)
    assert [s.ended_at for s in row.in_flight] == [31]


def test_a_size_is_in_flight_as_the_one_that_was_taken() -> None:
    row = answered(sent(first(5), size(8), 10), 10, size(7), 11)
    assert see(row, 12, report(7)).in_flight == ()


def test_a_refused_size_was_never_in_flight() -> None:
    row = refused(sent(first(5), size(8), 10), 10, "not leader", 11)
    assert (row.belief("cpu"), row.newest("cpu"), row.refusal, row.refused_at) == (5, 5, "not leader", 11)


def test_what_was_refused_says_nothing_once_somebody_changed_the_size_or_one_was_taken() -> None:
    row = refused(sent(first(5), size(8), 10), 10, "unknown node", 11)
    assert see(row, 12, report(5)).refused_at == 11
    assert see(row, 12, report(1)).refused_at is None
    assert send(row, 8, 20).refused_at is None


def test_a_node_that_was_unknown_to_a_starting_framework_is_asked_again_once_it_is_reported_as_running() -> None:
    row = refused(sent(first(5), size(8), 10), 10, "unknown node", 11, unknown=True)
    assert see(row, 12, report(5, age=2)).refused_at == 11, "asked for before the refusal"
    assert see(row, 12, report(5, state=NodeState.GONE)).refused_at == 11
    assert see(row, 12, report(5)).refused_at is None


def test_an_older_report_changes_nothing() -> None:
    row = see(first(5), 20, report(4, allocated=3))
    assert see(row, 25, report(9, allocated=9, age=6)) == row


def test_an_allocation_stays_when_no_report_comes_or_the_node_is_unhealthy() -> None:
    row = first(10, allocated=8)
    assert expired(row, 10_000, IN_FLIGHT).belief("cpu") == 10
    row = see(row, 30, report(None, allocated=8, state=NodeState.UNHEALTHY))
    assert (row.belief("cpu"), row.in_force) == (10, size(10))


def test_a_scheduler_promises_nothing_on_a_node_that_is_gone() -> None:
    row = see(send(first(5), 8, 10), 20, report(None, allocated=2, state=NodeState.GONE, floor=1))
    assert (row.belief("cpu"), row.in_flight, row.floor, row.maximum) == (2, (), size(0), size(0))


def test_a_node_that_comes_back_may_still_get_an_unanswered_size() -> None:
    row = send(first(5), 8, 10, answer=False)
    gone = see(row, 20, report(None, state=NodeState.GONE))
    assert gone.belief("cpu") == 0
    back = see(gone, 30, report(4))
    assert (back.belief("cpu"), back.foreign) == (8, size(4))
    assert see(expired(gone, 72, IN_FLIGHT), 73, report(4)).belief("cpu") == 4


def test_a_size_answered_after_a_report_was_asked_for_survives_its_word_that_the_node_is_gone() -> None:
    row = send(first(5), 8, 10)
    gone = see(row, 12, report(None, state=NodeState.GONE, age=2))
    assert see(gone, 13, report(5)).belief("cpu") == 8


def test_sizes_of_an_earlier_process_may_all_still_be_carried_out() -> None:
    row = resumed(first(5), [size(8), size(3)], 0)
    assert (row.belief("cpu"), row.newest("cpu"), row.resend) == (8, 3, True)
    assert see(row, 30, report(3)).belief("cpu") == 8
    assert see(row, 61, report(3)).belief("cpu") == 3


def test_a_size_of_an_earlier_process_is_not_answered_by_a_call_of_the_same_moment() -> None:
    row = resumed(first(5), [size(8)], 10)
    assert see(send(row, 3, 10), 12, report(3)).belief("cpu") == 8
    assert refused(sent(row, size(3), 10), 10, "no", 11).belief("cpu") == 8
    assert [s.size for s in send(row, 3, 10, answer=False).in_flight] == [size(8), size(3)]


@pytest.mark.parametrize("answer", [True, False])
def test_a_size_in_flight_twice_counts_until_neither_can_be_carried_out_any_more(answer: bool) -> None:
    row = see(send(first(5), 9, 10, answer=answer), 12, report(7))  # registered with a size of its own
    row = see(send(row, 9, 22), 34, report(9))  # carried out: which of them?
    row = see(row, 44, report(7))  # registered again
    assert row.belief("cpu") == 9
    assert see(row, 84, report(7)).belief("cpu") == 7
