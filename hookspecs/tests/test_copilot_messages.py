"""Values of the contract and messages: what goes in comes out."""

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fallow_hookspecs import (
    RESOURCE_NAMES,
    CapacityReport,
    Finding,
    KillOrder,
    KillOutcome,
    KillResult,
    Node,
    NodeState,
    Offer,
    Placement,
    Refusal,
    ReportRow,
    Resources,
    Task,
    TaskList,
    TaskRole,
    TaskState,
)
from fallow_hookspecs.copilot import messages
from fallow_hookspecs.copilot.codec import members
from fallow_hookspecs.copilot.fast_read import Known
from fallow_hookspecs.copilot.v0 import copilot_pb2 as pb

INT64 = 2**63


def values(expected: Any) -> st.SearchStrategy[Any]:
    """Values of a type of the contract, as far as messages can carry them."""
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if origin is tuple:
        return st.lists(values(arguments[0]), max_size=2).map(tuple)
    if origin is Mapping:
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=2)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*map(values, arguments))
    if origin is Literal:
        return st.sampled_from(arguments)
    if is_dataclass(expected):
        hints = typing.get_type_hints(expected)
        return st.builds(typing.cast("type", expected), **{f.name: values(hints[f.name]) for f in fields(expected)})
    if issubclass(expected, Enum):
        return st.sampled_from(expected)
    plain: dict[Any, st.SearchStrategy[Any]] = {
        bool: st.booleans(),
        int: st.integers(-INT64, INT64 - 1),
        float: st.floats(allow_nan=False, allow_infinity=False),
        str: st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        types.NoneType: st.none(),
    }
    return plain[expected]


def again(message: Any) -> Any:
    return type(message).FromString(message.SerializeToString())


ANSWERS: list[tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]] = [
    (CapacityReport, messages.report_message, messages.read_report),
    (TaskList, messages.task_list_message, messages.read_task_list),
    (KillOutcome, messages.outcome_message, messages.read_outcome),
    (Placement, messages.placement_message, messages.read_placement),
    (tuple[Finding, ...], messages.findings_message, messages.read_findings),
]


@pytest.mark.parametrize(("kind", "to", "back"), ANSWERS, ids=["report", "tasks", "kill", "placement", "findings"])
@settings(max_examples=25)
@given(data=st.data())
def test_an_answer_comes_out_as_it_went_in(kind: Any, to: Any, back: Any, data: st.DataObject) -> None:
    value = data.draw(values(kind))
    assert back(again(to(value))) == value


AGES = st.none() | st.floats(0, 1e9)


@settings(max_examples=25)
@given(first=values(TaskList), other=values(TaskList), age=AGES)
def test_tasks_that_were_there_before_are_as_they_are_now(first: TaskList, other: TaskList, age: float | None) -> None:
    newest = Known()
    older = replace(first, tasks=tuple(replace(task, age_seconds=age) for task in first.tasks))
    for listed in (first, older, other, first):
        assert messages.read_task_list(again(messages.task_list_message(listed)), newest) == listed


@settings(max_examples=25)
@given(first=values(CapacityReport), other=values(CapacityReport), age=st.floats(0, 1e9), started=AGES)
def test_rows_that_were_there_before_are_as_they_are_now(
    first: CapacityReport, other: CapacityReport, age: float, started: float | None
) -> None:
    newest = Known()
    rows = tuple(replace(row, age_seconds=age, started_age_seconds=started) for row in first.rows)
    for report in (first, replace(first, rows=rows), other, first):
        assert messages.read_report(again(messages.report_message(report)), newest) == report


def test_a_task_that_differs_by_its_age_alone_is_not_read_again() -> None:
    newest, message = Known(), pb.TaskList()
    message.tasks.add(id="t", age_seconds=1.5, cgroups=["batch/t"])
    (before,) = newest.tasks(again(message).tasks)
    message.tasks[0].age_seconds = 2.5
    (after,) = newest.tasks(again(message).tasks)
    assert (before.age_seconds, after.age_seconds) == (1.5, 2.5)
    assert after.cgroups is before.cgroups


@settings(max_examples=25)
@given(nodes=values(tuple[Node, ...]), offers=values(tuple[Offer, ...]))
def test_a_report_is_asked_for_as_it_was(nodes: tuple[Node, ...], offers: tuple[Offer, ...]) -> None:
    request = again(messages.report_request(nodes, offers))
    assert messages.read_nodes(request.nodes) == nodes
    assert messages.read_offers(request.offers) == offers


