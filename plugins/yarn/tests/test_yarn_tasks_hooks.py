"""The hooks about containers: listing, ending and placing them, in each role."""

import json
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from plugins.yarn.tests import yarn_fakes as fakes
from plugins.yarn.tests.proc_fakes import NM_PID, NODE_ID, NOW_TICKS, FakeProc, container, environment_of
from plugins.yarn.tests.yarn_fakes import HOST, FakeManager, entry, instance_on, reading

from fallow_hookspecs import Application, KillAnswer, KillOrder, KillResult, Role, TaskRole, TaskState
from fallow_yarn.errors import AccessDeniedError, DeadlineError, RemoteError, UnreachableError, YarnError
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.plugin import YarnInstance
from fallow_yarn.rm.nodes import State

Serve = Callable[..., Endpoint]
ONE, TWO, THREE = container(1), container(2), container(3)
LONG_AGO = 2000  # ticks after the start of this host
ENDING = KillAnswer(result=KillResult.TERMINATING)
ETL = replace(fakes.ETL, id="application_1700000000000_0001", master=ONE)


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


def node_manager(
    serve: Serve, *states: tuple[str, str], times: int = 1, more: Mapping[str, object] | None = None
) -> str:
    """The web address of a NodeManager that lists these containers, so many times."""
    entries = [
        {"id": i, "state": state, "user": "al", "totalMemoryNeededMB": 512, "totalVCoresNeeded": 1, "nodeId": NODE_ID}
        | dict(more or {})
        for i, state in states
    ]
    text = json.dumps({"containers": {"container": entries}}).encode()

    def script(connected: socket.socket) -> None:
        while not connected.recv(4096).endswith(b"\r\n\r\n"):
            pass
        connected.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)

    return serve(*[script] * times).authority


def reported(proc: FakeProc, manager: FakeManager, *roles: Role) -> YarnInstance:
    """An instance that has reported once."""
    yarn = instance_on(proc.root, manager, *roles, clock=time.monotonic)
    yarn.report_capacity((HOST,), (), 10.0)
    return yarn


def kill(yarn: YarnInstance, *task_ids: str, force: bool = False) -> dict[str, KillAnswer]:
    order = KillOrder(task_ids=task_ids, reason="memory is short", force=force)
    return dict(yarn.kill_tasks(HOST, order, 10.0).answers)


def test_the_containers_of_the_nodes_own_node_managers_are_listed(
    proc: FakeProc, manager: FakeManager, serve: Serve
) -> None:
    address = node_manager(serve, (ONE, "RUNNING"), (TWO, "LOCALIZING"))
    manager.reading_now = reading(
        entry(http_address=address), entry("worker-2:45454", http_address="127.0.0.1:1"), entry("x:1", State.LOST)
    )
    root = proc.launch(601, ONE)
    tasks = reported(proc, manager).list_tasks(HOST, 5.0)
    assert (tasks.complete, tasks.incomplete_reason) == (True, "")
    assert [(task.id, task.state, task.processes) for task in tasks.tasks] == [
        (ONE, TaskState.RUNNING, (root,)),
        (TWO, TaskState.STARTING, ()),
    ]
    assert 0 <= tasks.age_seconds < 5


def test_a_node_manager_that_does_not_answer_makes_the_list_incomplete(proc: FakeProc, manager: FakeManager) -> None:
    manager.reading_now = reading(entry(http_address="127.0.0.1:1"))
    proc.launch(601, ONE, start=LONG_AGO)
    tasks = reported(proc, manager).list_tasks(HOST, 5.0)
    assert [task.id for task in tasks.tasks] == [ONE]
    assert not tasks.complete
    assert "127.0.0.1:1" in tasks.incomplete_reason
    assert "the NodeManager's web port" in tasks.incomplete_reason


def test_before_the_first_report_no_list_is_complete(proc: FakeProc, manager: FakeManager) -> None:
    tasks = instance_on(proc.root, manager, clock=time.monotonic).list_tasks(HOST, 5.0)
    assert (tasks.tasks, tasks.complete) == ((), False)
    assert "has not listed its NodeManagers yet" in tasks.incomplete_reason


def test_a_host_without_a_node_manager_has_a_complete_and_empty_list(proc: FakeProc, manager: FakeManager) -> None:
    manager.reading_now = reading(entry("worker-2:45454", http_address="127.0.0.1:1"))
    tasks = reported(proc, manager).list_tasks(HOST, 5.0)
    assert (tasks.tasks, tasks.complete) == ((), True)


def test_a_node_manager_whose_node_has_an_unknown_name_is_said_with_what_to_configure(
    proc: FakeProc, manager: FakeManager
) -> None:
    manager.reading_now = reading(entry("another-name:45454", http_address="127.0.0.1:1"))
    yarn = reported(proc, manager)
    yarn.list_tasks(HOST, 5.0)
    said = yarn.report_capacity((HOST,), (), 10.0).detail
    assert f"a NodeManager runs on {HOST.name} (process {NM_PID})" in said
    assert "node.addresses" in said
    named = replace(HOST, addresses=(*HOST.addresses, "another-name"))
    assert "a NodeManager runs" not in yarn.report_capacity((named,), (), 10.0).detail


