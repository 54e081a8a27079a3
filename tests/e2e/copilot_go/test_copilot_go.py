"""The copilot in Go of docs/examples, made from the .proto file, passes the suite for plugins through our client."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.e2e.copilot_go.go_queue import GO, NODE, GoQueue, built
from tests.integration.copilot_stage import build, outcome

from fallow_core.plugins import discovery
from fallow_core.plugins.instance import PluginInstance
from fallow_core.plugins.lanes import Failure, FailureKind
from fallow_hookspecs.testing import AgentSuite, ControllerSuite, Framework

pytestmark = [
    pytest.mark.skipif(GO is None, reason="needs Go: it is neither on the path nor in /usr/local/go/bin"),
    pytest.mark.timeout(600),
]

Run = Callable[..., PluginInstance]


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("go") / "copilot_go")


@pytest.fixture(scope="module")
def fallow_framework(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Framework]:
    queue = GoQueue(binary, tmp_path_factory.mktemp("suite") / "run" / "socket")
    yield queue
    assert queue.end() == 0
    assert not queue.socket.exists()


class TestController(ControllerSuite): ...


class TestAgent(AgentSuite): ...


@pytest.fixture
def run(binary: Path, tmp_path: Path) -> Iterator[Run]:
    """`run(flags)`: an instance that a queue of its own answers for; the one before is killed."""
    queues: list[GoQueue] = []
    instances: list[PluginInstance] = []

    def start(*flags: str) -> PluginInstance:
        for queue in queues:
            queue.end(signal.SIGKILL)
        queues[:] = [GoQueue(binary, tmp_path / "run" / "socket", *flags)]
        instances.append(build(discovery.load("copilot"), queues[0].spec))
        return instances[-1]

    yield start
    for instance in instances:
        outcome(instance.close(5.0))
    assert queues[0].end() == 0


def test_while_it_starts_it_asks_for_time(run: Run) -> None:
    failure = outcome(run("-starting", "1h").start_list_tasks(NODE, 10.0))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.reason) == (FailureKind.TRY_LATER, "the queue is starting")
    assert failure.retry_after_seconds is not None
    assert 3000 < failure.retry_after_seconds <= 3600


def test_an_operator_sees_it(run: Run) -> None:
    socket, who, queue = outcome(run().start_diagnose((NODE,), 10.0))
    assert "0660) in a directory of its own" in socket.detail
    assert who.detail == "plugin 'local_go' of copilot_go 1.0"
    assert queue.detail == "runs local processes"


def test_it_takes_the_place_of_one_that_was_killed(run: Run) -> None:
    instance = run()
    run()
    assert outcome(instance.start_list_tasks(NODE, 10.0)).complete
