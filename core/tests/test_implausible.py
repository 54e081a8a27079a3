import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.ledger.implausible import (
    MOST,
    accepted,
    wrong_pending,
    wrong_row,
    wrong_task,
    wrong_usage,
    wrong_workload,
)
from fallow_core.model.sample import NodeSample, Usage, Zone
from fallow_core.model.workload import Workload
from fallow_hookspecs import NodeState, Pending, ReportRow, Resources, Task, TaskState

GIB = 1 << 30
ROW = ReportRow(
    node="n",
    framework_node="n:1",
    age_seconds=1.0,
    state=NodeState.RUNNING,
    allocated=Resources(1000, GIB),
    in_force=Resources(2000, GIB),
    unit=Resources(1000, 1),
    floor=Resources(0, 0),
)
TASK = Task(id="t", application_id="a", framework_node="n:1", state=TaskState.RUNNING, requested=Resources(1000, GIB))
WORKLOAD = Workload(name="u", request=Resources(1000, GIB), used={"cpu": 10}, age_seconds=5.0)
BAD_AMOUNTS: list[Any] = [-1, MOST + 1, math.nan, math.inf, 0.5, None, "4", True]


def row_with(**values: Any) -> ReportRow:
    return replace(ROW, **values)


def usage(at: float = 10.0, capacity: int = 4000, used: int = 1000, **more: Any) -> Usage:
    return Usage(measured_at=at, capacity=capacity, used=used, batch_used=0, **more)


def test_what_is_right_is_not_refused() -> None:
    zoned = usage(allocatable=3800, zones=(Zone(name="0", capacity=2000, used=0, batch_used=0),))
    assert wrong_usage("cpu", zoned, now=10.0) == ""
    assert [wrong_row(ROW), wrong_task(TASK), wrong_workload(WORKLOAD)] == ["", "", ""]
    assert wrong_pending(Pending(total=Resources(0, 0), largest=Resources(1, 1))) == ""


@pytest.mark.parametrize("bad", BAD_AMOUNTS)
def test_an_amount_that_cannot_be_is_refused_wherever_it_stands(bad: Any) -> None:
    zone = Zone(name="0", capacity=2000, used=bad, batch_used=0)
    size: Any = Resources(1000, bad)
    found = [
        wrong_usage("cpu", replace(usage(), capacity=bad), 10.0),
        wrong_usage("cpu", replace(usage(), used=bad), 10.0),
        wrong_usage("cpu", replace(usage(), batch_used=bad), 10.0),
        wrong_usage("cpu", usage(zones=(zone,)), 10.0),
        *(wrong_row(row_with(**{name: size})) for name in ("allocated", "in_force", "unit", "floor", "maximum")),
        wrong_pending(Pending(total=size)),
        wrong_pending(Pending(total=Resources(0, 0), largest=size)),
        wrong_task(replace(TASK, requested=size)),
        wrong_workload(replace(WORKLOAD, request=size)),
        wrong_workload(replace(WORKLOAD, used={"memory": bad})),
    ]
    assert all(found)
    assert all(len(text) < 120 for text in found)


def test_an_allocatable_that_cannot_be_is_refused() -> None:
    assert wrong_usage("cpu", usage(allocatable=-1), 10.0) == "allocatable is negative"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, None, "1"])
def test_a_time_that_is_none_is_refused(bad: Any) -> None:
    assert wrong_usage("cpu", usage(at=bad), 10.0).startswith("its time is ")
    assert wrong_workload(replace(WORKLOAD, age_seconds=bad)).startswith("age_seconds is ")
    assert wrong_row(replace(ROW, started_age_seconds=bad)).startswith("started_age_seconds is ") is (bad is not None)
    assert bad is None or wrong_row(replace(ROW, age_seconds=bad)).startswith("age_seconds is ")


def test_what_was_measured_in_a_time_to_come_is_refused() -> None:
    assert wrong_usage("cpu", usage(at=12.5), 10.0) == "it was measured 2.5 s from now"
    assert wrong_row(replace(ROW, age_seconds=-0.1)) == "age_seconds is -0.1, a time to come"


@pytest.mark.parametrize(
    ("resource", "wrong"),
    [
        ("cpu", usage(capacity=4, used=1)),
        ("memory", usage(capacity=64000, used=100)),
        ("memory", usage(capacity=64 << 20, used=30 << 30)),
    ],
)
def test_amounts_in_another_unit_are_refused(resource: Any, wrong: Usage) -> None:
    assert wrong_usage(resource, wrong, 10.0)


def test_a_unit_of_nothing_is_refused() -> None:
    assert "at least 1" in wrong_row(replace(ROW, unit=Resources(0, 1)))


def test_a_refused_reading_leaves_the_last_good_one_and_the_other_resource() -> None:
    before = NodeSample(cpu=usage(1.0), memory=usage(1.0, capacity=GIB))
    newest = NodeSample(cpu=usage(2.0, used=-1), memory=usage(2.0, capacity=GIB))
    found, refused = accepted(before, newest, now=2.0)
    assert (found.cpu, found.memory) == (before.cpu, newest.memory)
    assert refused == {"cpu": "used is negative"}


def test_a_reading_that_comes_late_or_not_at_all_changes_nothing() -> None:
    before = NodeSample(cpu=usage(5.0))
    assert accepted(before, NodeSample(cpu=usage(4.0, used=0)), now=6.0) == (before, {})
    assert accepted(before, NodeSample(), now=6.0) == (before, {})


ANYTHING = st.one_of(st.integers(), st.floats(), st.none(), st.booleans(), st.text(max_size=3), st.integers(100, 10**6))


@given(ANYTHING, ANYTHING, ANYTHING, ANYTHING, ANYTHING)
def test_no_reading_whatever_it_holds_fails_or_gets_through_wrong(
    at: Any, capacity: Any, used: Any, batch_used: Any, allocatable: Any
) -> None:
    read = Usage(measured_at=at, capacity=capacity, used=used, batch_used=batch_used, allocatable=allocatable)
    found, refused = accepted(NodeSample(), NodeSample(cpu=read), now=10.0)
    assert (found.cpu is None) is bool(refused)
    if found.cpu is not None:
        assert found.cpu.measured_at <= 10.0
        assert 0 <= found.cpu.used <= 2 * found.cpu.capacity
