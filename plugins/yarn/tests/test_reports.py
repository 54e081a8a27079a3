from dataclasses import replace

import pytest
from plugins.yarn.tests.yarn_fakes import GIB, NODE_ID, OFFERED, entry, facts, inactive

from fallow_hookspecs import NodeState, OfferAnswer, Pending, Refusal, ReportRow, Resources
from fallow_yarn.errors import (
    AccessDeniedError,
    DeadlineError,
    RemoteError,
    StandbyError,
    UnknownNodeError,
    YarnError,
)
from fallow_yarn.model.size import Size
from fallow_yarn.publishing.answers import answer as answer_of
from fallow_yarn.reports import capabilities, largest, pending, rows
from fallow_yarn.rm.admin import UpdateAnswer
from fallow_yarn.rm.applications import Request, RunningApplication
from fallow_yarn.rm.facts import Calculator
from fallow_yarn.rm.nodes import State
from fallow_yarn.rm.readings import Facts, NodeReading, floor_of, live
from fallow_yarn.rm.scheduler import Metrics

NOTHING = Size(0, 0)
GONE = [State.LOST, State.SHUTDOWN, State.DECOMMISSIONED, State.REBOOTED]


def row(
    reading: NodeReading, *, before: Resources | None = None, floor: Size = NOTHING, vcore_milli: int = 1000
) -> ReportRow | None:
    return rows.row("n1", reading, before, floor, vcore_milli, 2.5)


def answer(error: YarnError | None, *, offered: Resources = OFFERED) -> OfferAnswer:
    return answer_of("n1", UpdateAnswer(node_id=NODE_ID, error=error), Size(4096, 4), offered, 1000)


def test_a_row_says_all_of_a_running_node_in_the_units_of_the_contract() -> None:
    reading = entry(in_force=Size(102400, 8), used=Size(2048, 3))
    assert row(reading, floor=Size(256, 1), vcore_milli=100) == ReportRow(
        node="n1",
        framework_node=NODE_ID,
        age_seconds=2.5,
        state=NodeState.RUNNING,
        allocated=Resources(300, 2 * GIB),
        in_force=Resources(800, 100 * GIB),
        unit=Resources(100, 1 << 20),
        floor=Resources(100, 256 << 20),
    )


def test_what_is_in_force_is_the_schedulers_size_and_not_the_one_it_was_told() -> None:
    found = row(entry(capability=Size(1024, 1), in_force=Size(8192, 8)))
    assert found is not None
    assert found.in_force == Resources(8000, 8 * GIB)


def test_a_size_in_force_that_is_not_known_is_no_number() -> None:
    found = row(entry(in_force=None))
    assert found is not None
    assert found.in_force is None


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (State.NEW, NodeState.NEW),
        (State.RUNNING, NodeState.RUNNING),
        (State.UNHEALTHY, NodeState.UNHEALTHY),
        (State.DECOMMISSIONING, NodeState.DRAINING),
        *((state, NodeState.GONE) for state in GONE),
    ],
)
def test_every_state_has_its_word_in_the_contract(state: State, expected: NodeState) -> None:
    found = row(entry(state=state))
    assert found is not None
    assert found.state is expected


def test_only_a_state_that_nobody_knows_has_no_word() -> None:
    assert set(State) - rows.STATES.keys() == {State.UNKNOWN}
    assert row(entry(state=State.UNKNOWN)) is None


def test_an_unhealthy_node_keeps_its_last_allocation() -> None:
    found = row(entry(state=State.UNHEALTHY, in_force=None, used=None), before=Resources(8000, GIB))
    assert found is not None
    assert found.allocated == Resources(8000, GIB)
    assert found.in_force is None


def test_nothing_is_said_of_an_unhealthy_node_that_was_never_seen_healthy() -> None:
    assert row(entry(state=State.UNHEALTHY, in_force=None, used=None)) is None


@pytest.mark.parametrize("state", [State.NEW, State.RUNNING, State.DECOMMISSIONING])
def test_a_node_whose_allocation_cannot_be_told_now_is_left_out_so_that_it_grows_older(state: State) -> None:
    assert row(entry(state=state, in_force=None, used=None), before=Resources(8000, GIB)) is None


@pytest.mark.parametrize("state", GONE)
def test_a_node_that_is_gone_has_nothing_allocated(state: State) -> None:
    found = row(entry(state=state, in_force=None, used=None), before=Resources(8000, GIB))
    assert found is not None
    assert found.allocated == Resources(0, 0)


