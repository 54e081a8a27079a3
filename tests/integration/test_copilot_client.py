"""The client in core against copilots that are wrong in one way; they are served in this process."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.integration.copilot_plugin import PLUGIN, Manager, Spec
from tests.integration.copilot_stage import build, outcome

from fallow_core.errors import PluginLoadError
from fallow_core.plugins import copilot_client, discovery
from fallow_core.plugins.copilot_client import open_client
from fallow_core.plugins.instance import PluginInstance
from fallow_core.plugins.lanes import Failure, FailureKind
from fallow_hookspecs import ClusterConfig, Finding, KillOrder, Node, Plugin, PluginError, Role, TaskList, hookimpl
from fallow_hookspecs.copilot import CopilotError
from fallow_hookspecs.copilot.client import Connection, MisfitError
from fallow_hookspecs.copilot.host import host
from fallow_hookspecs.copilot.server import Service

NODE = Node(name="n")

Serve = Callable[..., Path]


class ListsOnly:
    """An instance with one hook; it notes its threads."""

    def __init__(self) -> None:
        self.threads: set[str] = set()
        self.closed = threading.Event()

    @hookimpl
    def list_tasks(self, node: Node) -> TaskList:
        self.threads.add(threading.current_thread().name)
        return TaskList(tasks=(), age_seconds=0.0, complete=True)

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        return ()

    def close(self) -> None:
        self.closed.set()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "run"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def serve(directory: Path) -> Iterator[Serve]:
    """`serve(plugin, instance)`: the path of the socket."""
    services: list[Service] = []

    def start(plugin: Plugin, instance: Any) -> Path:
        for service in services:
            service.stop(0.0)
        services[:] = [Service(host(plugin, instance, distribution="fallow-x", version="7"))]
        path = directory / "socket"
        services[0].serve(f"unix:{path}")
        path.chmod(0o660)
        return path

    yield start
    for service in services:
        service.stop(0.0)


def manager() -> Manager:
    return Manager(ClusterConfig(name="x", roles=frozenset(Role), spec=Spec()))


def through(path: Path) -> PluginInstance:
    return build(discovery.load("copilot"), {"socket": str(path)})


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody starts together with Fallow here."""
    monkeypatch.setattr(copilot_client, "START_SECONDS", 0.0)
    monkeypatch.setattr(copilot_client, "DESCRIBE_SECONDS", 0.5)


def test_a_hook_that_the_copilot_does_not_have_is_never_called(serve: Serve) -> None:
    instance = through(serve(PLUGIN, ListsOnly()))
    assert instance.health().missing_hooks == ("report_capacity", "kill_tasks", "set_cgroup_parent")
    failure = outcome(instance.start_report((NODE,), 5.0))
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.NOT_IMPLEMENTED
    assert outcome(instance.start_list_tasks(NODE, 5.0)).complete


def test_a_lane_is_one_thread_at_the_copilot_too(serve: Serve) -> None:
    served = ListsOnly()
    client: Any = open_client(str(serve(PLUGIN, served)), None)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: client.list_tasks(node=NODE, timeout_seconds=10.0), range(30)))
    client.close()
    assert served.threads == {"reads"}


def test_another_api_level_is_refused(serve: Serve) -> None:
    path = serve(replace(PLUGIN, api_levels=(3, 4)), manager())
    with pytest.raises(PluginLoadError) as caught:
        through(path)
    assert "is written for API levels 3 to 4, this Fallow has level 0" in str(caught.value)


def test_a_copilot_that_is_restarted_as_another_version_is_asked_anew(serve: Serve) -> None:
    path = serve(PLUGIN, manager())
    instance = through(path)
    assert outcome(instance.start_list_tasks(NODE, 5.0)).tasks
    serve(replace(PLUGIN, api_levels=(3, 4)), manager())
    failure = outcome(instance.start_kill_tasks(NODE, KillOrder(task_ids=(), reason=""), 5.0))
    assert "is written for API levels 3 to 4" in failure.reason
    serve(PLUGIN, ListsOnly())
    failure = outcome(instance.start_kill_tasks(NODE, KillOrder(task_ids=(), reason=""), 5.0))
    assert "does not implement kill_tasks" in failure.reason
    assert "copilot_fake" in failure.reason


