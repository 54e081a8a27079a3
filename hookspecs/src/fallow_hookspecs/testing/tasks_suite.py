"""What is tried of `list_tasks`."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fallow_hookspecs.tasks import KillOrder, Process, Task, TaskList, TaskState
from fallow_hookspecs.testing.base import NOBODYS_NODE, Suite, tries
from fallow_hookspecs.testing.calling import Called, OverdueError, wait_until
from fallow_hookspecs.testing.framework import Framework

SHORT_SECONDS = 1.0
SLOW_SECONDS = 0.3
ROUNDS = 10
PROC_ROOT = Path("/proc")


class TasksSuite(Suite):
    """The clauses `call.*` of an agent, and `tasks.*`."""

    @tries("call.shape")
    def test_a_list_has_the_types_of_the_contract(self, ready: Framework, called: Called) -> None:
        ready.have_tasks(1)
        called.list_tasks(ready.nodes[0])  # each answer is compared with the contract

    @tries("call.deadline")
    def test_a_list_ends_in_its_time_when_the_framework_hangs(self, ready: Framework, called: Called) -> None:
        ready.hang()
        try:
            called.list_tasks(ready.nodes[0], min(SHORT_SECONDS, ready.timeout_seconds))
        except OverdueError:
            raise
        except Exception:
            return  # why does not matter here

    @tries("call.failure")
    def test_without_the_framework_a_list_is_not_complete(self, ready: Framework, called: Called) -> None:
        ready.start_tasks(1)
        ready.cut_off()
        listed = _list_or_none(called, ready)
        assert listed is None or not listed.complete, f"nothing could be asked, and the list is complete: {listed}"

    @tries("call.recovers")
    def test_after_a_failure_it_lists_again(self, ready: Framework, called: Called) -> None:
        tasks = ready.start_tasks(1)
        ready.cut_off()
        _list_or_none(called, ready)
        ready.mend()
        wait_until(
            lambda: (listed := _list_or_none(called, ready)) is not None and set(tasks) <= {t.id for t in listed.tasks},
            ready.patience_seconds,
            f"it lists {tasks} again",
        )

    @tries("call.lanes")
    def test_it_lists_while_it_acts(self, ready: Framework, called: Called) -> None:
        tasks = ready.start_tasks(1)
        (gone,) = ready.start_tasks(1)
        ready.finish((gone,))
        order = KillOrder(task_ids=(gone,), reason="conformance", force=True)

        def read() -> None:
            for _ in range(ROUNDS):
                assert set(tasks) <= {task.id for task in called.list_tasks(ready.nodes[0]).tasks}

        def act() -> None:
            for _ in range(ROUNDS):
                assert called.kill(ready.nodes[0], order).answers.keys() == {gone}

        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(read), pool.submit(act)]:
                done.result()

    @tries("tasks.all")
    def test_the_list_has_all_tasks(self, ready: Framework, called: Called) -> None:
        tasks = ready.start_tasks(2)
        listed = _complete(called, ready)
        ids = [task.id for task in listed.tasks]
        assert len(set(ids)) == len(ids), f"one is there twice: {ids}"
        assert set(tasks) <= set(ids), f"{set(tasks) - set(ids)} are missing"
        assert set(ids) <= ready.tasks(), f"{set(ids) - ready.tasks()} hold nothing"

    @tries("tasks.this-node")
    def test_another_node_has_none_of_them(self, ready: Framework, called: Called) -> None:
        ready.have_tasks(1)
        listed = called.list_tasks(NOBODYS_NODE)
        assert not listed.tasks, f"{[task.id for task in listed.tasks]} are listed for {NOBODYS_NODE.name}"

    @tries("tasks.terminating")
    def test_a_task_that_is_terminating_is_listed(self, ready: Framework, called: Called) -> None:
        (task_id,) = ready.start_tasks(1, stubborn=True)
        _complete(called, ready)
        called.kill(ready.nodes[0], KillOrder(task_ids=(task_id,), reason="conformance"))
        time.sleep(ready.settle_seconds)
        found = {task.id: task for task in called.list_tasks(ready.nodes[0]).tasks}
        if task_id not in ready.tasks():
            pytest.skip("it ended at once, stubborn or not")
        assert task_id in found, "it still holds its resources, and is not listed"
        task = found[task_id]
        is_terminating = task.state is TaskState.TERMINATING
        assert is_terminating == (task.terminating_age_seconds is not None), (
            f"since when it ends is missing, or too much: {task}"
        )

    @tries("tasks.vanished")
    def test_a_task_that_has_gone_is_not_listed(self, ready: Framework, called: Called) -> None:
        gone, stays = ready.start_tasks(2)
        _complete(called, ready)
        ready.finish((gone,))
        wait_until(
            lambda: gone not in {task.id for task in _complete(called, ready).tasks},
            ready.patience_seconds,
            f"{gone} is listed no longer",
        )
        assert stays in {task.id for task in _complete(called, ready).tasks}

    @tries("tasks.complete")
    def test_no_tasks_is_a_complete_list(self, ready: Framework, called: Called) -> None:
        assert not ready.tasks(), "it is not as it is at its start"
        listed = _complete(called, ready)
        assert not listed.tasks, listed
        ready.start_tasks(1)
        ready.cut_off()
        lacking = _list_or_none(called, ready)
        assert lacking is None or (not lacking.complete and lacking.incomplete_reason), f"why is it empty? {lacking}"

    @tries("tasks.requested")
    def test_a_request_is_in_milli_cores_and_bytes(self, ready: Framework, called: Called) -> None:
        for task in _of(called, ready, ready.start_tasks(2)):
            assert task.requested == ready.request, f"{ready.request} was asked for: {task}"

    @tries("tasks.values")
    def test_values_are_within_their_bounds(self, ready: Framework, called: Called) -> None:
        ready.have_tasks(2)
        for task in _complete(called, ready).tasks:
            shares = [task.progress, task.kept_share]
            assert all(share is None or 0 <= share <= 1 for share in shares), task
            ages = [task.age_seconds, task.terminating_age_seconds, task.ends_in_seconds, task.grace_seconds]
            assert all(age is None or age >= 0 for age in ages), task
            assert task.state is TaskState.TERMINATING or task.terminating_age_seconds is None, task
            assert task.gang is None or (task.gang.minimum >= 1 and task.gang.members >= 1), task

    @tries("tasks.application")
    def test_a_task_names_its_application_and_node(self, ready: Framework, called: Called) -> None:
        for task in _of(called, ready, ready.start_tasks(2)):
            assert task.application_id, task
            assert task.framework_node in ready.sizes(), f"the framework has {sorted(ready.sizes())}: {task}"

    @tries("tasks.measurable")
    def test_its_use_can_be_measured(self, ready: Framework, called: Called) -> None:
        ready.have_tasks(1)
        for task in _complete(called, ready).tasks:
            if task.state is TaskState.RUNNING:
                assert task.cgroups or task.processes or task.pod_uid, f"by nothing: {task}"
            assert not [each for each in task.cgroups if _is_absolute(each)], f"from the cgroup root: {task}"
            if ready.is_on_this_host:
                wrong = [process for process in task.processes if _start_ticks(process) != process.start_ticks]
                assert not wrong, f"no such process, or it started at another time: {wrong}"

    @tries("tasks.age")
    def test_a_list_is_no_older_than_its_call(self, ready: Framework, called: Called) -> None:
        ready.have_tasks(1)
        started = time.monotonic()
        age = called.list_tasks(ready.nodes[0]).age_seconds
        took = time.monotonic() - started
        assert 0 <= age <= took, f"the call took {took:.3f} s, and the age is {age}"

    @tries("tasks.age")
    def test_a_slow_answer_has_its_age(self, ready: Framework, called: Called) -> None:
        ready.slow_node(SLOW_SECONDS)
        age = called.list_tasks(ready.nodes[0]).age_seconds
        assert age >= SLOW_SECONDS, f"the framework took {SLOW_SECONDS} s to answer, and the age is {age}"


def _list_or_none(called: Called, framework: Framework) -> TaskList | None:
    """The list; `None` if the call failed."""
    try:
        return called.list_tasks(framework.nodes[0])
    except OverdueError:
        raise
    except Exception:
        return None


def _complete(called: Called, framework: Framework) -> TaskList:
    listed = called.list_tasks(framework.nodes[0])
    assert listed.complete, f"not complete: {listed.incomplete_reason or 'no reason is given'}"
    return listed


def _of(called: Called, framework: Framework, task_ids: tuple[str, ...]) -> list[Task]:
    tasks = {task.id: task for task in _complete(called, framework).tasks}
    assert set(task_ids) <= tasks.keys(), f"{set(task_ids) - tasks.keys()} are missing"
    return [tasks[task_id] for task_id in task_ids]


def _is_absolute(cgroup: str) -> bool:
    return cgroup.startswith("/") or ".." in cgroup.split("/") or not cgroup


def _start_ticks(process: Process) -> int | None:
    """Field 22 of /proc/PID/stat, counted behind the command, which may hold blanks and brackets."""
    try:
        text = (PROC_ROOT / str(process.pid) / "stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])
