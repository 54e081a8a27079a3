"""The process of a copilot: how it starts, what it refuses, how it ends, and what its end does to calls under way."""

import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.integration.copilot_stage import Copilot, lay_out, outcome, through, wait_for

from fallow_core.plugins.copilot_client import open_client
from fallow_core.plugins.lanes import Failure
from fallow_hookspecs import KillAnswer, KillOrder, KillResult, Node, PluginError
from fallow_hookspecs.copilot.status import SERVICE

NODE = Node(name="n")
ORDER = KillOrder(task_ids=("t1",), reason="memory is short")

Make = Callable[..., Copilot]


@pytest.fixture
def copilot(tmp_path: Path) -> Iterator[Make]:
    """`copilot(**spec)`: one that is not started yet."""
    site = lay_out(tmp_path / "site", "copilot_fake", "tests.integration.copilot_plugin:PLUGIN")
    made: list[Copilot] = []

    def make(**spec: Any) -> Copilot:
        made.append(Copilot(tmp_path, "copilot_fake", spec, path=(site,)))
        return made[-1]

    yield make
    for each in made:
        each.kill()


def test_its_socket_is_in_a_directory_of_its_own_closed_to_others(copilot: Make) -> None:
    started = copilot()
    started.start()
    assert stat.S_IMODE(started.socket.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(started.socket.stat().st_mode) == 0o660
    assert started.output.read_text() == (
        f"serving plugin 'copilot_fake' of fallow-copilot_fake 1.2 at {started.socket}\n"
    )


def test_it_says_that_it_is_healthy_and_ends_cleanly_when_told_to(copilot: Make) -> None:
    started = copilot()
    started.start()
    with grpc.insecure_channel(f"unix:{started.socket}") as channel:
        for service in ("", SERVICE):
            stub: Any = health_pb2_grpc.HealthStub(channel)
            answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=10)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
    assert started.terminate() == 0
    assert not started.socket.exists()
    assert "Traceback" not in started.output.read_text()


def test_it_takes_the_place_of_one_that_was_killed(copilot: Make) -> None:
    first = copilot()
    first.start()
    first.kill()
    assert first.socket.exists()
    second = copilot()
    second.start()
    assert outcome(through(second).start_list_tasks(NODE, 10.0)).complete


def test_a_kill_that_a_restart_cuts_off_is_asked_for_again(copilot: Make, tmp_path: Path) -> None:
    log = tmp_path / "log"
    started = copilot(slow_seconds=60.0, log=str(log))
    started.start()
    instance = through(started)
    call = instance.start_kill_tasks(Node(name="slow"), ORDER, 30.0)
    wait_for(log.exists)
    started.kill()
    failure = outcome(call)
    assert isinstance(failure, Failure)
    assert f"the copilot at {started.socket} cannot be reached" in failure.reason
    refused = outcome(instance.start_kill_tasks(NODE, ORDER, 30.0))
    assert isinstance(refused, Failure)
    started.start()
    answer = outcome(instance.start_kill_tasks(NODE, ORDER, 30.0))
    assert answer.answers == {"t1": KillAnswer(result=KillResult.TERMINATING)}


def test_a_slow_read_keeps_no_act_waiting(copilot: Make, tmp_path: Path) -> None:
    log = tmp_path / "log"
    started = copilot(slow_seconds=60.0, log=str(log))
    started.start()
    instance = through(started)
    reading = instance.start_list_tasks(Node(name="slow"), 30.0)
    wait_for(log.exists)
    answer = outcome(instance.start_kill_tasks(NODE, ORDER, 10.0))
    assert answer.answers["t1"].result is KillResult.TERMINATING
    assert reading is not None
    assert not reading.done


def test_a_call_whose_time_is_over_before_it_was_begun_is_never_begun(copilot: Make, tmp_path: Path) -> None:
    log = tmp_path / "log"
    started = copilot(slow_seconds=2.0, log=str(log))
    started.start()
    client: Any = open_client(str(started.socket), None)
    try:
        for seconds in (1.0, 0.1, 0.1):  # the first one is begun, and those after it wait for it in their lane
            with pytest.raises(PluginError, match=f"did not answer within {seconds:g} s"):
                client.kill_tasks(node=Node(name="slow"), order=ORDER, timeout_seconds=seconds)
        assert client.kill_tasks(node=NODE, order=ORDER, timeout_seconds=20.0).answers
    finally:
        client.close()
    assert log.read_text() == "begun\n"


def test_it_ends_when_told_to_whatever_the_plugin_does(copilot: Make, tmp_path: Path) -> None:
    log = tmp_path / "log"
    started = copilot(slow_seconds=600.0, log=str(log))
    started.start()
    client: Any = open_client(str(started.socket), None)

    def ask() -> None:
        with pytest.raises(PluginError):
            client.list_tasks(node=Node(name="slow"), timeout_seconds=60.0)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_for(log.exists)
    assert started.process is not None
    started.process.terminate()
    assert started.process.wait(20) == 0
    asking.join(10)
    assert not asking.is_alive()
    client.close()
