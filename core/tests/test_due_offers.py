from dataclasses import replace
from itertools import pairwise

import pytest

from fallow_core.ledger import growth_delay
from fallow_core.ledger.due_offers import DueOffer, due_rows
from fallow_core.ledger.falls import Falls
from fallow_core.ledger.growth_delay import SLOW, GrowthDelay, GrowthDelays
from fallow_core.ledger.node_ledger import NodeInputs, node_ledger
from fallow_core.ledger.rows import Row, RowKey, answered, observed, refused, sent, unanswered
from fallow_core.model.policy import (
    AccountPolicy,
    Limit,
    NodePolicy,
    PublishingPolicy,
    ResourcePolicy,
    Sharing,
    SwitchState,
)
from fallow_core.model.sample import NodeSample, Usage
from fallow_hookspecs import RESOURCE_NAMES, NodeState, ReportRow, Resources

A, B = (RowKey("node", f"yarn/{name}", f"nm-{name}:1") for name in "ab")
POLICY = PublishingPolicy(dead_band_percent=10)
WHOLE_NODE = NodePolicy(cpu=ResourcePolicy(watermark_percent=100), memory=ResourcePolicy(watermark_percent=100))


def size(amount: int) -> Resources:
    return Resources(amount, amount)


def row(key: RowKey, in_force: Resources | None, *, allocated: int = 0, floor: int = 0, unit: int = 1) -> Row:
    """A row that was just reported, with the size that it was sent."""
    return Row(
        key=key,
        state=NodeState.RUNNING,
        unit=size(unit),
        floor=size(floor),
        allocated=size(allocated),
        measured_at=0,
        in_force=in_force,
        last_sent=in_force,
    )


def changed(before: Row, now: float, in_force: int, *, state: NodeState = NodeState.RUNNING) -> Row:
    """The row after a report."""
    report = ReportRow(
        node=before.key.node,
        framework_node=before.key.framework_node,
        age_seconds=0,
        state=state,
        allocated=before.allocated,
        in_force=size(in_force),
        unit=before.unit,
        floor=before.floor,
    )
    return observed(before, before.key, report, now, POLICY.in_flight_seconds)


class Publisher:
    """Says what is due on a node whose batch capacity is given, and keeps the growth holds between the rounds."""

    def __init__(
        self, *, lasts: int | None = None, limits: dict[str, int] | None = None, sharing: Sharing = Sharing.EXCLUSIVE
    ) -> None:
        self.holds: GrowthDelays = {}
        self.policy = replace(POLICY, sharing=sharing)
        self.lasts = lasts
        self.accounts = {
            cluster: AccountPolicy(cpu_limit=Limit(amount=limit), memory_limit=Limit(amount=limit))
            for cluster, limit in (limits or {}).items()
        }

    def due(self, now: float, batch: Resources, *rows: Row) -> list[DueOffer]:
        fresh = tuple(replace(row, measured_at=max(row.measured_at, now)) for row in rows)
        cpu, memory = (
            Usage(measured_at=now, capacity=amount, used=0, batch_used=0)
            for amount in (batch.cpu_milli, batch.memory_bytes)
        )
        inputs = NodeInputs(
            node="node",
            now=now,
            sample=NodeSample(cpu=cpu, memory=memory),
            rows=fresh,
            accounts=self.accounts,
            policy=WHOLE_NODE,
            publishing=self.policy,
        )
        lasts = dict.fromkeys((A.cluster, B.cluster), self.lasts)
        return due_rows(node_ledger(inputs), fresh, self.holds, self.policy, now, lasts)

    def sizes(self, now: float, batch: int, *rows: Row) -> list[int]:
        return [d.size.memory_bytes for d in self.due(now, size(batch), *rows)]


# Down fast


def test_a_fall_below_what_is_believed_is_due_at_once_however_small() -> None:
    (due,) = Publisher().due(0, size(91), row(A, size(100)))
    assert (due.size, due.urgent) == (size(91), True)
    assert "may promise more than there is" in due.why