def test_an_unhealthy_node_can_use_no_more_than_it_has_and_keeps_its_floor() -> None:
    found = row(entry(state=State.UNHEALTHY, in_force=None, used=None), before=Resources(8000, GIB), floor=Size(512, 1))
    assert found is not None
    assert (found.maximum, found.floor) == (Resources(8000, GIB), Resources(1000, 512 << 20))


def test_a_node_that_is_being_decommissioned_follows_its_use_down_to_nothing() -> None:
    found = row(entry(state=State.DECOMMISSIONING, in_force=Size(2048, 2), used=Size(2048, 2)), floor=Size(512, 1))
    assert found is not None
    assert (found.maximum, found.floor) == (Resources(2000, 2 * GIB), Resources(0, 0))
    assert found.allocated == found.in_force == found.maximum


def test_a_superseded_node_counts_as_gone_whatever_its_scheduler_still_has_there() -> None:
    found = rows.row("n1", entry(), Resources(8000, GIB), NOTHING, 1000, 2.5, is_superseded=True)
    assert found is not None
    assert (found.state, found.allocated) == (NodeState.GONE, Resources(0, 0))


def test_live_node_managers_are_those_that_are_not_gone() -> None:
    readings = {str(state): entry(state=state) for state in State}
    assert set(live(readings, readings)) == {"NEW", "RUNNING", "UNHEALTHY", "DECOMMISSIONING", "UNKNOWN"}


@pytest.mark.parametrize("version", ["3.3.0", "3.3.6", "3.5.0", "4.0.0-SNAPSHOT", "3.10.1"])
def test_from_3_3_on_the_floor_is_the_minimum_allocation(version: str) -> None:
    assert floor_of(facts(version, minimum=Size(512, 2))) == Size(512, 2)


@pytest.mark.parametrize("version", ["2.10.2", "3.2.4", "3.1.1.7.1.7.0-551"])
def test_before_3_3_the_floor_is_zero(version: str) -> None:
    assert floor_of(facts(version, minimum=Size(512, 2))) == Size(0, 0)


@pytest.mark.parametrize("found", [facts(minimum=None), inactive()], ids=["not shown", "not active"])
def test_a_minimum_that_is_not_shown_is_taken_as_hadoops_default(found: Facts) -> None:
    assert floor_of(found) == Size(1024, 1)


@pytest.mark.parametrize("calculator", [Calculator.DOMINANT, None])
def test_cpu_is_honoured_unless_the_default_calculator_is_proven(calculator: Calculator | None) -> None:
    assert capabilities.capabilities(facts(calculator=calculator)).cpu.honoured
    assert capabilities.capabilities(inactive()).cpu.honoured


def test_the_default_calculator_honours_memory_alone() -> None:
    found = capabilities.capabilities(facts(calculator=Calculator.DEFAULT))
    assert not found.cpu.honoured
    assert found.memory.honoured


@pytest.mark.parametrize(("version", "expected"), [("3.5.0", 2147483), ("3.3.0", 2147483), ("3.2.4", None)])
def test_an_offer_lasts_as_long_as_the_far_timeout_where_there_is_one(version: str, expected: int | None) -> None:
    assert capabilities.capabilities(facts(version)).offer_lasts_seconds == expected


@pytest.mark.parametrize(("version", "expected"), [("3.5.0", True), ("3.3.0", True), ("3.2.4", False)])
def test_what_is_honoured_is_taken_back_uncharged_from_3_3_on(version: str, expected: bool) -> None:
    found = capabilities.capabilities(facts(version))
    assert (found.cpu.takes_back, found.memory.takes_back) == (expected, expected)
    assert not found.memory.take_back_charged
    memory_alone = capabilities.capabilities(facts(version, calculator=Calculator.DEFAULT))
    assert (memory_alone.cpu.takes_back, memory_alone.memory.takes_back) == (False, expected)


def metrics(pending: Size | None, containers: int | None) -> Metrics:
    return Metrics(total=None, pending=pending, pending_containers=containers)


def waiting(*requests: tuple[int, int, int], user: str = "al", queue: str = "root.etl") -> RunningApplication:
    """An application that waits for containers, each so many MB, vcores, and how many of them."""
    return RunningApplication(
        id="application_1_0001",
        name="a",
        user=user,
        queue=queue,
        kind="YARN",
        priority=0,
        progress=None,
        master=None,
        requests=tuple(Request(size=Size(mb, vcores), containers=count) for mb, vcores, count in requests),
    )