@settings(max_examples=25)
@given(node=values(Node), order=values(KillOrder), parent=values(str))
def test_orders_and_nodes_arrive_as_they_were(node: Node, order: KillOrder, parent: str) -> None:
    kill = again(messages.kill_request(node, order))
    place = again(messages.place_request(node, parent))
    assert messages.read_order(kill) == order
    assert place.parent == parent
    listed, asked = again(messages.list_request(node)), again(messages.diagnose_request((node, node)))
    assert [messages.read_node(each.node) for each in (kill, place, listed)] == [node] * 3
    assert messages.read_nodes(asked.nodes) == (node, node)


def test_what_a_row_must_have_and_has_not_is_missing_and_not_zero() -> None:
    message = pb.CapacityReport()
    message.rows.add(node="n", framework_node="n:1", allocated_cpu_milli=0)
    (row,) = messages.read_report(again(message)).rows
    missing: list[Any] = [row.age_seconds, row.state, row.in_force, row.unit, row.floor, row.maximum]
    assert missing == [None] * len(missing)
    assert row.allocated == Resources(0, None)  # type: ignore[arg-type]


def test_what_a_task_must_have_and_has_not_is_missing_and_not_zero() -> None:
    message = pb.TaskList()
    message.tasks.add(id="t")
    message.tasks[0].processes.add(pid=0)
    message.daemons.add()
    listed = messages.read_task_list(again(message))
    (task,), (daemon,) = listed.tasks, listed.daemons
    missing: list[Any] = [
        *(listed.age_seconds, task.state, task.requested),
        *(task.processes[0].start_ticks, daemon.process.pid, daemon.framework_node),
    ]
    assert missing == [None] * len(missing)
    assert not listed.complete


def test_what_is_left_out_is_taken_for_the_safe_side() -> None:
    report = messages.read_report(pb.CapacityReport())
    assert (report.capabilities.cpu.honoured, report.capabilities.cpu.take_back_charged) == (False, True)
    message = pb.TaskList()
    message.tasks.add(id="t")
    (task,) = messages.read_task_list(message).tasks
    assert (task.may_be_ended, task.role, task.kept_share) == (True, TaskRole.WORKER, 0.0)
    message_of_kill = pb.KillOutcome()
    message_of_kill.answers["t"].reason = "says nothing"
    assert messages.read_outcome(message_of_kill).answers["t"].result is None
    (offer,) = messages.read_offers(pb.ReportCapacityRequest(offers=[pb.Offer(node="n")]).offers)
    assert offer.take_back == {}


def test_a_number_that_this_version_does_not_know_is_no_state() -> None:
    message = pb.CapacityReport()
    message.rows.add(node="n", state=99)  # as a newer copilot may send
    (row,) = messages.read_report(again(message)).rows
    assert row.state is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"age_seconds": "old"},
        {"state": "running fast"},
        {"allocated": None},
        {"allocated": Resources(2**64, 0)},
        {"unit": Resources(0.5, 1)},  # type: ignore[arg-type]
        {"node": 7},
        {"framework_node": "\ud800"},
    ],
)
def test_a_row_that_cannot_be_carried_keeps_its_names_and_spoils_no_other(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {
        "node": "n",
        "framework_node": "n:1",
        "age_seconds": 1.0,
        "state": NodeState.RUNNING,
        "allocated": Resources(1, 1),
        "in_force": None,
        "unit": Resources(1, 1),
        "floor": Resources(1, 1),
    }
    capabilities = messages.read_report(pb.CapacityReport()).capabilities
    rows = (ReportRow(**good), ReportRow(**good | wrong), ReportRow(**good))
    made = CapacityReport(capabilities=capabilities, rows=rows)
    found: tuple[Any, ...] = messages.read_report(again(messages.report_message(made))).rows
    first, second, third = found
    assert (first, third) == (rows[0], rows[2])
    assert second.age_seconds is None
    assert (second.node, second.framework_node) == (
        "" if "node" in wrong else "n",
        "" if "framework_node" in wrong else "n:1",
    )


def test_a_task_that_cannot_be_carried_keeps_its_names() -> None:
    task = Task(
        id="t",
        application_id="a",
        framework_node="n:1",
        state=TaskState.RUNNING,
        requested=Resources(1, 1),
        priority=2**70,
    )
    listed = TaskList(tasks=(task,), age_seconds=0.0, complete=True)
    (found,) = messages.read_task_list(again(messages.task_list_message(listed))).tasks
    assert (found.id, found.application_id, found.framework_node) == ("t", "a", "n:1")
    assert found.state is None


def test_every_value_of_every_enumeration_has_a_number_of_its_own() -> None:
    for kind in (NodeState, Refusal, TaskState, TaskRole, KillResult):
        wire = pb.DESCRIPTOR.enum_types_by_name[kind.__name__]
        assert sorted(members(kind, wire)) == sorted(set(wire.values_by_number) - {0})
        assert set(members(kind, wire).values()) == set(kind)
    assert tuple(field.name.partition("_")[0] for field in pb.TakeBack.DESCRIPTOR.fields) == RESOURCE_NAMES
