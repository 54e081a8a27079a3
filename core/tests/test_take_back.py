from dataclasses import replace
from typing import Any

import pytest

from fallow_core.ledger.blast_radius import Candidate, TakeBacks, decide_all
from fallow_core.ledger.node_ledger import ResourceLedger, RowEntry
from fallow_core.ledger.rows import RowKey
from fallow_core.ledger.take_back import Change, Decision, PartState, Situation, Started
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_hookspecs import NodeState

KEY = RowKey("n1", "yarn/etl", "n1:8041")
POLICY = TakeBackPolicy(after_seconds={"memory": 60.0}, notice_seconds=60, blast_percent=50, blast_seconds=600.0)
SITUATION = Situation(allowed=True, fresh=True, masters=0, largest=0, cluster_allocated=100)
FITTED = TakeBacks(parts={(KEY, "memory"): PartState(fitted=True)})


def entry(allocated: int, target: int, *, in_force: int = 100, floor: int = 0, key: RowKey = KEY) -> RowEntry:
    return RowEntry(
        key=key,
        state=NodeState.RUNNING,
        allocated=allocated,
        in_force=in_force,
        in_flight=(),
        newest=in_force,
        belief=max(allocated, in_force),
        floor=floor,
        unit=1,
        most=None,
        target=target,
        size=target,
    )


def ledger(*rows: RowEntry, resource: str = "memory") -> ResourceLedger:
    return ResourceLedger(
        resource=resource,  # type: ignore[arg-type]
        capacity=None,
        drain_step=1,
        sample_age_seconds=0.0,
        allocated=sum(row.allocated for row in rows),
        believed=sum(row.belief for row in rows),
        exposure=0,
        overdraft=sum(max(row.allocated - max(row.target, row.floor), 0) for row in rows),
        accounts=(),
        rows=rows,
    )


def run(
    takes: TakeBacks, *rows: RowEntry, at: float, situation: Situation = SITUATION, policy: TakeBackPolicy = POLICY
) -> tuple[TakeBacks, dict[RowKey, Decision]]:
    return step(takes, ledger(*rows), dict.fromkeys((row.key for row in rows), situation), policy, at)


def step(
    takes: TakeBacks, of: ResourceLedger, situations: dict[RowKey, Situation], policy: TakeBackPolicy, now: float
) -> tuple[TakeBacks, dict[RowKey, Decision]]:
    """The state after deciding about all rows of a node, with the one before left as it was, and the decisions."""
    after = TakeBacks(parts=dict(takes.parts), started=dict(takes.started))
    candidates = [
        Candidate(entry=row, resource=of.resource, situation=situations[row.key], node_overdraft=of.to_take_back)
        for row in of.rows
    ]
    return after, {key: found for (key, _), found in decide_all(after, candidates, policy, now).items()}


def lasting(takes: TakeBacks, row: RowEntry, situation: Situation = SITUATION) -> tuple[TakeBacks, Decision]:
    """The decision after an overdraft of two minutes."""
    takes, _ = run(takes, row, at=0.0, situation=situation)
    takes, decisions = run(takes, row, at=120.0, situation=situation)
    return takes, decisions[row.key]


def test_an_overdraft_that_lasts_is_taken_back_down_to_the_target() -> None:
    takes, early = run(FITTED, entry(100, 60), at=0.0)
    assert early[KEY].change is not Change.STARTS
    _, late = run(takes, entry(100, 60), at=60.0)
    active = late[KEY].state.active
    assert late[KEY].change is Change.STARTS
    assert active is not None
    assert (active.size, active.started.amount) == (60, 40)


def test_an_overdraft_that_goes_in_between_begins_anew() -> None:
    takes, _ = run(FITTED, entry(100, 60), at=0.0)
    takes, _ = run(takes, entry(60, 60), at=50.0)
    takes, _ = run(takes, entry(100, 60), at=55.0)
    _, decisions = run(takes, entry(100, 60), at=70.0)
    assert decisions[KEY].change is not Change.STARTS


def test_what_was_there_at_first_is_adopted_and_never_taken_back() -> None:
    _, decision = lasting(TakeBacks(), entry(100, 60))
    assert decision.change is not Change.STARTS
    assert "adopted" in decision.why


def test_an_adopted_row_can_be_taken_back_once_it_has_fitted() -> None:
    takes, _ = run(TakeBacks(), entry(60, 60), at=0.0)
    _, decision = lasting(takes, entry(100, 60))
    assert decision.change is Change.STARTS


