from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fallow_hookspecs import (
    Capabilities,
    CapacityReport,
    Finding,
    NodeState,
    ReportRow,
    ResourceCapability,
    ResourceName,
    Resources,
    Task,
    TaskList,
    TaskState,
)
from fallow_hookspecs.shape import mismatch

ONE = Resources(1000, 2**30)
ROW = ReportRow(
    node="n1",
    framework_node="n1:8041",
    age_seconds=1,
    state=NodeState.RUNNING,
    allocated=ONE,
    in_force=None,
    unit=ONE,
    floor=ONE,
)
HONOURED = ResourceCapability(honoured=True)
REPORT = CapacityReport(capabilities=Capabilities(cpu=HONOURED, memory=HONOURED), rows=(ROW,))


def test_a_report_as_the_contract_has_it_fits() -> None:
    assert mismatch(REPORT, CapacityReport) == ""


def test_a_task_list_as_the_contract_has_it_fits() -> None:
    task = Task(id="t", application_id="a", framework_node="n", state=TaskState.RUNNING, requested=ONE)
    assert mismatch(TaskList(tasks=(task,), age_seconds=0.1, complete=True), TaskList) == ""


def changed(**values: Any) -> CapacityReport:
    return replace(REPORT, rows=(ROW, replace(ROW, **values)))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, " is None, not a CapacityReport"),
        ("ok", " is 'ok', not a CapacityReport"),
        (replace(REPORT, rows=[ROW]), ".rows is a list, not a tuple"),  # type: ignore[arg-type]
        (changed(allocated=Resources(1500.5, 1)), ".rows[1].allocated.cpu_milli is 1500.5, not an int"),  # type: ignore[arg-type]
        (changed(allocated=Resources(True, 1)), ".rows[1].allocated.cpu_milli is True, not an int"),
        (changed(allocated=None), ".rows[1].allocated is None, not a Resources"),
        (changed(in_force=7), ".rows[1].in_force is 7, not a Resources"),
        (changed(age_seconds=float("nan")), ".rows[1].age_seconds is not finite"),
        (changed(age_seconds=None), ".rows[1].age_seconds is None, not a float"),
        (changed(state="running"), ".rows[1].state is 'running', not a NodeState"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(answer: object, text: str) -> None:
    assert mismatch(answer, CapacityReport) == text


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"cpu": 60}, ""),
        ({"cpu": 1.5}, "['cpu'] is 1.5, not an int"),
        ({"disk": 60}, " key is 'disk', not one of ('cpu', 'memory')"),
        ([("cpu", 60)], " is a list, not a mapping"),
    ],
)
def test_entries_of_mappings_are_checked(answer: object, text: str) -> None:
    assert mismatch(answer, Mapping[ResourceName, int]) == text


def test_findings_are_checked() -> None:
    finding = Finding(subject="manager", ok=None, detail="not reached")
    assert mismatch((finding,), tuple[Finding, ...]) == ""
    assert mismatch((finding, "x"), tuple[Finding, ...]) == "[1] is 'x', not a Finding"
