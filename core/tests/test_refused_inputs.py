"""Values that cannot be true, from a framework: what is about one node or task is refused, the rest goes on."""

import logging
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_framework import NODE, World, key, size

from fallow_core.log import write
from fallow_core.model.refused_inputs import RefusedInputs
from fallow_core.plugins.answers import mismatch_but_parts, sifted
from fallow_hookspecs import CapacityReport, Pending, ReportRow, Resources, Task, TaskList, TaskState


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """One cluster with two nodes."""
    return World(tmp_path, monkeypatch, a={"a1": size(2), "a2": size(2)})


def spoilt(world: World, **changes: Any) -> None:
    """From now on the first node is reported with these values."""

    def spoil(report: CapacityReport) -> CapacityReport:
        rows = (replace(row, **changes) if row.framework_node == "a1" else row for row in report.rows)
        return replace(report, rows=tuple(rows))

    world.frameworks["a"].spoils = spoil


BAD_ROWS: list[dict[str, Any]] = [
    {"allocated": Resources(-1, 0)},
    {"allocated": Resources(0, 1 << 70)},
    {"in_force": Resources(math.nan, 0)},  # type: ignore[arg-type]
    {"unit": Resources(0, 0)},
    {"floor": None},
    {"age_seconds": -5.0},
    {"age_seconds": math.nan},
    {"maximum": "64 GiB"},
]


@pytest.mark.parametrize("changes", BAD_ROWS)
def test_a_row_that_cannot_be_true_is_refused_and_named_and_the_others_go_on(
    world: World, caplog: pytest.LogCaptureFixture, changes: dict[str, Any]
) -> None:
    world.run(5)
    spoilt(world, **changes)
    caplog.set_level(logging.INFO)
    before = world.row("a", "a1")
    world.run(100)
    cluster = world.controller.clusters["alpha/a"]
    assert list(cluster.refused.now) == [("report", "a1")]
    assert cluster.failing == {}
    assert world.row("a", "a1").measured_at == before.measured_at
    assert world.row("a", "a2").measured_at > world.now - 20
    (told,) = [r.getMessage() for r in caplog.records if r.getMessage().startswith("input_refused")]
    assert "source=alpha/a kind=report of=a1 why=" in told
    entries = {entry.key: entry for entry in world.controller.ledgers[NODE.name].memory.rows}
    assert any(reason.endswith(" s old: no growth") for reason in entries[key("a", "a1")].reasons)
    assert entries[key("a", "a2")].reasons == ()


def row(name: Any = "n:1", **more: Any) -> Any:
    return Task(
        id=name, application_id="a", framework_node="n", state=TaskState.RUNNING, requested=Resources(1, 1), **more
    )


def test_what_is_no_item_at_all_goes_by_its_place() -> None:
    good, refused = sifted((row("t"), 5, row(None), row("u", priority=0.5)), Task, lambda _: "", lambda t: t.id)
    assert good == (row("t"),)
    assert refused == {
        "number 1": "it is 5, not a Task",
        "number 2": "it.id is None, not a str",
        "u": "it.priority is 0.5, not an int",
    }


def test_an_answer_is_checked_but_for_what_its_part_holds() -> None:
    tasks: Any = (5,)
    assert mismatch_but_parts(TaskList(tasks=tasks, age_seconds=0.0, complete=True), TaskList) == ""
    assert mismatch_but_parts(TaskList(tasks=[], age_seconds=0.0, complete=True), TaskList)  # type: ignore[arg-type]
    assert mismatch_but_parts(TaskList(tasks=tasks, age_seconds=math.nan, complete=True), TaskList)
    assert mismatch_but_parts(5, ReportRow) == " is 5, not a ReportRow"


def test_what_is_refused_is_told_when_it_begins_and_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    refused = RefusedInputs("yarn/etl")
    for found in ({"n1": "why"}, {"n1": "another reason"}, {"n2": "why"}, {}, {}):
        write(refused.note("report", found))
        write(refused.note("pending", {}))
    words = [record.getMessage().split() for record in caplog.records]
    assert [(line[0], line[3]) for line in words] == [
        ("input_refused", "of=n1"),
        ("input_refused", "of=n2"),
        ("input_taken_again", "of=n1"),
        ("input_taken_again", "of=n2"),
    ]
    assert (refused.now, refused.count) == ({}, 2)


def test_what_is_refused_is_a_line_for_people() -> None:
    refused = RefusedInputs("yarn/etl")
    refused.note("report", {"n1": "allocated cpu is negative"})
    assert refused.lines() == ["yarn/etl: report of n1 is refused: allocated cpu is negative"]


def test_pending_that_cannot_be_true_is_unknown(world: World) -> None:
    world.frameworks["a"].spoils = lambda report: replace(report, pending=Pending(total=Resources(-1, 0)))
    world.run(15)
    cluster = world.controller.clusters["alpha/a"]
    assert (cluster.pending, len(cluster.rows)) == (None, 2)
    assert cluster.refused.lines() == ["alpha/a: pending of the cluster is refused: total cpu is negative"]


def test_a_task_that_cannot_be_true_makes_its_list_incomplete_and_the_others_are_known(world: World) -> None:
    wrong = replace(row("wrong"), requested=Resources(-1, 0))
    world.frameworks["a"].listing = TaskList(tasks=(row("right"), wrong), age_seconds=0.0, complete=True)
    world.run(5)
    cluster = world.controller.clusters["alpha/a"]
    found = cluster.lists[NODE.name]
    assert ([task.id for task in found.tasks], found.complete) == (["right"], False)
    assert found.reason == "task wrong is refused: requested cpu is negative"
    assert list(cluster.refused.now) == [(f"list on {NODE.name}", "wrong")]


def test_a_list_of_tasks_from_a_time_to_come_is_refused(world: World) -> None:
    world.frameworks["a"].listing = TaskList(tasks=(), age_seconds=-1e9, complete=True)
    world.run(5)
    cluster = world.controller.clusters["alpha/a"]
    assert cluster.lists == {}
    assert list(cluster.refused.now.values()) == ["it is from a time to come"]


def test_a_size_that_cannot_have_been_taken_is_no_answer(world: World) -> None:
    def spoil(report: CapacityReport) -> CapacityReport:
        answers = (replace(answer, accepted=Resources(-1, 0)) for answer in report.answers)
        return replace(report, answers=tuple(answers))

    world.frameworks["a"].spoils = spoil
    world.used = size(9)
    world.run(5)
    assert all(sent.size.cpu_milli >= 0 for sent in world.row("a", "a1").in_flight)
    assert not any(sent.answered for sent in world.row("a", "a1").in_flight)
