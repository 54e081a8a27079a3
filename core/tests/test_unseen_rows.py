"""A row whose daemon is gone from its host is believed for ten minutes, and a person need not wait."""

from pathlib import Path

import pytest
from core.tests.fake_framework import World, size

from fallow_core.ledger.rows import RowKey
from fallow_core.plugins.unseen_rows import UNSEEN_SECONDS, UnseenRows
from fallow_hookspecs import Daemon, NodeState, Process, Resources, Task, TaskState


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """One cluster with two nodes that are too large for the host."""
    world = World(tmp_path, monkeypatch, a={"a1": size(8), "a2": size(6)})
    world.frameworks["a"].nodes["a2"].process = Process(5000, 1)
    return world


ROW, OTHER = RowKey("n1", "a", "x:1"), RowKey("n1", "a", "y:1")
DAEMON = Daemon(process=Process(1, 1), framework_node="x:1")
UNNAMED = Daemon(process=Process(2, 1))
TASK = Task(
    id="t", application_id="", framework_node="x:1", state=TaskState.RUNNING, requested=Resources(1, 1),
    processes=(Process(3, 1),),
)  # fmt: skip


def test_it_is_given_up_once_after_ten_minutes_without_a_daemon() -> None:
    rows = UnseenRows()
    assert rows.note([ROW], [DAEMON], [], 0.0) == []
    assert rows.note([ROW], [], [], 1.0) == []
    assert rows.note([ROW], [], [], UNSEEN_SECONDS) == []
    assert rows.note([ROW], [], [], UNSEEN_SECONDS + 1) == [ROW]
    assert rows.note([ROW], [], [], UNSEEN_SECONDS + 2) == []
    assert rows.given_up == {ROW}


def test_a_daemon_a_task_or_a_daemon_without_a_name_begins_the_time_anew() -> None:
    for daemons, tasks in (([DAEMON], []), ([UNNAMED], []), ([], [TASK])):
        rows = UnseenRows()
        rows.note([ROW], [DAEMON], [], 0.0)
        rows.note([ROW], [], [], 1.0)
        rows.note([ROW], daemons, tasks, 500.0)
        assert rows.note([ROW], [], [], UNSEEN_SECONDS + 1) == []


def test_a_row_whose_daemon_comes_back_is_believed_again() -> None:
    rows = UnseenRows()
    rows.note([ROW], [DAEMON], [], 0.0)
    rows.note([ROW], [], [], 1.0)
    rows.note([ROW], [], [], UNSEEN_SECONDS + 1)
    rows.note([ROW], [DAEMON], [], UNSEEN_SECONDS + 2)
    assert rows.given_up == set()


def test_a_row_whose_daemon_was_never_listed_is_given_up_by_a_person_alone() -> None:
    rows = UnseenRows()
    rows.note([ROW, OTHER], [DAEMON], [], 0.0)
    assert rows.note([ROW, OTHER], [DAEMON], [], 2 * UNSEEN_SECONDS) == []
    assert rows.give_up_missing() == [OTHER]


def test_a_plugin_that_lists_no_daemons_says_nothing_about_its_rows() -> None:
    rows = UnseenRows()
    rows.note([ROW], [], [], 0.0)
    assert rows.note([ROW], [], [], 2 * UNSEEN_SECONDS) == []
    assert rows.give_up_missing() == []


def test_what_a_dead_node_had_is_lent_to_others_although_its_framework_still_names_it(pair: World) -> None:
    pair.run(20)
    pair.frameworks["a"].nodes["a1"].process_is_seen = False
    pair.run(UNSEEN_SECONDS + 120)
    assert pair.row("a", "a1").state is NodeState.GONE
    assert pair.row("a", "a1").belief("cpu") == 0
    assert pair.sizes()["a2"].cpu_milli > size(8).cpu_milli
    pair.frameworks["a"].nodes["a1"].process_is_seen = True
    pair.run(10)
    assert pair.row("a", "a1").state is NodeState.RUNNING


def test_forget_gives_up_a_node_without_a_daemon_at_once(pair: World) -> None:
    pair.run(20)
    pair.frameworks["a"].nodes["a1"].process_is_seen = False
    pair.run(5)
    assert [key.framework_node for key in pair.controller.forget("alpha/a")] == ["a1"]
    assert pair.row("a", "a1").state is NodeState.GONE