def test_containers_of_a_lost_node_manager_are_listed_while_they_have_processes(
    proc: FakeProc, manager: FakeManager
) -> None:
    manager.reading_now = reading(entry(state=State.LOST))
    yarn = reported(proc, manager)
    assert yarn.list_tasks(HOST, 5.0).tasks == ()
    proc.add(700, parent=1, start=LONG_AGO, environment=environment_of(ONE))
    tasks = yarn.list_tasks(HOST, 5.0)
    assert [task.id for task in tasks.tasks] == [ONE]
    assert not tasks.complete


def test_running_applications_are_reported_with_their_masters(proc: FakeProc, manager: FakeManager) -> None:
    manager.applications_now = (ETL,)
    yarn = reported(proc, manager)
    report = yarn.report_capacity((HOST,), (), 10.0)
    assert report.applications == (
        Application(
            id=ETL.id,
            name="etl",
            user="al",
            queue="root.batch",
            kind="SPARK",
            priority=3,
            progress=0.25,
            master_task_ids=(ONE,),
        ),
    )
    assert report.capabilities.ends_single_tasks
    assert report.capabilities.ends_gracefully
    assert report.capabilities.reports_progress


def test_the_masters_of_the_report_are_those_of_the_list(proc: FakeProc, manager: FakeManager, serve: Serve) -> None:
    address = node_manager(serve, (ONE, "RUNNING"), (TWO, "RUNNING"))
    manager.reading_now = reading(entry(http_address=address))
    manager.applications_now = (replace(ETL, master=TWO),)
    tasks = reported(proc, manager).list_tasks(HOST, 5.0).tasks
    assert {task.id: task.role for task in tasks} == {ONE: TaskRole.WORKER, TWO: TaskRole.MASTER}


def test_an_opportunistic_container_counts_from_its_start_on(
    proc: FakeProc, manager: FakeManager, serve: Serve
) -> None:
    opportunistic = {"executionType": "OPPORTUNISTIC"}
    address = node_manager(serve, (ONE, "SCHEDULED"), (TWO, "RUNNING"), (THREE, "PAUSED"), more=opportunistic)
    manager.reading_now = reading(entry(http_address=address))
    tasks = reported(proc, manager).list_tasks(HOST, 5.0).tasks
    assert [(task.id, task.opportunistic, task.state) for task in tasks] == [
        (TWO, True, TaskState.RUNNING),
        (THREE, True, TaskState.RUNNING),
    ]


def test_applications_that_cannot_be_read_stay_as_they_were_and_fail_no_report(
    proc: FakeProc, manager: FakeManager
) -> None:
    manager.applications_now = (ETL,)
    yarn = reported(proc, manager)
    manager.applications_failure = RemoteError("HTTP 500: broken")
    report = yarn.report_capacity((HOST,), (), 10.0)
    assert [application.id for application in report.applications] == [ETL.id]
    assert report.rows
    assert "the applications are those of an earlier report: HTTP 500: broken" in report.detail


def test_in_both_roles_what_may_not_be_signalled_here_is_ended_through_the_resource_manager(
    proc: FakeProc, manager: FakeManager, serve: Serve
) -> None:
    address = node_manager(serve, (ONE, "RUNNING"), (TWO, "LOCALIZING"))
    manager.reading_now = reading(entry(http_address=address))
    answers = kill(reported(proc, manager), ONE, TWO, THREE, force=True)
    assert {i: answer.result for i, answer in answers.items()} == {
        ONE: KillResult.TERMINATING,
        TWO: KillResult.FAILED,
        THREE: KillResult.ALREADY_GONE,
    }
    assert manager.signalled == [(ONE, True)]


def test_the_controller_looks_at_no_process_of_its_own_host(proc: FakeProc, manager: FakeManager) -> None:
    proc.launch(601, ONE)
    answers = kill(reported(proc, manager, Role.CONTROLLER), ONE, "no container")
    assert answers == {ONE: ENDING, "no container": KillAnswer(result=KillResult.NO_ACCESS)}
    assert manager.signalled == [(ONE, False)]


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (AccessDeniedError("alice may not"), [ONE, TWO, THREE]),
        (RemoteError("absent container"), [ONE, TWO, THREE]),
        (UnreachableError("no connection"), [ONE]),
        (DeadlineError("too late"), [ONE]),
    ],
)
def test_a_refusal_is_each_containers_own_and_a_resource_manager_that_is_away_is_asked_once(
    proc: FakeProc, manager: FakeManager, error: YarnError, asked: list[str]
) -> None:
    manager.signal_failures[ONE] = error
    answers = kill(reported(proc, manager, Role.CONTROLLER), ONE, TWO, THREE)
    assert answers[ONE].result is KillResult.NO_ACCESS
    assert answers[ONE].reason == f"the ResourceManager does not terminate it either: {error}"
    assert [container_id for container_id, _ in manager.signalled] == asked
    others = KillResult.TERMINATING if len(asked) > 1 else KillResult.NO_ACCESS
    assert {answers[TWO].result, answers[THREE].result} == {others}


def test_places_are_told_for_the_containers_of_the_list(proc: FakeProc, manager: FakeManager, serve: Serve) -> None:
    manager.reading_now = reading(entry(http_address=node_manager(serve, (ONE, "RUNNING"))))
    yarn = reported(proc, manager)
    root = proc.launch(601, ONE)
    proc.launch(701, TWO, start=NOW_TICKS + 1)  # after the list was asked for
    yarn.list_tasks(HOST, 5.0)
    (place,) = yarn.set_cgroup_parent(HOST, "batch").tasks
    assert (place.task_id, place.movable) == (ONE, (root,))
