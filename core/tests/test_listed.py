from core.tests.fake_agent import task

from fallow_core.model.listed import STALE_SECONDS, ListedTasks, listed
from fallow_hookspecs import Task, TaskList, TaskState


def answer(*tasks: Task, age: float = 0.0, complete: bool = True) -> TaskList:
    reason = "" if complete else "no answer"
    return TaskList(tasks=tasks, age_seconds=age, complete=complete, incomplete_reason=reason)


def names(found: ListedTasks) -> list[str]:
    return sorted(task.id for task in found.tasks)


def test_a_list_is_as_old_as_its_request() -> None:
    found = listed(None, answer(task("a"), age=3), 100.0)
    assert (names(found), found.measured_at, found.complete, found.reason) == (["a"], 97.0, True, "")


def test_a_complete_list_replaces_the_one_before() -> None:
    before = listed(None, answer(task("a"), task("b")), 100.0)
    assert names(listed(before, answer(task("b"), task("c")), 101.0)) == ["b", "c"]


def test_an_incomplete_list_keeps_the_tasks_of_the_last_complete_one_and_has_the_newest_word_on_each() -> None:
    before = listed(None, answer(task("a"), task("b")), 100.0)
    partial = listed(before, answer(task("b", state=TaskState.TERMINATING), task("c"), complete=False), 101.0)
    assert names(partial) == ["a", "b", "c"]
    assert {task.id: task.state for task in partial.tasks}["b"] is TaskState.TERMINATING
    assert (partial.complete, partial.reason) == (False, "no answer")
    assert names(listed(partial, answer(complete=False), 102.0)) == ["a", "b", "c"]


def test_what_an_incomplete_list_kept_goes_with_the_next_complete_one() -> None:
    partial = listed(listed(None, answer(task("a")), 100.0), answer(complete=False), 101.0)
    assert names(listed(partial, answer(), 102.0)) == []


def test_an_older_list_changes_nothing() -> None:
    before = listed(None, answer(task("a")), 100.0)
    assert listed(before, answer(task("b"), age=5), 104.0) is before
    assert names(listed(before, answer(task("b"), age=4), 104.0)) == ["b"]


def test_only_a_fresh_and_complete_list_says_that_a_task_has_gone() -> None:
    complete = listed(None, answer(), 100.0)
    assert complete.is_complete(100.0 + STALE_SECONDS)
    assert not complete.is_complete(100.1 + STALE_SECONDS)
    assert not listed(None, answer(complete=False), 100.0).is_complete(100.0)