def test_what_waits_is_in_the_units_of_the_contract() -> None:
    assert pending.pending(metrics(Size(3072, 5), 7), (), 100) == Pending(total=Resources(500, 3 * GIB))


def test_nothing_that_waits_is_zero_and_not_unknown() -> None:
    assert pending.pending(metrics(Size(0, 0), 0), (waiting((1024, 1, 2)),), 1000) == Pending(total=Resources(0, 0))


def test_pending_is_unknown_where_the_resource_manager_does_not_tell_it() -> None:
    assert pending.pending(metrics(None, 3), (), 1000) is None
    assert pending.pending(metrics(None, None), (waiting((1024, 1, 2)),), 1000) is None


def test_the_smallest_and_the_largest_request_are_so_in_each_resource() -> None:
    found = pending.pending(
        metrics(Size(9216, 9), 4), (waiting((1024, 4, 1)), waiting((4096, 1, 1), (2048, 2, 2))), 1000
    )
    assert found is not None
    assert (found.smallest, found.largest) == (Resources(1000, GIB), Resources(4000, 4 * GIB))


def test_no_request_is_called_the_smallest_while_some_are_not_seen() -> None:
    found = pending.pending(metrics(Size(9216, 9), 5), (waiting((2048, 2, 4)),), 1000)
    assert found is not None
    assert (found.total, found.smallest, found.largest) == (Resources(9000, 9 * GIB), None, None)


def test_a_release_without_the_sum_is_believed_that_of_the_requests() -> None:
    found = pending.pending(metrics(None, 3), (waiting((2048, 2, 3)),), 1000)
    assert found is not None
    assert (found.total, found.smallest) == (Resources(6000, 6 * GIB), Resources(2000, 2 * GIB))


def test_it_is_told_by_whom_the_most_waits() -> None:
    users = [waiting((1024, 1, count), user=user) for user, count in (("a", 1), ("b", 9), ("c", 3), ("d", 2), ("e", 1))]
    found = pending.pending(metrics(Size(16384, 16), 18), (*users, waiting((1024, 1, 2), user="b")), 1000)
    assert found is not None
    assert found.detail == (
        "11 containers of b in root.etl, 3 containers of c in root.etl, 2 containers of d in root.etl, and of 2 others"
    )


def test_the_largest_container_is_no_larger_than_the_largest_node_or_the_configured_one() -> None:
    readings = [entry("a:1", in_force=Size(4096, 2)), entry("b:1", in_force=Size(2048, 8)), entry("c:1", in_force=None)]
    assert largest.largest_container(readings, facts()) == Size(4096, 8)
    setup = replace(facts().setup, maximum=Size(3072, 16))  # type: ignore[type-var]
    assert largest.largest_container(readings, replace(facts(), setup=setup)) == Size(3072, 8)
    assert largest.largest_container([], facts()) is None


def test_the_largest_node_elsewhere_is_one_that_is_not_ours() -> None:
    readings = {node_id: entry(node_id, in_force=Size(mb, 4)) for node_id, mb in (("a:1", 8192), ("b:1", 4096))}
    assert largest.largest_elsewhere(readings, {"a:1"}, 100) == Resources(400, 4 * GIB)
    assert largest.largest_elsewhere(readings, {"a:1", "b:1"}, 100) is None


def test_an_update_that_was_taken_as_offered_needs_no_reason() -> None:
    found = answer(None)
    assert (found.node, found.framework_node) == ("n1", NODE_ID)
    assert (found.accepted, found.refusal, found.reason) == (OFFERED, None, "")


def test_an_update_that_was_rounded_says_so() -> None:
    found = answer(None, offered=Resources(4999, 4 * GIB + 1))
    assert found.accepted == OFFERED
    assert "rounded down" in found.reason


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (UnknownNodeError("no such node", node=NODE_ID), Refusal.UNKNOWN_NODE),
        (AccessDeniedError("no right"), Refusal.ACCESS_DENIED),
        (StandbyError("a standby"), Refusal.NOT_LEADER),
        (RemoteError("it broke"), Refusal.FAILED),
        (DeadlineError("no time left"), Refusal.FAILED),
        (DeadlineError("no answer", maybe_sent=True), Refusal.FAILED),
        (StandbyError("a standby, after the fact", maybe_sent=True), Refusal.FAILED),
    ],
)
def test_an_update_with_an_error_is_refused_or_failed_with_its_words(error: YarnError, refusal: Refusal) -> None:
    found = answer(error)
    assert (found.accepted, found.refusal, found.reason) == (None, refusal, str(error))
