from dataclasses import replace

import pytest
from core.tests.fake_agent import task
from core.tests.qos_values import GIB

from fallow_core.agent.eviction.task_join import leading_processes, observed_tasks, unsure
from fallow_core.ledger.rows import RowKey
from fallow_core.model.listed import ListedTasks
from fallow_core.model.sample import NodeSample, Usage
from fallow_core.model.task import ObservedTask, TaskKey, TaskUsage
from fallow_core.planner.observations import task_sums
from fallow_hookspecs import Application, Process, Resources, Task, TaskState


def of(*tasks: Task) -> ListedTasks:
    return ListedTasks(tasks=tasks, measured_at=90.0, complete=True)


def application(name: str, *masters: str) -> Application:
    return Application(id="app", name=name, user="u", queue="q", kind="spark", master_task_ids=masters)


def seen(lists: dict[str, ListedTasks], applications: dict[str, list[Application]]) -> dict[TaskKey, ObservedTask]:
    return {task.key: task for task in observed_tasks("n1", lists, applications, {})}


def test_applications_are_joined_by_cluster_and_id() -> None:
    lists = {"y/a": of(task("t"), task("other", application_id="app2")), "y/b": of(task("t"))}
    found = seen(lists, {"y/a": [application("of a")], "y/b": [application("of b")]})
    names = {key: each.application.name if each.application else None for key, each in found.items()}
    assert names == {
        TaskKey("y/a", "t"): "of a",
        TaskKey("y/a", "other"): None,
        TaskKey("y/b", "t"): "of b",
    }


def test_a_master_is_one_by_the_word_of_the_node_or_of_its_own_cluster() -> None:
    lists = {"y/a": of(task("t"), task("by role", master=True)), "y/b": of(task("t"))}
    found = seen(lists, {"y/a": [application("x")], "y/b": [application("x", "t")]})
    assert {key for key, each in found.items() if each.is_master} == {TaskKey("y/a", "by role"), TaskKey("y/b", "t")}


def test_usage_is_joined_by_cluster_and_task() -> None:
    usage = TaskUsage(measured_at=91.0, cpu_milli=500, memory_bytes=GIB)
    lists = {"y/a": of(task("t")), "y/b": of(task("t"))}
    found = observed_tasks("n1", lists, {}, {TaskKey("y/b", "t"): usage})
    assert {each.cluster: each.usage for each in found} == {"y/a": None, "y/b": usage}
    assert {(each.node, each.measured_at) for each in found} == {("n1", 90.0)}


def test_leading_processes_are_those_of_tasks_that_have_any() -> None:
    lists = {"y/a": of(task("t", Process(7, 1), Process(8, 1)), task("starting"))}
    assert leading_processes(lists) == {TaskKey("y/a", "t"): (Process(7, 1), Process(8, 1))}


def test_requests_are_summed_by_node_of_the_framework_and_count_termination_tasks() -> None:
    lists = {
        "y/a": of(task("t"), task("termination", state=TaskState.TERMINATING), task("elsewhere", framework_node="nm2")),
        "y/b": of(task("t", requested=Resources(3000, 2 * GIB))),
    }
    assert {key: sums.requested for key, sums in task_sums(seen(lists, {}).values()).items()} == {
        RowKey("n1", "y/a", "nm"): Resources(2000, 2 * GIB),
        RowKey("n1", "y/a", "nm2"): Resources(1000, GIB),
        RowKey("n1", "y/b", "nm"): Resources(3000, 2 * GIB),
    }


@pytest.mark.parametrize(
    ("unattributed", "why"),
    [
        (Resources(50, 50), ""),
        (Resources(51, 0), "5 % of the cpu in use is batch of no known task"),
        (Resources(0, 700), "70 % of the memory in use is batch of no known task"),
    ],
)
def test_a_node_is_unsure_where_more_than_a_twentieth_of_its_use_belongs_to_no_task(
    unattributed: Resources, why: str
) -> None:
    used = Usage(measured_at=1.0, capacity=4000, used=1000, batch_used=900)
    assert unsure(NodeSample(cpu=used, memory=used), unattributed) == why
    assert unsure(NodeSample(), unattributed) == ""
    assert unsure(NodeSample(cpu=replace(used, used=0)), Resources(0, 0)) == ""
