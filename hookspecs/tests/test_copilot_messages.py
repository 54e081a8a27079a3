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
from fallow_hookspecs.copilot import enums, from_messages, to_messages
from fallow_hookspecs.copilot.many import Newest
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
    (CapacityReport, to_messages.capacity_report, from_messages.capacity_report),
    (TaskList, to_messages.task_list, from_messages.task_list),
    (KillOutcome, to_messages.kill_outcome, from_messages.kill_outcome),
    (Placement, to_messages.placement, from_messages.placement),
    (tuple[Finding, ...], to_messages.findings, from_messages.findings),
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
    newest = Newest()
    older = replace(first, tasks=tuple(replace(task, age_seconds=age) for task in first.tasks))
    for listed in (first, older, other, first):
        assert from_messages.task_list(again(to_messages.task_list(listed)), newest) == listed


@settings(max_examples=25)
@given(first=values(CapacityReport), other=values(CapacityReport), age=st.floats(0, 1e9), started=AGES)
def test_rows_that_were_there_before_are_as_they_are_now(
    first: CapacityReport, other: CapacityReport, age: float, started: float | None
) -> None:
    newest = Newest()
    rows = tuple(replace(row, age_seconds=age, started_age_seconds=started) for row in first.rows)
    for report in (first, replace(first, rows=rows), other, first):
        assert from_messages.capacity_report(again(to_messages.capacity_report(report)), newest) == report


def test_a_task_that_differs_by_its_age_alone_is_not_read_again() -> None:
    newest, message = Newest(), pb.TaskList()
    message.tasks.add(id="t", age_seconds=1.5, cgroups=["batch/t"])
    (before,) = newest.tasks(again(message).tasks)
    message.tasks[0].age_seconds = 2.5
    (after,) = newest.tasks(again(message).tasks)
    assert (before.age_seconds, after.age_seconds) == (1.5, 2.5)
    assert after.cgroups is before.cgroups


@settings(max_examples=25)
@given(nodes=values(tuple[Node, ...]), offers=values(tuple[Offer, ...]))
def test_a_report_is_asked_for_as_it_was(nodes: tuple[Node, ...], offers: tuple[Offer, ...]) -> None:
    request = again(to_messages.report_request(nodes, offers))
    assert from_messages.nodes(request.nodes) == nodes
    assert from_messages.offers(request.offers) == offers


@settings(max_examples=25)
@given(node=values(Node), order=values(KillOrder), parent=values(str))
def test_orders_and_nodes_arrive_as_they_were(node: Node, order: KillOrder, parent: str) -> None:
    kill = again(to_messages.kill_request(node, order))
    place = again(to_messages.place_request(node, parent))
    assert from_messages.kill_order(kill) == order
    assert place.parent == parent
    listed, asked = again(to_messages.list_request(node)), again(to_messages.diagnose_request((node, node)))
    assert [from_messages.node(each.node) for each in (kill, place, listed)] == [node] * 3
    assert from_messages.nodes(asked.nodes) == (node, node)


def test_what_a_row_must_have_and_has_not_is_missing_and_not_zero() -> None:
    message = pb.CapacityReport()
    message.rows.add(node="n", framework_node="n:1", allocated_cpu_milli=0)
    (row,) = from_messages.capacity_report(again(message)).rows
    missing: list[Any] = [row.age_seconds, row.state, row.in_force, row.unit, row.floor, row.maximum]
    assert missing == [None] * len(missing)
    assert row.allocated == Resources(0, None)  # type: ignore[arg-type]


def test_what_a_task_must_have_and_has_not_is_missing_and_not_zero() -> None:
    message = pb.TaskList()
    message.tasks.add(id="t")
    message.tasks[0].processes.add(pid=0)
    message.daemons.add()
    listed = from_messages.task_list(again(message))
    (task,), (daemon,) = listed.tasks, listed.daemons
    missing: list[Any] = [
        *(listed.age_seconds, task.state, task.requested),
        *(task.processes[0].start_ticks, daemon.process.pid, daemon.framework_node),
    ]
    assert missing == [None] * len(missing)
    assert not listed.complete


def test_what_is_left_out_is_taken_for_the_safe_side() -> None:
    report = from_messages.capacity_report(pb.CapacityReport())
    assert (report.capabilities.cpu.honoured, report.capabilities.cpu.take_back_charged) == (False, True)
    message = pb.TaskList()
    message.tasks.add(id="t")
    (task,) = from_messages.task_list(message).tasks
    assert (task.may_be_ended, task.role, task.kept_share) == (True, TaskRole.WORKER, 0.0)
    message_of_kill = pb.KillOutcome()
    message_of_kill.answers["t"].reason = "says nothing"
    assert from_messages.kill_outcome(message_of_kill).answers["t"].result is None
    (offer,) = from_messages.offers(pb.ReportCapacityRequest(offers=[pb.Offer(node="n")]).offers)
    assert offer.take_back == {}


def test_a_number_that_this_version_does_not_know_is_no_state() -> None:
    message = pb.CapacityReport()
    message.rows.add(node="n", state=99)  # as a newer copilot may send
    (row,) = from_messages.capacity_report(again(message)).rows
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
    capabilities = from_messages.capacity_report(pb.CapacityReport()).capabilities
    rows = (ReportRow(**good), ReportRow(**good | wrong), ReportRow(**good))
    made = CapacityReport(capabilities=capabilities, rows=rows)
    found: tuple[Any, ...] = from_messages.capacity_report(again(to_messages.capacity_report(made))).rows
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
    (found,) = from_messages.task_list(again(to_messages.task_list(listed))).tasks
    assert (found.id, found.application_id, found.framework_node) == ("t", "a", "n:1")
    assert found.state is None


def test_every_value_of_every_enumeration_has_a_number_of_its_own() -> None:
    for known, numbers in ((enums.NODE_STATES, pb.NodeState), (enums.REFUSALS, pb.Refusal)):
        assert sorted(known) == sorted(set(numbers.values()) - {0})
    assert set(enums.REFUSAL_NUMBERS) == set(Refusal)
    assert (
        tuple(field.name.removesuffix("_notice_seconds") for field in pb.TakeBack.DESCRIPTOR.fields) == RESOURCE_NAMES
    )