def test_what_only_seems_to_fit_while_nothing_is_known_for_sure_stays_adopted() -> None:
    takes, _ = run(TakeBacks(), entry(100, 100), at=0.0, situation=replace(SITUATION, fresh=False))
    assert lasting(takes, entry(100, 60))[1].change is not Change.STARTS


@pytest.mark.parametrize("situation", [replace(SITUATION, allowed=False), replace(SITUATION, fresh=False)])
def test_nothing_is_taken_back_that_is_not_allowed_or_not_known_for_sure(situation: Situation) -> None:
    assert lasting(FITTED, entry(100, 60), situation)[1].change is not Change.STARTS


def test_what_lies_inside_the_floor_is_never_taken_back() -> None:
    assert lasting(FITTED, entry(100, 60, floor=100))[1].change is not Change.STARTS


def test_application_masters_are_never_taken_back() -> None:
    _, decision = lasting(FITTED, entry(100, 60), replace(SITUATION, masters=80))
    assert decision.state.active is not None
    assert decision.state.active.size == 80


def test_the_blast_radius_cuts_what_is_taken_back_at_once() -> None:
    _, decision = drained(FITTED, entry(100, 60), 0.0, 60.0, policy=replace(POLICY, blast_percent=10))
    assert decision.state.active is not None
    assert decision.state.active.size == 90


def test_one_largest_task_may_always_be_taken_back() -> None:
    situation = replace(SITUATION, largest=30)
    takes, _ = run(FITTED, entry(100, 60), at=0.0, situation=situation, policy=replace(POLICY, blast_percent=1))
    _, decisions = run(takes, entry(100, 60), at=60.0, situation=situation, policy=replace(POLICY, blast_percent=1))
    active = decisions[KEY].state.active
    assert active is not None
    assert active.size == 99, "the framework ends whole tasks until the rest fits: one, which may be of 30"


def test_the_last_task_that_ends_counts_in_full_for_the_blast_radius() -> None:
    situation, policy = replace(SITUATION, largest=30), replace(POLICY, blast_percent=50)
    takes, _ = run(FITTED, entry(100, 95), at=0.0, situation=situation, policy=policy)
    takes, decisions = run(takes, entry(100, 95), at=60.0, situation=situation, policy=policy)
    assert decisions[KEY].change is Change.STARTS
    assert [begun.amount for begun in takes.started[KEY.cluster, "memory"]] == [5 + 29]
    takes, _ = drained(takes, entry(100, 95, in_force=95), 61.0, 121.0, situation=situation, policy=policy)
    takes, _ = run(takes, entry(70, 70, in_force=95), at=122.0, situation=situation, policy=policy)
    takes, _ = run(takes, entry(70, 69, in_force=70), at=123.0, situation=situation, policy=policy)
    _, decisions = run(takes, entry(70, 69, in_force=69), at=190.0, situation=situation, policy=policy)
    assert decisions[KEY].change is not Change.STARTS, "16 are left, and one task may be of 30"


def test_two_rows_share_one_blast_radius_the_larger_overdraft_first() -> None:
    other = RowKey("n1", "yarn/etl", "n1:8042")
    takes = TakeBacks(parts={(key, "memory"): PartState(fitted=True) for key in (KEY, other)})
    rows = (entry(50, 40), entry(50, 10, key=other))
    policy = replace(POLICY, blast_percent=40)
    takes, _ = run(takes, *rows, at=0.0, policy=policy)
    _, decisions = run(takes, *rows, at=60.0, policy=policy)
    assert decisions[other].change is Change.STARTS
    assert decisions[KEY].change is not Change.STARTS


def test_a_take_back_whose_reason_has_gone_is_cancelled_and_counts_no_longer() -> None:
    takes, _ = lasting(FITTED, entry(100, 60))
    assert takes.started[KEY.cluster, "memory"] != ()
    takes, decisions = run(takes, entry(100, 110), at=121.0)
    assert decisions[KEY].change is Change.CANCELLED
    assert decisions[KEY].state.active is None
    assert takes.started[KEY.cluster, "memory"] == ()


def test_a_take_back_that_is_no_longer_allowed_is_cancelled() -> None:
    takes, _ = lasting(FITTED, entry(100, 60))
    takes, decisions = run(takes, entry(100, 60), at=121.0, situation=replace(SITUATION, allowed=False))
    assert decisions[KEY].change is Change.CANCELLED


# The notice and its end


def drained(takes: TakeBacks, row: RowEntry, *times: float, **more: Any) -> tuple[TakeBacks, Decision]:
    """The decision at the last of these times, all with the same row."""
    decision = Decision(state=PartState(), overdraft=0)
    for at in times:
        takes, decisions = run(takes, row, at=at, **more)
        decision = decisions[row.key]
    return takes, decision