def test_a_fall_of_capacity_is_due_at_once_below_what_is_allocated() -> None:
    some, nothing = row(A, size(40_000), allocated=30_000), row(B, size(0))
    (due,) = Publisher().due(0, size(10_000), some, nothing)
    assert (due.size, due.urgent) == (size(10_000), True)


def test_a_small_overdraft_goes_below_what_is_allocated_when_it_has_lasted() -> None:
    publisher, everything = Publisher(), row(A, size(40_000), allocated=40_000)
    found = [publisher.sizes(now, 39_100, everything) for now in (0, 29, 30)]
    further = 38_827  # three fifths of a drain step, so that a little less is not due again
    assert found == [[], [], [further]]
    assert publisher.sizes(31, 50_000, everything) == []
    assert [publisher.sizes(now, 39_100, everything) for now in (32, 61, 62)] == [[], [], [further]], "it fitted once"


@pytest.mark.parametrize("allocated_percent", [100, 99, 98, 85])
def test_a_full_node_whose_capacity_falls_a_little_each_minute_changes_its_size_seldom(allocated_percent: int) -> None:
    """Before, each half a per cent was sent: ten sizes in ten minutes."""
    publisher, full, sizes = Publisher(), row(A, size(100_000)), [100_000]
    for second in range(600):
        full = replace(full, allocated=size(sizes[-1] * allocated_percent // 100))
        for due in publisher.due(second, size(100_000 - 500 * (second // 60)), full):
            full = answered(sent(full, due.size, second), second, due.size, second + 0.1)
            full = changed(full, second + 0.5, due.size.cpu_milli)
            sizes.append(due.size.cpu_milli)
    assert len(sizes) - 1 <= 2
    assert sizes[-1] <= 98_000


def test_an_overdraft_of_more_than_half_a_drain_step_goes_there_at_once_and_further_than_it_must() -> None:
    publisher, everything = Publisher(), row(A, size(40_000), allocated=40_000)
    (due,) = publisher.due(0, size(39_000), everything)
    assert (due.size, due.urgent) == (size(38_830), True)
    assert "more is allocated than there is" in due.why
    assert publisher.sizes(1, 38_900, row(A, size(38_830), allocated=40_000)) == [], "the further part is for that"


def test_what_drains_for_others_falls_by_whole_drain_steps() -> None:
    publisher, waiting = Publisher(), row(B, size(500), allocated=500)
    found = [publisher.sizes(now, 10_000, row(A, size(9_500), allocated=9_500), waiting) for now in (0, 30)]
    assert found == [[], [9_000]]
    assert publisher.sizes(31, 10_000, row(A, size(9_000), allocated=9_300), waiting) == []
    assert publisher.sizes(32, 10_000, row(A, size(9_000), allocated=9_000), waiting) == [8_500]


def test_a_row_that_is_found_with_more_than_its_size_is_due_at_once_to_no_larger_size() -> None:
    found = replace(row(A, size(10_000), allocated=12_000), last_sent=None)
    publisher = Publisher()
    (due,) = publisher.due(0, size(50_000), found)
    assert (due.size, due.urgent) == (Resources(10_000, 9_999), True)
    assert "a deadline of somebody else may be running" in due.why
    told = answered(sent(found, due.size, 0), 0, due.size, 0)
    assert publisher.due(1, size(50_000), told) == []
    fits = replace(row(A, size(10_000), allocated=10_000), last_sent=None)
    assert Publisher().due(0, size(50_000), fits) == []


def test_a_switch_to_drain_does_not_wait_at_what_is_allocated() -> None:
    publisher = Publisher()
    publisher.accounts = {A.cluster: AccountPolicy(switch=SwitchState.DRAIN)}
    assert publisher.sizes(0, 50_000, row(A, size(40_000), allocated=40_000)) == [0]


def test_while_the_load_rises_steadily_a_size_falls_ahead_of_it() -> None:
    publisher, now_in_force, calls = Publisher(), 10_000, []
    for now in range(60):
        for found in publisher.sizes(now, 10_000 - 100 * now, row(A, size(now_in_force))):
            now_in_force = found
            calls.append((now, found))
    assert calls[:2] == [(1, 9_703), (3, 9_412)], "a drain step and no more, before the direction is clear"
    assert all(later - earlier >= 8 for (earlier, _), (later, _) in pairwise(calls[2:]))


def test_ahead_of_a_steep_rise_a_size_falls_by_four_drain_steps_at_most() -> None:
    publisher, now_in_force, below = Publisher(), 10_000, []
    for now in range(12):
        batch = 10_000 - 500 * (now // 2)
        for found in publisher.sizes(now, batch, row(A, size(now_in_force))):
            now_in_force = found
            below.append((batch - found) * 100 // batch)
    assert max(below) == 20


def test_falls_that_are_far_apart_are_not_a_steady_rise() -> None:
    falls = Falls()
    for now in (0, 30, 60):
        falls.fell(now, 1_000)
    assert falls.ahead(65, 500) == 0
    falls.fell(70, 900)
    assert falls.ahead(75, 800) == 200
    assert falls.ahead(91, 800) == 0


def test_a_fall_that_endangers_nobody_is_due_beyond_the_band_only() -> None:
    publisher = Publisher(limits={A.cluster: 90})
    assert publisher.due(0, size(200), row(A, size(100))) == []
    publisher = Publisher(limits={A.cluster: 89})
    (due,) = publisher.due(0, size(200), row(A, size(100)))
    assert (due.size, due.urgent) == (size(89), False)


def test_a_fall_that_nobody_needs_is_not_due() -> None:
    idle, other = row(A, size(90), allocated=10), row(B, size(10), allocated=1)
    assert Publisher().due(0, size(100), idle, other) == []


def test_a_fall_of_half_a_drain_step_is_due_while_another_account_waits() -> None:
    idle, full = row(A, size(49), allocated=40), row(B, size(40), allocated=40)
    publisher = Publisher()
    assert [publisher.due(now, size(92), idle, full) for now in (0, 359)] == [[], []], "it waits when its growth held"
    (falls,) = publisher.due(360, size(92), idle, full)
    assert (falls.key, falls.size, falls.urgent) == (A, size(46), False)
    assert "another account waits for it" in falls.why
    nearly = row(A, size(47), allocated=40)
    publisher = Publisher()
    found = [publisher.due(now, size(92), nearly, full) for now in (0, 360)]
    assert [[due.key for due in each] for each in found] == [[], [B]], "one unit is less than half a step"


def test_a_fall_for_another_row_of_the_same_account_says_so() -> None:
    second = A._replace(framework_node=A.framework_node + "2")
    publisher = Publisher()
    idle, full = row(A, size(49), allocated=10), row(second, size(40), allocated=40)
    assert [publisher.due(now, size(92), idle, full) for now in (0, 359)] == [[], []]
    (falls, *_) = publisher.due(360, size(92), idle, full)
    assert falls.why == "; ".join(f"{name}: another node of the same account waits for it" for name in RESOURCE_NAMES)


def test_nobody_waits_for_a_growth_that_would_not_be_due() -> None:
    publisher = Publisher()
    idle, full = row(A, size(52), allocated=40), row(B, size(48), allocated=48)
    assert [publisher.due(now, size(102), idle, full) for now in (0, 60, 300)] == [[], [], []]


def test_an_account_that_drains_does_so_by_a_step() -> None:
    rows, publisher = (row(A, size(94), allocated=94), row(B, size(6), allocated=6)), Publisher()
    assert publisher.due(0, size(100), *rows) == []
    (due,) = publisher.due(30, size(100), *rows)
    assert (due.key, due.size, due.why) == (A, size(89), "cpu: it drains; memory: it drains")


def test_a_fall_goes_further_than_it_must_where_that_is_not_in_use() -> None:
    assert Publisher().sizes(0, 1_000, row(A, size(1_001))) == [971]
    assert Publisher().sizes(0, 1_000, row(A, size(1_001), allocated=975)) == [975]
    assert Publisher().sizes(0, 1_000, row(A, size(1_001), allocated=977)) == [], "a fall would leave next to nothing"
    assert Publisher().sizes(0, 1_000, row(A, size(1_001), floor=974)) == [974]
    assert Publisher().sizes(0, 10_000, row(A, size(10_005), allocated=9_741, unit=10)) == [9_750]


def test_no_more_rows_fall_at_once_than_suffice_those_first_that_leave_the_most() -> None:
    large, small = row(A, size(700), allocated=60), row(B, size(301), allocated=30)
    (due,) = Publisher().due(0, size(1_000), large, small)
    assert (due.key, due.size) == (A, size(500))
    assert [d.key for d in Publisher().due(0, size(600), large, small)] == [A, B]


def test_what_falls_already_is_waited_for() -> None:
    falling = answered(sent(row(A, size(700), allocated=60), size(600), 0), 0, size(600), 1)
    assert Publisher().due(2, size(901), falling, row(B, size(301), allocated=30)) == []
    assert Publisher().due(2, size(900), falling, row(B, size(301), allocated=30)) != []


def test_a_size_with_a_part_of_a_unit_does_not_keep_the_others_waiting() -> None:
    odd, waiting = row(A, size(7_500), allocated=7_500, unit=1_000), row(B, size(0), unit=1_000)
    publisher = Publisher()
    assert [publisher.sizes(now, 7_400, odd, waiting) for now in (0, 30)] == [[], [7_000]]
    assert Publisher().due(0, size(9_500), row(A, size(9_200), unit=1_000)) == [], (
        "within the dead band, and nobody waits"
    )


def test_where_capacity_is_shared_a_fall_is_due_beyond_the_band_as_others_have_promised_that() -> None:
    publisher = Publisher(sharing=Sharing.SHARED)
    rows = row(A, size(100), allocated=10), row(B, size(100), allocated=5)
    assert [(d.key, d.size, d.urgent) for d in publisher.due(0, size(100), *rows)] == []
    rows = row(A, size(100), allocated=10), row(B, size(100), allocated=15)
    assert [(d.key, d.size, d.urgent) for d in publisher.due(5, size(100), *rows)] == [(A, size(85), False)]


# Up slowly


def test_growth_waits_until_it_has_held_for_a_minute() -> None:
    publisher = Publisher()
    assert [publisher.sizes(now, 20, row(A, size(10), allocated=10)) for now in (0, 30, 59, 60)] == [[], [], [], [20]]


def test_growth_leaves_half_of_what_the_newest_target_lies_above_the_smallest_one_of_the_last_minute() -> None:
    publisher, full = Publisher(), row(A, size(1_000), allocated=1_000)
    assert [publisher.sizes(now, batch, full) for now, batch in [(0, 2_100), (30, 2_000), (60, 2_100)]] == [
        [],
        [],
        [1_950],
    ]


def test_growth_goes_to_the_smallest_size_of_the_last_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth_delay, "MARGIN_PERCENT", 0)
    publisher = Publisher()
    wanted = {0: 20, 30: 15, 60: 20, 90: 20, 91: 20}
    full = row(A, size(10), allocated=10)
    assert [publisher.sizes(now, batch, full) for now, batch in wanted.items()] == [
        [],
        [],
        [15],
        [15],
        [20],
    ]


def test_after_a_fall_within_the_band_the_rise_may_wait() -> None:
    publisher = Publisher()
    assert publisher.sizes(0, 91, row(A, size(100))) == [91]
    assert [publisher.sizes(now, 99, row(A, size(91))) for now in (1, 61, 1_000)] == [[], [], []]


def test_one_resource_falls_at_once_while_the_growth_of_the_other_waits_at_its_size_in_force() -> None:
    publisher = Publisher()
    before = row(A, Resources(4, 8), allocated=4)
    assert [d.size for d in publisher.due(10, Resources(8, 4), before)] == [Resources(4, 4)]
    after = row(A, Resources(4, 4), allocated=4)
    assert [d.size for d in publisher.due(70, Resources(8, 4), after)] == [Resources(8, 4)]


def test_zero_to_zero_is_no_change_and_zero_to_something_is_exactly_one() -> None:
    publisher = Publisher()
    nothing = row(A, size(0))
    assert [publisher.sizes(now, 0, nothing) for now in (0, 60, 120)] == [[], [], []]
    assert [publisher.sizes(now, 4_000, nothing) for now in (130, 180, 181)] == [[], [], [4_000]]
    assert [publisher.sizes(now, 4_000, sent(nothing, size(4_000), 181)) for now in (182, 400)] == [[], []]


def test_a_little_growth_has_to_hold_for_longer() -> None:
    publisher, full = Publisher(), row(A, size(100), allocated=100)
    assert [publisher.sizes(now, 120, full) for now in (0, 60, 359, 360)] == [[], [], [], [120]]
    full = row(B, size(100), allocated=100)
    assert [publisher.sizes(now, 121, full) for now in (400, 459, 460)] == [[], [], [121]]
    half = [row(key, size(2_000), unit=1_000, allocated=1_900) for key in (A, B)]
    publisher = Publisher()
    assert [publisher.sizes(now, 6_000, *half) for now in (0, 60, 360)] == [[], [], [3_000, 3_000]], "one unit"


def test_growth_that_nobody_asks_for_has_to_hold_for_longer() -> None:
    publisher, idle = Publisher(), row(A, size(100), allocated=10)
    held = SLOW * POLICY.growth_delay_seconds
    assert [publisher.sizes(now, 199, idle) for now in (0, 60, held - 1, held)] == [[], [], [], [199]]
    publisher = Publisher()
    assert [publisher.sizes(now, 200, idle) for now in (0, 60)] == [[], [200]]


def test_an_account_far_below_its_fair_share_does_not_wait_that_long_for_a_little() -> None:
    publisher = Publisher()
    rows = row(A, size(1), unit=1, allocated=1), row(B, size(2), allocated=2)
    assert [publisher.sizes(now, 4, *rows) for now in (0, 59, 60)] == [[], [], [2]]


def test_growth_waits_for_as_long_after_the_last_growth() -> None:
    publisher = Publisher()
    assert publisher.sizes(0, 400, row(A, size(100), allocated=100)) == []
    assert publisher.sizes(60, 400, row(A, size(100), allocated=100)) == [400]
    full = row(A, size(400), allocated=400)
    assert [publisher.sizes(now, 900, full) for now in (65, 120, 124, 125)] == [[], [], [], [900]]


def test_a_hold_knows_the_smallest_target_since_a_time_and_nothing_before_it() -> None:
    hold = GrowthDelay(since=0, newest=1)
    found = []
    for now, target in [(0, 5), (20, 9), (60, 7), (61, 8), (121, 9), (200, 3), (201, 9), (300, 9)]:
        hold.push(now, 1, target, 60)
        found.append((hold.least(now, 60), hold.least(now, 300)))
    assert found == [(1, 1), (1, 1), (5, 1), (7, 1), (8, 1), (3, 1), (3, 1), (9, 3)]


# What is sent again, and what is not


def test_what_is_in_flight_is_not_sent_again_merely_because_it_is_unconfirmed() -> None:
    waiting = answered(sent(row(A, size(100)), size(80), 0), 0, size(80), 1)
    assert Publisher().due(50, size(80), waiting) == []


def test_what_was_not_answered_is_sent_again() -> None:
    lost = unanswered(sent(row(A, size(100)), size(80), 0), 0, 1)
    (due,) = Publisher().due(2, size(80), lost)
    assert (due.size, due.why) == (size(80), "the newest size did not arrive, or somebody else changed it")
    assert Publisher().due(2, size(80), replace(lost, in_force=size(80))) == [], "it arrived after all"


def test_what_arrived_is_not_sent_again_while_an_older_size_may_still_be_carried_out() -> None:
    lost = unanswered(sent(row(A, size(100)), size(120), 0), 0, 1)
    arrived = changed(answered(sent(lost, size(80), 10), 10, size(80), 11), 12, 80)
    assert [s.size for s in arrived.in_flight] == [size(120)]
    assert Publisher().due(20, size(80), arrived) == []


def test_a_daemon_that_registers_its_own_size_is_corrected_at_once() -> None:
    publisher = Publisher()
    before = row(A, size(20), allocated=18)
    assert [publisher.due(now, size(20), before) for now in (0, 60)] == [[], []]
    assert publisher.sizes(61, 20, changed(before, 61, 1)) == [20]
    in_flight = answered(sent(before, size(15), 58), 58, size(15), 59)
    assert publisher.sizes(62, 15, changed(in_flight, 62, 1)) == [15]


def test_a_refused_size_is_not_asked_for_again_at_once() -> None:
    before = refused(sent(row(A, size(100)), size(80), 0), 0, "unknown node", 1)
    assert [Publisher().sizes(now, 80, before) for now in (2, 60, 61)] == [[], [], [80]]


def test_a_refusal_is_over_when_the_node_shows_another_size() -> None:
    before = refused(sent(row(A, size(100)), size(80), 0), 0, "unknown node", 1)
    assert Publisher().sizes(10, 80, changed(before, 10, 120)) == [80]


@pytest.mark.parametrize("state", [NodeState.NEW, NodeState.UNHEALTHY, NodeState.DRAINING, NodeState.GONE])
def test_only_a_node_that_runs_is_sent_a_size(state: NodeState) -> None:
    assert Publisher().due(1, size(5), changed(row(A, size(10)), 1, 10, state=state)) == []


def test_nothing_is_sent_while_the_size_in_force_is_not_known() -> None:
    assert Publisher().due(0, size(5), row(A, None, allocated=10)) == []


# Sizes that could be mistaken


def test_a_size_that_a_report_could_show_already_is_moved_by_one_unit_of_memory() -> None:
    grew = sent(row(A, size(50)), size(80), 0)
    assert [d.size for d in Publisher().due(1, size(50), grew)] == [Resources(50, 49)]


def test_a_moved_size_is_never_below_the_floor() -> None:
    grew = sent(row(A, size(50), floor=50), size(80), 0)
    assert [d.size for d in Publisher().due(1, size(50), grew)] == [Resources(50, 51)]


def test_a_size_that_an_older_one_in_flight_has_is_moved_too() -> None:
    twice = sent(sent(row(A, size(50)), size(40), 0), size(80), 1)
    assert [d.size for d in Publisher().due(2, size(40), twice)] == [Resources(40, 39)]


def test_a_size_equal_to_the_one_in_force_is_sent_as_it_is_when_nothing_else_is_in_flight() -> None:
    assert Publisher().sizes(0, 40, row(A, size(50))) == [40]


# Offers that run out


@pytest.mark.parametrize(("in_force", "floor", "renewed"), [(50, 0, 49), (50, 50, 51)])
def test_an_offer_is_renewed_changed_by_one_unit_before_it_runs_out(in_force: int, floor: int, renewed: int) -> None:
    publisher = Publisher(lasts=1_000)
    old = replace(row(A, size(in_force), floor=floor), refreshed_at=100)
    assert publisher.due(899, size(50), old) == []
    (due,) = publisher.due(900, size(50), old)
    assert (due.size, due.why) == (Resources(in_force, renewed), "the offer is about to run out")


def test_a_renewed_offer_lasts_again() -> None:
    old = replace(row(A, size(50)), refreshed_at=100)
    renewed = answered(sent(old, Resources(50, 49), 900), 900, Resources(50, 49), 901)
    assert [len(Publisher(lasts=1_000).due(now, size(50), renewed)) for now in (902, 1_700, 1_701)] == [0, 0, 1]


def test_an_offer_that_does_not_run_out_is_not_renewed() -> None:
    assert Publisher().due(10**9, size(50), replace(row(A, size(50)), refreshed_at=0)) == []


# Floors, order


def test_a_row_below_its_floor_is_raised_at_once_and_within_the_band() -> None:
    assert Publisher().sizes(0, 100, row(A, size(48), floor=50)) == [50]


def test_the_largest_size_goes_first() -> None:
    small, large = row(A, size(100), allocated=20), row(B, size(100), allocated=60)
    assert [d.key for d in Publisher().due(0, size(90), small, large)] == [B, A]
