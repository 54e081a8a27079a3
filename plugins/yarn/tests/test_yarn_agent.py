"""The role of an agent alone: this host's NodeManagers are found and asked without a ResourceManager."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from plugins.yarn.tests.proc_fakes import NM, NM_PID, FakeProc, container, environment_of
from plugins.yarn.tests.yarn_fakes import HOST

from fallow_hookspecs import ClusterConfig, Daemon, Finding, KillOrder, KillResult, Node, Role, TaskState
from fallow_hookspecs.fitting import hooks_of
from fallow_yarn.agent import YarnAgent
from fallow_yarn.errors import SilentHostError
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.nm import discovery
from fallow_yarn.nm.daemons import MAIN_CLASS
from fallow_yarn.nm.procfs import TURNS
from fallow_yarn.nm.sockets import reached_at
from fallow_yarn.settings.agent_model import AgentModel

Serve = Callable[..., Endpoint]
Script = Callable[[socket.socket], None]
ONE, TWO = container(1), container(2)
LONG_AGO = 2000


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


def agent(proc: FakeProc, **settings: object) -> YarnAgent:
    cluster = ClusterConfig(name="etl", roles=frozenset({Role.AGENT}), spec=AgentModel.model_validate(settings))
    return YarnAgent(cluster, time.monotonic, proc.root)


def answering(body: object) -> Script:
    """A server that answers one request with this."""

    def script(connected: socket.socket) -> None:
        while not connected.recv(4096).endswith(b"\r\n\r\n"):
            pass
        text = json.dumps(body).encode()
        connected.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)

    return script


class NodeManager:
    """The pages of one that listens on a single port, so many times; its containers by id, with their states."""

    def __init__(
        self, serve: Serve, proc: FakeProc, pid: int = NM_PID, *, host: str = "worker-1", lists: int = 1
    ) -> None:
        self.containers: dict[str, str] = {}
        self.port = serve(self._info, *[self._list] * lists).port
        self.id = f"{host}:{self.port}"
        proc.listen(pid, self.port)

    def _info(self, connected: socket.socket) -> None:
        answering({"nodeInfo": {"id": self.id}})(connected)

    def _list(self, connected: socket.socket) -> None:
        entries = [
            {"id": i, "state": state, "totalMemoryNeededMB": 512, "totalVCoresNeeded": 1, "nodeId": self.id}
            for i, state in self.containers.items()
        ]
        answering({"containers": {"container": entries}})(connected)


def test_the_containers_of_this_hosts_node_managers_are_listed_without_a_resource_manager(
    proc: FakeProc, serve: Serve
) -> None:
    manager = NodeManager(serve, proc)
    manager.containers = {ONE: "RUNNING", TWO: "LOCALIZING"}
    root = proc.launch(601, ONE)
    tasks = agent(proc).list_tasks(HOST, 5.0)
    assert (tasks.complete, tasks.incomplete_reason) == (True, "")
    assert [(task.id, task.state, task.processes) for task in tasks.tasks] == [
        (ONE, TaskState.RUNNING, (root,)),
        (TWO, TaskState.STARTING, ()),
    ]
    assert {task.framework_node for task in tasks.tasks} == {manager.id}
    assert tasks.daemons == (Daemon(process=NM, framework_node=manager.id),)


def test_a_node_manager_that_has_told_its_id_is_not_asked_for_it_again(proc: FakeProc, serve: Serve) -> None:
    NodeManager(serve, proc, lists=3)
    yarn = agent(proc)
    assert [yarn.list_tasks(HOST, 5.0).complete for _ in range(3)] == [True] * 3


def test_a_host_without_a_node_manager_has_a_complete_and_empty_list(proc: FakeProc) -> None:
    proc.end(NM_PID)
    tasks = agent(proc).list_tasks(HOST, 5.0)
    assert (tasks.tasks, tasks.daemons, tasks.complete) == ((), (), True)


def test_a_node_manager_that_does_not_tell_its_id_makes_the_list_incomplete(proc: FakeProc, serve: Serve) -> None:
    proc.listen(NM_PID, serve(lambda connected: connected.close()).port)
    tasks = agent(proc).list_tasks(HOST, 5.0)
    assert not tasks.complete
    assert f"NodeManager process {NM_PID} has not told its id: 127.0.0.1:" in tasks.incomplete_reason


def test_one_that_listens_nowhere_yet_makes_it_incomplete_too(proc: FakeProc) -> None:
    proc.listen(NM_PID)
    assert "it listens nowhere yet" in agent(proc).list_tasks(HOST, 5.0).incomplete_reason


def test_an_id_whose_port_the_process_does_not_listen_on_is_not_believed(proc: FakeProc, serve: Serve) -> None:
    manager = NodeManager(serve, proc)
    manager.id = "worker-1:45454"
    tasks = agent(proc).list_tasks(HOST, 5.0)
    assert (tasks.daemons, tasks.complete) == ((), False)
    assert "has the id 'worker-1:45454', on whose port the process does not listen" in tasks.incomplete_reason


@pytest.mark.parametrize(
    "pretender", [{"environment": environment_of(TWO)}, {"cgroups": [f"4:cpu:/hadoop-yarn/{TWO}"]}]
)
def test_a_process_left_over_from_a_container_with_its_command_line_is_a_task_and_no_node_manager(
    proc: FakeProc, serve: Serve, pretender: dict[str, object]
) -> None:
    real = NodeManager(serve, proc)
    real.containers[TWO] = "RUNNING"
    left_over = proc.add(900, command=["java", MAIN_CLASS.decode()], **pretender)  # type: ignore[arg-type]
    NodeManager(serve, proc, 900)
    tasks = agent(proc).list_tasks(HOST, 5.0)
    assert (tasks.daemons, tasks.complete) == ((Daemon(process=NM, framework_node=real.id),), True)
    assert [task.processes for task in tasks.tasks] == [(left_over,)]


def test_one_with_many_silent_ports_is_asked_on_a_few_and_again_only_in_a_later_search(
    proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def web_of(address: str, access: object) -> None:
        asked.append(address)
        raise SilentHostError(f"{address} is silent")

    monkeypatch.setattr(discovery, "web_of", web_of)
    proc.listen(NM_PID, *range(9001, 9031))
    searching = agent(proc)
    reasons = {searching.list_tasks(HOST, 5.0).incomplete_reason for _ in range(TURNS)}
    assert asked == [f"127.0.0.1:{port}" for port in range(9001, 9009)]
    assert reasons == {f"NodeManager process {NM_PID} has not told its id: 127.0.0.1:9008 is silent"}
    searching.list_tasks(HOST, 5.0)
    searching.list_tasks(HOST, 5.0)
    assert len(asked) == 16


def test_a_process_on_the_same_port_of_another_address_does_not_replace_the_node_manager(
    proc: FakeProc, serve: Serve
) -> None:
    real = NodeManager(serve, proc)
    proc.add(900, command=["java", MAIN_CLASS.decode()], start=LONG_AGO)
    NodeManager(serve, proc, 900)
    proc.listen(900, real.port)
    tasks = agent(proc).list_tasks(HOST, 5.0)
    assert tasks.daemons == (Daemon(process=NM, framework_node=real.id),)


def test_a_node_manager_with_another_hosts_name_is_ours_only_if_the_file_names_it(proc: FakeProc, serve: Serve) -> None:
    other = NodeManager(serve, proc, host="elsewhere")
    tasks = agent(proc).list_tasks(HOST, 5.0)
    assert (tasks.daemons, tasks.complete) == ((), True)
    other = NodeManager(serve, proc, host="elsewhere")
    tasks = agent(proc, nodeManagers=[other.id]).list_tasks(HOST, 5.0)
    assert tasks.daemons == (Daemon(process=NM, framework_node=other.id),)


def test_one_that_listens_on_no_port_of_those_that_the_file_names_is_not_asked(proc: FakeProc) -> None:
    proc.listen(NM_PID, 1)
    tasks = agent(proc, nodeManagers=["worker-1:45454"]).list_tasks(HOST, 5.0)
    assert (tasks.daemons, tasks.complete) == ((), True)


def test_one_that_calls_itself_localhost_is_this_hosts(proc: FakeProc, serve: Serve) -> None:
    manager = NodeManager(serve, proc, host="localhost")
    node = Node(name="n1", addresses=("localhost", "worker-1"))
    assert agent(proc).list_tasks(node, 5.0).daemons == (Daemon(process=NM, framework_node=manager.id),)


def test_one_whose_sockets_may_not_be_read_counts_as_batch_and_what_it_lists_is_not_known(
    proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_process: Path) -> dict[int, str]:
        raise PermissionError

    monkeypatch.setattr(discovery, "listening", refused)
    tasks = agent(proc).list_tasks(HOST, 5.0)
    assert (tasks.daemons, tasks.complete) == ((Daemon(process=NM),), False)
    assert "run Fallow as root or as its user" in tasks.incomplete_reason


def test_one_that_has_just_started_is_asked_with_the_next_list(proc: FakeProc, serve: Serve) -> None:
    proc.end(NM_PID)
    yarn = agent(proc)
    yarn.list_tasks(HOST, 5.0)
    proc.add(NM_PID, command=["java", MAIN_CLASS.decode()])
    manager = NodeManager(serve, proc)
    first, second = yarn.list_tasks(HOST, 5.0), yarn.list_tasks(HOST, 5.0)
    assert (first.complete, second.complete) == (False, True)
    assert f"NodeManager {manager.id} has just started" in first.incomplete_reason


def test_what_an_ended_node_manager_left_running_is_listed(proc: FakeProc) -> None:
    proc.end(NM_PID)
    root = proc.add(700, parent=1, start=LONG_AGO, environment=environment_of(ONE))
    proc.add(701, parent=1, start=LONG_AGO, environment=environment_of(TWO, "elsewhere:1"))
    tasks = agent(proc).list_tasks(HOST, 5.0)
    assert [(task.id, task.processes) for task in tasks.tasks] == [(ONE, (root,))]
    assert not tasks.complete


def test_a_container_that_cannot_be_signalled_here_is_without_access(proc: FakeProc, serve: Serve) -> None:
    manager = NodeManager(serve, proc, lists=2)
    manager.containers = {ONE: "RUNNING"}
    yarn = agent(proc)
    yarn.list_tasks(HOST, 5.0)
    answers = yarn.kill_tasks(HOST, KillOrder(task_ids=(ONE, TWO), reason="memory is short"), 5.0).answers
    assert {i: answer.result for i, answer in answers.items()} == {
        ONE: KillResult.NO_ACCESS,
        TWO: KillResult.ALREADY_GONE,
    }


def test_an_agent_reports_nothing(proc: FakeProc) -> None:
    assert set(hooks_of(agent(proc)).implemented) == {"list_tasks", "kill_tasks", "set_cgroup_parent"}


def test_the_agent_alone_loads_nothing_of_what_talks_to_a_resource_manager() -> None:
    code = """
