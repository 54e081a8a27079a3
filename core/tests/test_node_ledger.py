from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fallow_core.ledger.accounts import need_of
from fallow_core.ledger.cross_resource import cut
from fallow_core.ledger.node_ledger import NodeInputs, ResourceLedger, RowEntry, node_ledger
from fallow_core.ledger.rows import Row, RowKey, Sent, observed
from fallow_core.ledger.sharing import Claim, Part, demand, divided, grown, shares
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
from fallow_hookspecs import RESOURCE_NAMES, NodeState, Pending, ReportRow, Resources

WHOLE_NODE = NodePolicy(cpu=ResourcePolicy(watermark_percent=100), memory=ResourcePolicy(watermark_percent=100))


def size(amount: int) -> Resources:
    return Resources(amount, amount)


def row(
    cluster: str,
    in_force: int | None,
    allocated: int = 0,
    *,
    name: str = "1",
    floor: int = 0,
    maximum: int | None = None,
    unit: int = 1,
    flight: tuple[int, ...] = (),
    state: NodeState = NodeState.RUNNING,
) -> Row:
    return Row(
        key=RowKey("node", cluster, name),
        state=state,
        unit=size(unit),
        floor=size(floor),
        maximum=None if maximum is None else size(maximum),
        allocated=size(allocated),
        measured_at=0,
        in_force=None if in_force is None else size(in_force),
        in_flight=tuple(Sent(size=size(amount), sent_at=at) for at, amount in enumerate(flight)),
    )


def inputs(
    batch: int | None,
    *rows: Row,
    now: float = 0,
    accounts: Mapping[str, AccountPolicy] | None = None,
    pending: Mapping[str, int] | None = None,
    awaited: tuple[RowKey, ...] = (),
) -> NodeInputs:
    """A node whose batch capacity is given, measured at 0."""
    usage = None if batch is None else Usage(measured_at=0, capacity=batch, used=0, batch_used=0)
    return NodeInputs(
        node="node",
        now=now,
        sample=NodeSample(cpu=usage, memory=usage),
        rows=rows,
        awaited=awaited,
        accounts=accounts or {},
        pending={cluster: Pending(total=size(amount)) for cluster, amount in (pending or {}).items()},
        policy=WHOLE_NODE,
    )


def ledger(given: NodeInputs) -> ResourceLedger:
    found = node_ledger(given)
    assert replace(found.cpu, resource="memory") == found.memory
    return found.memory


def sizes(given: NodeInputs) -> list[int]:
    return [entry.size for entry in ledger(given).rows]


def reasons(given: NodeInputs) -> list[str]:
    return [reason for entry in ledger(given).rows for reason in entry.reasons]


GROWS_LATER = "grows only out of what no other account may still believe it has"


# Sharing


def test_where_capacity_is_shared_beliefs_of_others_hold_nobody_up_and_exposure_is_shown() -> None:
    given = replace(inputs(12, row("a", 12, 6), row("b", 6, 4)), publishing=PublishingPolicy(sharing=Sharing.SHARED))
    found = ledger(given)
    assert [(r.size, r.waits) for r in found.rows] == [(8, False), (6, False)]
    assert (found.exposure, found.overcommitted) == (6, False)


def test_where_capacity_is_shared_nothing_is_taken_back_and_an_overdraft_drains() -> None:
    given = replace(inputs(9, row("a", 12, 8), row("b", 6, 4)), publishing=PublishingPolicy(sharing=Sharing.SHARED))
    found = ledger(given)
    assert (found.overdraft, found.to_take_back, found.overcommitted) == (3, 0, True)
    assert [r.size for r in found.rows] == [5, 4]
    assert ledger(replace(given, publishing=PublishingPolicy())).to_take_back == 3


def test_where_capacity_is_shared_nothing_grows_while_a_row_is_not_known() -> None:
    given = inputs(12, row("a", 6, 6), row("b", 1, 1), awaited=(RowKey("node", "c", "1"),))
    assert sizes(replace(given, publishing=PublishingPolicy(sharing=Sharing.SHARED))) == [6, 1]


def test_two_accounts_that_fit_get_equal_sizes() -> None:
    assert sizes(inputs(12_000, row("a", 6_000, 6_000, unit=1_000), row("b", 4_000, 4_000, unit=1_000))) == [
        6_000,
        6_000,
    ]