@pytest.mark.usefixtures("impatient")
def test_where_nobody_serves_the_error_says_so(directory: Path) -> None:
    with pytest.raises(PluginLoadError, match="the copilot does not run, or serves at another path"):
        through(directory / "socket")


@pytest.mark.usefixtures("impatient")
def test_a_socket_that_was_left_behind_is_said(directory: Path) -> None:
    path = directory / "socket"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(os.fspath(path))
    path.chmod(0o600)
    with pytest.raises(PluginLoadError, match="cannot be reached"):
        through(path)


@pytest.mark.usefixtures("impatient")
def test_what_accepts_and_says_nothing_is_said(directory: Path) -> None:
    path = directory / "socket"
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(os.fspath(path))
        mute.listen()
        path.chmod(0o600)
        with pytest.raises(PluginLoadError, match=r"did not answer within 0\.5 s"):
            through(path)


def test_a_service_that_is_no_copilot_is_said(directory: Path) -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_insecure_port(f"unix:{directory / 'socket'}")
    server.start()
    (directory / "socket").chmod(0o660)
    try:
        with pytest.raises(MisfitError, match="is not a Fallow copilot of this version"):
            open_client(str(directory / "socket"), None)
    finally:
        server.stop(None).wait()


def test_a_path_that_others_can_change_is_refused_before_anything_is_said(serve: Serve) -> None:
    path = serve(PLUGIN, manager())
    path.parent.chmod(0o777)
    with pytest.raises(PluginLoadError, match="is open to others"):
        through(path)


def test_a_path_that_is_opened_to_others_later_stops_every_call(serve: Serve) -> None:
    path = serve(PLUGIN, manager())
    client: Any = open_client(str(path), None)
    path.chmod(0o666)
    with pytest.raises(PluginError, match=r"is open to others \(mode 0666\)"):
        client.list_tasks(node=NODE, timeout_seconds=5.0)
    client.close()


def test_after_close_no_call_is_made(serve: Serve) -> None:
    client: Any = open_client(str(serve(PLUGIN, manager())), None)
    client.close()
    with pytest.raises(PluginError, match="was closed"):
        client.list_tasks(node=NODE, timeout_seconds=5.0)


def test_a_call_on_a_connection_that_was_closed_is_a_failed_call(serve: Serve) -> None:
    connection = Connection(str(serve(PLUGIN, manager())), 5.0)
    connection.close()
    with pytest.raises(PluginError, match="was restarted"):
        connection.call("ListTasks", b"", 5.0)


@pytest.mark.parametrize(
    ("instance", "said"),
    [
        (object(), "without diagnose and close"),
        (
            type("Unmarked", (ListsOnly,), {"kill_tasks": lambda self: None})(),
            "the method kill_tasks is not marked with @hookimpl",
        ),
        (type("Misspelt", (ListsOnly,), {"list_task": ListsOnly.list_tasks})(), "unknown hook 'list_task'"),
    ],
)
def test_an_instance_that_does_not_fit_is_not_served(instance: Any, said: str) -> None:
    with pytest.raises(CopilotError, match=said):
        host(PLUGIN, instance)


def test_the_instance_is_closed_when_the_copilot_ends(directory: Path) -> None:
    served = ListsOnly()
    service = Service(host(PLUGIN, served))
    service.serve(f"unix:{directory / 'socket'}")
    service.stop(0.0)
    assert served.closed.is_set()
    assert not (directory / "socket").exists()


def test_a_report_of_many_nodes_with_many_labels_fits(serve: Serve) -> None:
    labels = {f"label.example.com/number-{index}": "x" * 40 for index in range(20)}
    nodes = tuple(Node(name=f"node-{index}", labels=labels) for index in range(5000))
    client: Any = open_client(str(serve(PLUGIN, manager())), None)
    report = client.report_capacity(nodes=nodes, offers=(), timeout_seconds=30.0)
    client.close()
    assert len(report.rows) == 10_000
    assert report.rows[-1].node == "node-4999"