def test_the_notice_counts_from_when_a_size_below_what_is_allocated_is_in_force() -> None:
    takes, _ = lasting(FITTED, entry(100, 60))
    takes, decision = drained(takes, entry(100, 60), 190.0, 300.0)
    assert decision.change is None
    assert decision.state.active is not None
    assert decision.state.active.left_seconds(300.0) == 60
    takes, decision = drained(takes, entry(100, 60, in_force=60), 310.0, 369.0)
    assert (decision.change, decision.why) == (None, "1 s of the notice are left")
    takes, decision = drained(takes, entry(100, 60, in_force=60), 370.0)
    assert decision.change is Change.TERMINATES
    assert decision.state.active is not None
    assert decision.state.active.size == 60
    takes, decision = drained(takes, entry(60, 60, in_force=60), 372.0)
    assert (decision.change, decision.state.active) == (Change.ENDS, None)


def test_what_became_too_much_in_the_last_seconds_waits_for_the_next_notice() -> None:
    takes, _ = lasting(FITTED, entry(100, 90))
    takes, _ = drained(takes, entry(100, 90, in_force=90), 130.0)
    takes, _ = drained(takes, entry(100, 70, in_force=70), 174.0)
    takes, _ = drained(takes, entry(100, 60, in_force=60), 176.0)
    takes, decision = drained(takes, entry(100, 60, in_force=60), 190.0)
    assert decision.change is Change.TERMINATES
    assert decision.state.active is not None
    assert decision.state.active.size == 70, "60 has been in force for 14 s"


def test_where_nothing_was_warned_long_enough_the_end_waits_until_something_was() -> None:
    takes, _ = lasting(FITTED, entry(100, 60))
    takes, _ = drained(takes, entry(100, 60, in_force=95), 130.0)
    takes, _ = drained(takes, entry(90, 60, in_force=60), 189.0)
    takes, decision = drained(takes, entry(90, 60, in_force=60), 190.0, 203.0)
    assert (decision.change, decision.state.active is None) == (None, False)
    assert "warned for less than 15 s" in decision.why
    takes, decision = drained(takes, entry(90, 60, in_force=60), 204.0)
    assert decision.change is Change.TERMINATES


def test_a_scheduler_that_starts_anew_with_a_large_size_takes_nothing_from_the_notice() -> None:
    takes, _ = lasting(FITTED, entry(100, 60))
    takes, _ = drained(takes, entry(100, 60, in_force=60), 130.0)
    takes, _ = drained(takes, entry(100, 60, in_force=500), 150.0, 170.0)
    takes, decision = drained(takes, entry(100, 60, in_force=60), 180.0, 190.0)
    assert decision.change is Change.TERMINATES
    assert decision.state.active is not None
    assert decision.state.active.size == 60


def test_what_ends_by_itself_and_a_target_that_rises_leave_less_to_terminate() -> None:
    takes, _ = lasting(FITTED, entry(100, 60))
    takes, _ = drained(takes, entry(100, 60, in_force=60), 130.0)
    takes, decision = drained(takes, entry(90, 80, in_force=60), 190.0)
    assert decision.state.active is not None
    assert (decision.state.active.size, decision.state.active.started.amount) == (80, 10)


def test_what_became_more_is_terminated_as_far_as_the_blast_radius_leaves() -> None:
    policy = replace(POLICY, blast_percent=30)
    takes, _ = drained(FITTED, entry(100, 90), 0.0, 60.0, policy=policy)
    assert [each.amount for each in takes.started[KEY.cluster, "memory"]] == [10]
    takes, decision = drained(takes, entry(100, 50, in_force=50), 61.0, 121.0, policy=policy)
    assert decision.state.active is not None
    assert (decision.change, decision.state.active.size) == (Change.TERMINATES, 70)
    assert [each.amount for each in takes.started[KEY.cluster, "memory"]] == [30]
    takes, _ = drained(takes, entry(70, 50, in_force=50), 122.0, policy=policy)
    takes, decision = drained(takes, entry(70, 50, in_force=50), 700.0, policy=policy)
    assert "blast radius is used up" in decision.why, "it counts from when tasks were terminated"
    takes, decision = drained(takes, entry(70, 50, in_force=50), 721.0, policy=policy)
    assert decision.change is Change.STARTS