def test_an_overdraft_is_shown_and_falls_on_who_is_above_fair() -> None:
    found = ledger(inputs(9_000, row("a", 6_000, 6_000, unit=1_000), row("b", 4_000, 4_000, unit=1_000)))
    assert (found.overdraft, found.exposure) == (1_000, 1_000)
    assert [(a.fair, a.target) for a in found.accounts] == [(4_500, 5_000), (4_500, 4_000)]
    assert [r.size for r in found.rows] == [5_000, 4_000]


def test_an_overdraft_is_not_clamped_away() -> None:
    assert ledger(inputs(8_000, row("a", 10_000, 10_000))).overdraft == 2_000


def test_growth_waits_until_the_others_believe_in_less() -> None:
    given = inputs(12, row("a", 12, 2), row("b", 0))
    found = ledger(given)
    assert [(r.target, r.size, r.waits) for r in found.rows] == [(3, 3, False), (9, 0, True)]
    assert reasons(given) == [GROWS_LATER]
    assert sizes(inputs(12, row("a", 3, 2), row("b", 0))) == [3, 9]


def test_what_is_in_flight_to_one_is_not_given_to_another() -> None:
    assert sizes(inputs(12, row("a", 3, 2, flight=(12,)), row("b", 0))) == [3, 0]


def test_a_limit_in_percent_is_one_of_batch_in_whole_units() -> None:
    limit = AccountPolicy(cpu_limit=Limit(percent=80), memory_limit=Limit(percent=80))
    found = ledger(inputs(9_000, row("a", 0, unit=1_000), accounts={"a": limit}))
    assert (found.accounts[0].limit, found.rows[0].size) == (7_000, 7_000)


def test_two_rows_of_one_account_share_its_size_by_what_they_have_allocated() -> None:
    assert sizes(inputs(24, row("a", 6, 6, name="1"), row("a", 2, 2, name="2"), row("b", 8, 8))) == [9, 3, 12]


def test_floors_of_the_rows_of_one_account_add_up() -> None:
    found = ledger(inputs(24, row("a", 2, name="1", floor=2), row("a", 2, name="2", floor=2), row("b", 20, 20)))
    assert (found.accounts[0].floor, found.accounts[0].fair) == (4, 4)
    assert [r.size for r in found.rows] == [2, 2, 20]


def test_a_framework_gets_no_more_than_it_can_use_and_the_rest_goes_to_the_others() -> None:
    assert sizes(inputs(12, row("a", 0, maximum=4), row("b", 0))) == [4, 8]
    assert sizes(inputs(12_000, row("a", 0, maximum=4_500, unit=1_000), row("b", 0, unit=1_000))) == [4_000, 8_000]


def test_two_clusters_on_one_node_are_two_accounts_with_each_its_own_size() -> None:
    weights = {"a": AccountPolicy(weight=1), "b": AccountPolicy(weight=3)}
    assert sizes(inputs(12, row("a", 0), row("b", 0), accounts=weights)) == [3, 9]


def test_what_is_pending_is_what_an_account_wants() -> None:
    found = ledger(inputs(12, row("a", 4, 2), row("b", 8, 8), pending={"a": 1, "b": 20}))
    assert [(a.pending, a.demand, a.target) for a in found.accounts] == [(1, 3, 3), (20, 28, 9)]


def test_an_idle_account_keeps_room_for_a_first_task_and_comes_to_rest() -> None:
    busy, idle = row("b", 100, 100), row("a", 0)
    assert [a.target for a in ledger(inputs(100, idle, busy)).accounts] == [0, 95]
    assert [a.target for a in ledger(inputs(100, row("a", 5), row("b", 95, 95))).accounts] == [5, 95]
    rest = ledger(inputs(100, row("a", 5), row("b", 95, 95)))
    assert not any(r.waits for r in rest.rows)
    assert not any(a.drains_for_others for a in rest.accounts)


# Floors


def test_a_floor_that_does_not_fit_is_an_exposure() -> None:
    given = inputs(10, row("a", 10, 10), row("b", 0, floor=3), pending={"b": 0})
    assert sizes(given) == [10, 3]
    assert "raised to the floor" in reasons(given)
    assert ledger(inputs(10, row("a", 10, 10), row("b", 3, floor=3))).exposure == 3


