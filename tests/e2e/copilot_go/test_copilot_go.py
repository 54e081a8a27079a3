"""The copilot in Go of docs/examples, built from the .proto file, answers core's client as the contract says."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.copilot_stage import ROOT, build, outcome, wait_for

from fallow_core.plugins import discovery
from fallow_core.plugins.instance import PluginInstance
from fallow_core.plugins.lanes import Failure, FailureKind
from fallow_hookspecs import KillOrder, KillResult, Node, NodeState, Offer, Process, Refusal, Resources, TaskState

EXAMPLE = ROOT / "docs" / "examples" / "copilot_go"
PROTO = ROOT / "hookspecs" / "src" / "fallow_hookspecs" / "copilot" / "v0"
GO = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
NODE = Node(name="worker-1")
TASK = Resources(500, 64 << 20)

pytestmark = [
    pytest.mark.skipif(GO is None, reason="needs Go: it is neither on the path nor in /usr/local/go/bin"),
    pytest.mark.timeout(600),
]

Start = Callable[..., PluginInstance]


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, built in a copy of its folder."""
    assert GO is not None
    folder = tmp_path_factory.mktemp("go") / "copilot_go"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("copilotpb"))
    environment = {
        **os.environ,
        "PATH": f"{Path(GO).parent}{os.pathsep}{os.environ['PATH']}",
        "PROTOC": f"{sys.executable} -m grpc_tools.protoc",
    }
    for command in (["sh", "generate.sh", str(PROTO)], [GO, "vet", "./..."], [GO, "build", "-o", "copilot_go", "."]):
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "copilot_go"


@pytest.fixture
def start(binary: Path, tmp_path: Path) -> Iterator[Start]:
    """`start(flags)`: an instance that the copilot answers for; all tasks of it end with the test."""
    processes: list[subprocess.Popen[bytes]] = []
    instances: list[PluginInstance] = []
    socket = tmp_path / "run" / "socket"

    def run(*flags: str) -> PluginInstance:
        for process in processes:
            process.kill()
            process.wait(10)
        processes.append(subprocess.Popen([str(binary), "-socket", str(socket), *flags]))
        instances.append(build(discovery.load("copilot"), {"socket": str(socket)}))
        return instances[-1]

    yield run
    for instance in instances:
        outcome(instance.close(5.0))
    processes[-1].terminate()
    assert processes[-1].wait(10) == 0
    assert not socket.exists()


def offered(instance: PluginInstance, tasks: int) -> Any:
    total = Resources(tasks * TASK.cpu_milli, tasks * TASK.memory_bytes)
    offers = (
        Offer(node=NODE.name, framework_node="local", total=total),
        Offer(node=NODE.name, framework_node="other", total=total),
    )
    return outcome(instance.start_publish((NODE,), offers, 10.0))


def test_it_runs_what_is_offered_and_reports_it(start: Start) -> None:
    instance = start("-tasks", "3")
    (row,) = outcome(instance.start_report((NODE,), 10.0)).rows
    assert (row.allocated, row.in_force, row.maximum) == (Resources(0, 0), Resources(0, 0), None)
    taken, refused = offered(instance, 2).answers
    assert (taken.accepted, taken.refusal) == (Resources(1000, 128 << 20), None)
    assert (refused.accepted, refused.refusal) == (None, Refusal.UNKNOWN_NODE)
    report = outcome(instance.start_report((NODE,), 10.0))
    (row,) = report.rows
    assert (row.node, row.framework_node, row.state) == (NODE.name, "local", NodeState.RUNNING)
    assert row.allocated == row.in_force == Resources(1000, 128 << 20)
    assert report.pending.total == TASK
    assert report.capabilities.cpu.take_back_charged


def test_its_tasks_are_processes_that_end_when_they_are_told_to(start: Start) -> None:
    instance = start("-command", "trap '' TERM; while :; do sleep 1; done")
    offered(instance, 2)
    first, second = outcome(instance.start_list_tasks(NODE, 10.0)).tasks
    (process,) = first.processes
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    assert process == Process(process.pid, int(fields[19]))

    gently = KillOrder(task_ids=(first.id,), reason="memory is short")
    for _ in range(2):
        assert outcome(instance.start_kill_tasks(NODE, gently, 10.0)).answers[first.id].result is KillResult.ENDING
    assert outcome(instance.start_list_tasks(NODE, 10.0)).tasks[0].state is TaskState.ENDING
    placed = outcome(instance.start_set_cgroup_parent(NODE, "batch", 10.0))
    assert {task.task_id: task.movable for task in placed.tasks} == {
        first.id: first.processes,
        second.id: second.processes,
    }

    now = KillOrder(task_ids=(first.id, "task-99"), reason="memory is short", force=True)
    answers = outcome(instance.start_kill_tasks(NODE, now, 10.0)).answers
    assert {task_id: answer.result for task_id, answer in answers.items()} == {
        first.id: KillResult.ENDING,
        "task-99": KillResult.ALREADY_GONE,
    }
    wait_for(lambda: [task.id for task in outcome(instance.start_list_tasks(NODE, 10.0)).tasks] == [second.id])
    assert not Path(f"/proc/{process.pid}").exists()


def test_while_it_starts_it_asks_for_time(start: Start) -> None:
    failure = outcome(start("-starting", "1h").start_list_tasks(NODE, 10.0))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.reason) == (FailureKind.TRY_LATER, "the queue is starting")
    assert failure.retry_after_seconds is not None
    assert 3000 < failure.retry_after_seconds <= 3600


def test_an_operator_sees_it(start: Start) -> None:
    socket, who, queue = outcome(start().start_diagnose((NODE,), 10.0))
    assert "0660) in a directory of its own" in socket.detail
    assert who.detail == "plugin 'local_go' of copilot_go 1.0"
    assert queue.detail == "runs local processes"


def test_it_takes_the_place_of_one_that_was_killed(start: Start) -> None:
    start()
    assert outcome(start().start_list_tasks(NODE, 10.0)).complete