def test_a_notice_ends_with_nothing_where_others_have_used_up_the_blast_radius() -> None:
    takes, _ = lasting(FITTED, entry(100, 60))
    takes, _ = drained(takes, entry(100, 60, in_force=60), 130.0)
    takes.started[KEY.cluster, "memory"] += (Started(150.0, 100),)
    takes, decision = drained(takes, entry(100, 60, in_force=60), 190.0)
    assert (decision.change, decision.state.active) == (Change.CANCELLED, None)
    assert takes.started[KEY.cluster, "memory"] == (Started(150.0, 100),)


def test_nothing_is_terminated_on_old_news() -> None:
    takes, _ = lasting(FITTED, entry(100, 60))
    takes, _ = drained(takes, entry(100, 60, in_force=60), 130.0)
    old = replace(SITUATION, fresh=False)
    takes, decision = drained(takes, entry(100, 60, in_force=60), 195.0, situation=old)
    assert (decision.change, decision.state.active is None) == (None, False)


def test_a_framework_that_did_not_do_it_is_told_again_and_is_overdue() -> None:
    takes, _ = lasting(FITTED, entry(100, 60))
    takes, _ = drained(takes, entry(100, 60, in_force=60), 130.0, 190.0)
    takes, decision = drained(takes, entry(100, 60, in_force=60), 201.0)
    assert decision.state.active is not None
    assert (decision.change, decision.state.active.overdue(201.0, POLICY)) == (None, False)
    takes, decision = drained(takes, entry(100, 60, in_force=60), 202.0)
    assert decision.state.active is not None
    assert (decision.change, decision.state.active.overdue(202.0, POLICY)) == (Change.TERMINATES, True)
    assert [each.amount for each in takes.started[KEY.cluster, "memory"]] == [40], "it counts once"


def test_cpu_is_never_taken_back_by_default() -> None:
    takes = TakeBacks(parts={(KEY, "cpu"): PartState(fitted=True)})
    row = entry(100, 60)
    takes, _ = step(takes, ledger(row, resource="cpu"), {KEY: SITUATION}, TakeBackPolicy(), 0.0)
    _, decisions = step(takes, ledger(row, resource="cpu"), {KEY: SITUATION}, TakeBackPolicy(), 9999.0)
    assert decisions[KEY].change is not Change.STARTS


def test_a_row_that_drains_for_another_account_is_not_taken_back() -> None:
    row = entry(100, 60)
    takes, _ = step(FITTED, replace(ledger(row), overdraft=0), {KEY: SITUATION}, POLICY, 0.0)
    _, decisions = step(takes, replace(ledger(row), overdraft=0), {KEY: SITUATION}, POLICY, 9999.0)
    assert decisions[KEY].change is not Change.STARTS


def test_no_more_is_taken_back_than_the_node_is_in_overdraft() -> None:
    row = entry(100, 60)
    takes, _ = step(FITTED, replace(ledger(row), overdraft=10), {KEY: SITUATION}, POLICY, 0.0)
    _, decisions = step(takes, replace(ledger(row), overdraft=10), {KEY: SITUATION}, POLICY, 60.0)
    active = decisions[KEY].state.active
    assert active is not None
    assert active.size == 90


# Stopped by the operator


def test_what_is_stopped_is_taken_back_down_to_floor_and_masters_without_any_overdraft() -> None:
    stopped = replace(SITUATION, stopped=True, masters=20)
    fits = entry(60, 60, floor=10)
    takes, decision = lasting(FITTED, fits, stopped)
    assert (decision.overdraft, decision.change) == (50, Change.STARTS)
    assert decision.state.active is not None
    assert decision.state.active.size == 20
    _, unmoved = lasting(FITTED, fits)
    assert (unmoved.overdraft, unmoved.change) == (0, None)
    _, decisions = run(takes, fits, at=130.0)
    assert (decisions[KEY].change, decisions[KEY].why) == (Change.CANCELLED, "its reason has gone")


def test_a_stop_is_bound_by_blast_radius_adoption_and_time_like_all_take_backs() -> None:
    stopped = replace(SITUATION, stopped=True)
    few = replace(POLICY, blast_percent=5)
    takes, _ = run(FITTED, entry(60, 60), at=0.0, situation=stopped, policy=few)
    assert not any(takes.started.values())
    takes, _ = run(takes, entry(60, 60), at=60.0, situation=stopped, policy=few)
    assert sum(started.amount for started in takes.started[KEY.cluster, "memory"]) == 5
    _, adopted = lasting(TakeBacks(), entry(60, 60), stopped)
    assert adopted.why.startswith("adopted: ")
    _, old = lasting(FITTED, entry(60, 60), replace(stopped, fresh=False))
    assert old.change is not Change.STARTS