def test_a_floor_that_fits_is_none() -> None:
    assert sizes(inputs(10, row("a", 5, 5), row("b", 3, floor=3), pending={"b": 0})) == [7, 3]


def test_nobody_grows_into_what_a_floor_is_about_to_take() -> None:
    given = inputs(12, row("a", 4, 4), row("b", 0, floor=3), row("c", 6), pending={"a": 20, "b": 0, "c": 0})
    assert sizes(given) == [4, 3, 0]


# Switches


@pytest.mark.parametrize(
    ("switch", "expected"), [("lend", [6, 6]), ("hold", [4, 8]), ("drain", [0, 8]), ("restored", [4, 8])]
)
def test_a_switch_stops_growth_or_drains_and_leaves_the_rest_to_the_others(switch: str, expected: list[int]) -> None:
    accounts = {"a": AccountPolicy(switch=SwitchState(switch))}
    assert sizes(inputs(12, row("a", 4, 4), row("b", 4, 4), accounts=accounts)) == expected


def test_a_drain_goes_down_to_the_floor_whatever_else_is_known() -> None:
    accounts = {"a": AccountPolicy(switch=SwitchState.DRAIN)}
    assert sizes(inputs(12, row("a", 4, 4, floor=1), accounts=accounts)) == [1]
    assert sizes(inputs(None, row("a", 4, 4, floor=1), accounts=accounts)) == [1]


@pytest.mark.parametrize("switch", [SwitchState.HOLD, SwitchState.DRAIN])
def test_nobody_drains_for_an_account_that_may_not_grow(switch: SwitchState) -> None:
    held = {"a": AccountPolicy(switch=switch)}
    assert [a.drains_for_others for a in ledger(inputs(12, row("a", 2, 2), row("b", 10, 10))).accounts] == [False, True]
    found = ledger(inputs(12, row("a", 2, 2), row("b", 10, 10), accounts=held)).accounts[1]
    assert (found.target, found.drains_for_others) == (10, False)


# Ages


@pytest.mark.parametrize(
    ("age", "expected"), [(59, [6, 6]), (60, [4, 4]), (899, [4, 4]), (900, [1, 0]), (10**6, [1, 0])]
)
def test_a_node_grows_no_more_on_an_old_sample_and_drains_on_a_very_old_one(age: float, expected: list[int]) -> None:
    rows = [replace(row("a", 4, 4, floor=1), measured_at=age), replace(row("b", 4, 4), measured_at=age)]
    assert sizes(inputs(12, *rows, now=age)) == expected


def test_an_old_sample_still_lowers_sizes_and_an_old_report_too() -> None:
    assert sizes(inputs(8, row("a", 10, 4), now=100)) == [8]


def test_a_framework_with_an_old_report_keeps_what_it_has_and_the_others_may_have_the_rest() -> None:
    silent = row("a", 4, 4)
    given = inputs(12, silent, replace(row("b", 4, 4), measured_at=70), now=70)
    given = replace(given, sample=inputs(12).sample)
    fresh = {name: replace(usage, measured_at=70) for name in RESOURCE_NAMES if (usage := given.sample.of(name))}
    given = replace(given, sample=NodeSample(**fresh))
    assert sizes(given) == [4, 8]
    assert reasons(given) == ["the framework's report is 70 s old: no growth"]


def test_on_a_node_that_was_never_measured_nothing_changes() -> None:
    given = inputs(None, row("a", 4, 2, flight=(7,)), row("b", 9))
    found = ledger(given)
    assert (found.capacity, found.sample_age_seconds, found.exposure) == (None, None, 0)
    assert [r.size for r in found.rows] == [7, 9]
    assert set(reasons(given)) == {"the node was never measured: no growth"}


def test_one_resource_may_be_measured_and_the_other_not() -> None:
    half = replace(inputs(12, row("a", 4)), sample=NodeSample(memory=inputs(12).sample.memory))
    found = node_ledger(half)
    assert (found.cpu.rows[0].size, found.memory.rows[0].size) == (4, 12)