import sys
from fallow_hookspecs import ClusterConfig, Node, Role
from fallow_yarn.entry import PLUGIN
roles = frozenset({Role.AGENT})
yarn = PLUGIN.build(ClusterConfig(name="etl", roles=roles, spec=PLUGIN.model_for(roles).model_validate({})))
yarn.list_tasks(Node(name="n1"), 5.0)
yarn.close()
heavy = ("google", "gssapi", "xml", "fallow_yarn.rm.", "fallow_yarn.ipc.", "fallow_yarn.settings.hadoop_conf")
print(*sorted(name for name in sys.modules if name.startswith(heavy)))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def findings(proc: FakeProc, **settings: object) -> dict[str, Finding]:
    return {finding.subject: finding for finding in agent(proc, **settings).diagnose((HOST,), 5.0)}


def test_the_doctor_names_the_node_managers_and_where_they_answer(proc: FakeProc, serve: Serve) -> None:
    manager = NodeManager(serve, proc)
    found = findings(proc)
    assert (found["NodeManagers of n1"].ok, found["NodeManagers of n1"].detail) == (True, manager.id)
    assert f"process {NM_PID}, which answers at 127.0.0.1:{manager.port}" in found[f"process of {manager.id}"].detail
    assert f"settings of {manager.id}" in found


