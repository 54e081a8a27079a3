"""What old, missing and impossible ages do to the sizes of a node's rows."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.ledger.node_ledger import NodeInputs, node_ledger
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.policy import AccountPolicy, NodePolicy, PublishingPolicy, ResourcePolicy, SwitchState
from fallow_core.model.sample import NodeSample, Usage
from fallow_core.model.workload import Workload
from fallow_hookspecs import NodeState, Resources

NOW = 10_000.0
LIMITS = PublishingPolicy()
DEGRADE, WITHDRAW = LIMITS.degrade_after_seconds, LIMITS.withdraw_after_seconds
WHOLE_NODE = NodePolicy(cpu=ResourcePolicy(watermark_percent=100), memory=ResourcePolicy(watermark_percent=100))


def inputs(
    sample_age: float | None = 0.0,
    report_age: float = 0.0,
    *,
    watched_for: float | None = None,
    in_force: int = 4,
    floor: int = 1,
    capacity: int = 12,
    workloads_age: float | None = None,
    workloads: tuple[Workload, ...] = (),
    switch: SwitchState = SwitchState.LEND,
) -> NodeInputs:
    """A node of 12 whose one row was told 4."""
    size = Resources(in_force, in_force)
    row = Row(
        key=RowKey("node", "a", "1"),
        state=NodeState.RUNNING,
        unit=Resources(1, 1),
        floor=Resources(floor, floor),
        allocated=Resources(2, 2),
        measured_at=NOW - report_age,
        in_force=size,
    )
    usage = None
    if sample_age is not None:
        usage = Usage(measured_at=NOW - sample_age, capacity=capacity, used=0, batch_used=0)
    return NodeInputs(
        node="node",
        now=NOW,
        sample=NodeSample(cpu=usage, memory=usage),
        rows=(row,),
        accounts={"a": AccountPolicy(switch=switch)},
        policy=WHOLE_NODE,
        watched_since=None if watched_for is None else NOW - watched_for,
        workloads=workloads,
        workloads_at=None if workloads_age is None else NOW - workloads_age,
    )


def size(given_: NodeInputs) -> int:
    return node_ledger(given_).memory.rows[0].size


def reasons(given_: NodeInputs) -> tuple[str, ...]:
    return node_ledger(given_).memory.rows[0].reasons


@pytest.mark.parametrize(("age", "expected"), [(DEGRADE - 1, 12), (DEGRADE, 4), (WITHDRAW - 1, 4), (WITHDRAW, 1)])
def test_an_old_sample_first_ends_growth_and_then_drains(age: float, expected: int) -> None:
    assert size(inputs(age)) == expected


@pytest.mark.parametrize(("watched", "expected"), [(None, 4), (0.0, 4), (WITHDRAW - 1, 4), (WITHDRAW, 1)])
def test_a_node_that_was_never_measured_drains_as_late_as_one_with_an_old_sample(
    watched: float | None, expected: int
) -> None:
    assert size(inputs(None, watched_for=watched)) == expected


def test_why_a_node_without_measurement_drains_is_told() -> None:
    assert reasons(inputs(None, watched_for=1000.0)) == (
        "the node was never measured in 1000 s: it drains",
        "raised to the floor",
    )


@pytest.mark.parametrize(("age", "expected"), [(-1.0, 4), (1 - WITHDRAW, 4), (-WITHDRAW, 1)])
def test_a_sample_from_a_time_to_come_is_no_fresh_one(age: float, expected: int) -> None:
    assert size(inputs(age)) == expected


@pytest.mark.parametrize("age", [DEGRADE, 10 * WITHDRAW, -1.0])
def test_a_report_that_is_old_or_of_a_time_to_come_ends_growth(age: float) -> None:
    assert size(inputs(report_age=age)) == 4


@pytest.mark.parametrize(("age", "expected"), [(None, 12), (0.0, 12), (DEGRADE, 4), (-1.0, 4)])
def test_an_old_list_of_pods_ends_growth(age: float | None, expected: int) -> None:
    assert size(inputs(workloads_age=age)) == expected


def test_pods_count_in_the_ledger_of_their_node() -> None:
    pod = Workload(name="p", request=Resources(5, 5), age_seconds=0.0)
    assert size(inputs(workloads=(pod,), workloads_age=0.0)) == 7


@pytest.mark.parametrize(("state", "expected"), [("lend", 12), ("hold", 4), ("drain", 1), ("stop", 1), ("restored", 4)])
def test_what_a_switch_says_of_a_size(state: str, expected: int) -> None:
    assert size(inputs(switch=SwitchState(state))) == expected


REPORT_AGES = st.integers(-2 * int(WITHDRAW), 2 * int(WITHDRAW)).map(float)
AGES = st.one_of(st.none(), REPORT_AGES)


@given(AGES, REPORT_AGES, AGES, st.integers(2, 20), st.integers(0, 3), st.sampled_from(SwitchState))
def test_no_age_and_no_switch_enlarges_what_fresh_inputs_would_give(
    age: float | None, report_age: float, pods_age: float | None, in_force: int, floor: int, switch: SwitchState
) -> None:
    fresh = inputs(in_force=in_force, floor=floor)
    given_ = inputs(age, report_age, in_force=in_force, floor=floor, workloads_age=pods_age, switch=switch)
    most = max(size(fresh), in_force) if age is None else size(fresh)
    assert size(given_) <= most
    stale = age is None or not 0 <= age < DEGRADE or not 0 <= report_age < DEGRADE
    if stale or not 0 <= (pods_age or 0.0) < DEGRADE or switch is not SwitchState.LEND:
        assert size(given_) <= max(in_force, floor)


@given(st.floats(0, 3000), st.floats(0, 3000))
def test_the_older_a_sample_the_smaller_the_size(one: float, other: float) -> None:
    assert size(inputs(max(one, other))) <= size(inputs(min(one, other)))


@given(st.integers(-5000, 5000))
def test_a_clock_that_jumps_enlarges_nothing(jump: int) -> None:
    """All was measured before the jump, and no later than now."""
    before = inputs(in_force=4)
    assert size(replace(before, now=NOW + jump)) <= (12 if 0 <= jump < DEGRADE else 4)


@pytest.mark.parametrize("request_", [Resources(-5, 1), Resources(1, 1 << 70), Resources(math.nan, 0)])  # type: ignore[arg-type]
def test_a_pod_that_cannot_be_true_is_refused_and_named_and_nothing_grows(request_: Resources) -> None:
    wrong = Workload(name="wrong", request=request_, age_seconds=0.0)
    right = Workload(name="right", request=Resources(5, 5), age_seconds=0.0)
    given_ = inputs(workloads=(wrong, right), workloads_age=0.0)
    (entry,) = node_ledger(given_).cpu.rows
    assert entry.size == 4
    assert entry.reasons[0].startswith("wrong is refused: request cpu is ") or "memory" in entry.reasons[0]
    capacity = node_ledger(given_).cpu.capacity
    assert capacity is not None
    assert [each.name for each in capacity.counted] == ["right"]