def test_a_cluster_that_is_not_reached_keeps_what_it_had() -> None:
    found = ledger(inputs(12, row("a", 10, 8), replace(row("b", 2), measured_at=10**5), now=10**5))
    assert (found.allocated, found.believed) == (8, 12)


# Nodes that are not there, or not known


def test_a_node_that_is_gone_holds_nobody_up() -> None:
    gone = ReportRow(
        node="node",
        framework_node="1",
        age_seconds=0,
        state=NodeState.GONE,
        allocated=size(0),
        in_force=None,
        unit=size(1),
        floor=size(2),
    )
    before = row("a", 8, 8, flight=(9,))
    found = ledger(inputs(12, observed(before, before.key, gone, 0, 60), row("b", 4, 4)))
    assert [(r.belief, r.size) for r in found.rows] == [(0, 0), (4, 12)]
    assert not any(r.waits for r in found.rows)


@pytest.mark.parametrize("state", [NodeState.UNHEALTHY, NodeState.DRAINING])
def test_what_runs_on_a_node_that_is_unwell_still_counts(state: NodeState) -> None:
    found = ledger(inputs(12, row("a", 8, 8, state=state), row("b", 4, 4)))
    assert (found.allocated, found.believed, found.rows[1].size) == (12, 12, 4)


def test_nothing_grows_beside_a_scheduler_whose_size_in_force_is_not_known() -> None:
    assert sizes(inputs(12, row("a", None, 2), row("b", 4, 4))) == [2, 4]


def test_nothing_grows_while_a_row_of_before_was_not_reported() -> None:
    given = inputs(12, row("b", 4, 4), awaited=(RowKey("node", "a", "1"),))
    assert (sizes(given), reasons(given)) == ([4], [GROWS_LATER])
    assert sizes(inputs(3, row("b", 4, 4), awaited=(RowKey("node", "a", "1"),))) == [3]


# Everything at once


amounts = st.integers(0, 20).map(lambda n: n * 10)
resources = st.builds(Resources, amounts, amounts)


@st.composite
def any_inputs(draw: st.DrawFn) -> NodeInputs:
    unit = Resources(draw(st.sampled_from([1, 10])), 1)
    keys = [RowKey("node", cluster, name) for cluster in "abc" for name in "12"]
    limits = st.builds(Limit, percent=st.none() | st.integers(0, 100)) | st.builds(Limit, amount=amounts)
    rows = st.builds(
        Row,
        key=st.just(keys[0]),
        state=st.sampled_from([NodeState.RUNNING, NodeState.RUNNING, NodeState.UNHEALTHY]),
        unit=st.just(unit),
        floor=st.just(Resources(0, 0)) | resources,
        maximum=st.none() | resources,
        allocated=resources,
        in_force=st.none() | resources,
        measured_at=st.integers(0, 100),
        in_flight=st.lists(st.builds(Sent, size=resources, sent_at=st.just(0.0)), max_size=2).map(tuple),
    )
    usage = st.none() | st.builds(
        Usage,
        measured_at=st.sampled_from([0, 70, 100]),
        capacity=st.integers(0, 500),
        used=st.integers(0, 300),
        batch_used=st.integers(0, 300),
    )
    account = st.builds(
        AccountPolicy,
        weight=st.integers(1, 3),
        cpu_limit=limits,
        memory_limit=limits,
        switch=st.sampled_from([SwitchState.LEND, *SwitchState]),
    )
    return NodeInputs(
        node="node",
        now=100.0,
        sample=NodeSample(cpu=draw(usage), memory=draw(usage)),
        rows=tuple(
            replace(draw(rows), key=key) for key in draw(st.lists(st.sampled_from(keys), max_size=4, unique=True))
        ),
        awaited=draw(st.sampled_from([(), (), (RowKey("node", "d", "1"),)])),
        accounts=draw(st.dictionaries(st.sampled_from("abc"), account)),
        pending=draw(st.dictionaries(st.sampled_from("abc"), st.none() | st.builds(Pending, total=resources))),
    )


@given(any_inputs())
def test_sizes_are_never_negative_nor_below_a_floor(given: NodeInputs) -> None:
    for name in RESOURCE_NAMES:
        assert all(entry.size >= entry.floor >= 0 for entry in node_ledger(given).of(name).rows)