def test_the_doctor_says_what_to_do_about_one_with_another_name(proc: FakeProc, serve: Serve) -> None:
    manager = NodeManager(serve, proc, host="elsewhere")
    finding = findings(proc)["NodeManagers of n1"]
    assert finding.ok is False
    assert f"set spec.nodeManagers: [{manager.id}]" in finding.advice


def test_the_doctor_says_why_an_id_is_not_known_and_when_there_is_none(proc: FakeProc) -> None:
    proc.listen(NM_PID)
    found = findings(proc)
    assert f"process {NM_PID} has not told its id: it listens nowhere yet" in found["NodeManager"].detail
    proc.end(NM_PID)
    assert "no NodeManager runs here" in findings(proc)["NodeManagers of n1"].detail


@pytest.mark.skipif(sys.byteorder != "little", reason="addresses are written here as a little-endian host has them")
@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("0100007F", "127.0.0.1"),
        ("11020BC0", "192.11.2.17"),
        ("00000000", "127.0.0.1"),
        ("00000000000000000000000000000000", "localhost"),
        ("00000000000000000000000001000000", "::1"),
        ("0000000000000000FFFF000011020BC0", "192.11.2.17"),
    ],
)
def test_where_a_listening_process_is_reached_follows_from_its_address(address: str, host: str) -> None:
    assert reached_at(address) == host