@settings(deadline=None)
@given(any_inputs())
def test_the_order_of_rows_does_not_matter_and_equal_inputs_give_equal_results(given: NodeInputs) -> None:
    found = node_ledger(given)
    for order in permutations(given.rows):
        assert node_ledger(replace(given, rows=order)) == found


@given(any_inputs())
def test_growth_leaves_what_is_believed_within_batch_and_comes_from_fresh_inputs(given: NodeInputs) -> None:
    for name in RESOURCE_NAMES:
        found = node_ledger(given).of(name)
        grows = [r for r in found.rows if r.size > max(r.newest, r.floor)]
        if grows:
            assert found.capacity is not None
            assert found.sample_age_seconds is not None
            assert found.sample_age_seconds < 60
            assert sum(max(r.belief, r.size) for r in found.rows) <= found.capacity.batch
            assert not given.awaited
        for entry in grows:
            (own,) = (r for r in given.rows if r.key == entry.key)
            assert given.now - own.measured_at < 60
            assert given.accounts.get(entry.key.cluster, AccountPolicy()).switch is SwitchState.LEND


@settings(max_examples=200, deadline=None)
@given(any_inputs())
def test_what_accounts_can_use_follows_from_what_is_shown(given: NodeInputs) -> None:
    of = [node_ledger(given).of(name) for name in RESOURCE_NAMES]
    batches = [f.capacity.batch if f.capacity is not None else f.believed for f in of]
    claims, _ = cut(batches, [[need_of(a) for a in f.accounts] for f in of])
    for found, claimed, other in zip(of, claims, reversed(RESOURCE_NAMES), strict=True):
        assert [a.demand for a in found.accounts] == [claim.demand for claim in claimed]
        assert all(a.cut_by == (None if a.demand == a.wants else other) for a in found.accounts)


@settings(max_examples=200, deadline=None)
@given(any_inputs())
def test_every_number_follows_from_those_that_are_shown(given: NodeInputs) -> None:
    for name in RESOURCE_NAMES:
        found = node_ledger(given).of(name)
        batch = found.capacity.batch if found.capacity is not None else found.believed
        assert found.allocated == sum(r.allocated for r in found.rows)
        assert found.believed == sum(r.belief for r in found.rows)
        assert (found.exposure, found.overdraft) == (max(found.believed - batch, 0), max(found.allocated - batch, 0))
        assert found.drain_step == batch * 5 // 100
        claims = []
        for a in found.accounts:
            own = [r for r in found.rows if r.key.cluster == a.cluster]
            assert (a.allocated, a.floor) == (sum(r.allocated for r in own), sum(r.floor for r in own))
            assert a.in_force == sum(r.in_force or 0 for r in own)
            assert a.wants == demand(a.allocated, a.in_force, a.pending, a.room, a.unit)
            claims.append(
                Claim(
                    weight=a.weight, allocated=a.allocated, demand=a.demand, limit=a.limit, floor=a.floor, unit=a.unit
                )
            )
            if found.capacity is not None:
                assert [r.target for r in own] == divided(a.target, [part_of(r) for r in own])
        for a, share in zip(found.accounts, shares(batch, claims, found.drain_step), strict=True):
            assert (a.fair, a.target, a.drains_for_others) == (share.fair, share.target, share.drains_for_others)
        kept = [max(r.belief, r.floor) for r in found.rows]
        unknown = given.awaited or any(r.in_force is None and r.state is NodeState.RUNNING for r in found.rows)
        wanted = [r.target if r.most is None else min(r.target, r.most) for r in found.rows]
        newest, units = [r.newest for r in found.rows], [r.unit for r in found.rows]
        allowed = grown(0 if unknown else batch, wanted, newest, kept, units)
        for r, size_allowed, want in zip(found.rows, allowed, wanted, strict=True):
            assert r.belief == max(r.allocated, r.in_force or 0, *r.in_flight)
            assert r.newest == (r.in_flight[-1] if r.in_flight else r.belief if r.in_force is None else r.in_force)
            assert r.size == max(size_allowed, r.floor)
            assert r.waits == (size_allowed < want)
            assert r.size == r.target or r.reasons or r.most is not None


def part_of(r: RowEntry) -> Part:
    return Part(allocated=r.allocated, floor=r.floor, most=r.most, unit=r.unit)
