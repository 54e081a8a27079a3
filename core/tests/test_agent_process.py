import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_agent_process import MEMORY, Started, Tasks, row
from core.tests.fake_framework import CAPACITY, GIB, FakeNode, Framework, size

from fallow_core.api import tasks as tasks_answer
from fallow_core.api.control_socket import Peer
from fallow_core.api.encoding import from_json
from fallow_core.api.explain import Explanation
from fallow_core.api.status import Status
from fallow_core.cli.render_explain import explanation_lines
from fallow_core.cli.render_status import status_lines
from fallow_core.cli.tasks import lines
from fallow_core.config.settings import with_clusters
from fallow_core.errors import ControlError, StateError
from fallow_core.model.qos_policy import QosPolicy
from fallow_core.runtime.agent import AgentProcess, of_agents
from fallow_core.runtime.standalone import Standalone
from fallow_core.state.node_grant import FILE_NAME, NodeGrant
from fallow_hookspecs import CapacityReport, Finding, Node, Offer, Role, TaskList, hookimpl

ROOT = Peer(uid=0, name="root")
GUEST = Peer(uid=4_000_000_000, name="guest")


def test_without_a_row_nobody_is_ended_for_overdraft(started: Started, tasks: Tasks) -> None:
    started.steps(20)
    assert tasks.ended == []
    assert "No such file" in started.ask(request="status")["node_grant"]


def test_a_row_that_says_so_ends_what_is_over(started: Started, tasks: Tasks) -> None:
    started.put(row())
    started.until(lambda: tasks.ended)
    started.steps(30)
    assert len(tasks.ended) == 1  # by one row no more, although it goes on saying that 2 GiB are allocated
    assert "none that was written later" in started.ask(request="status")["node_grant"]


@pytest.mark.parametrize(
    "stale", [row(ago=20.0), row(ago=-3600.0), row(may_pay=0), replace(row(), node="n2"), replace(row(), accounts={})]
)
def test_a_row_that_is_old_early_of_another_or_grants_nothing_ends_nobody(
    started: Started, tasks: Tasks, stale: NodeGrant
) -> None:
    started.put(stale)
    started.steps(20)
    assert tasks.ended == []


def test_a_bad_row_keeps_no_task_from_being_ended_under_pressure(started: Started, tasks: Tasks) -> None:
    (started.settings.state_dir / FILE_NAME).write_text("{")
    started.host.used = size(1, 9.5)
    started.until(lambda: tasks.ended)


def test_the_newest_row_of_a_stopped_account_ends_it_within_what_it_may_lose(started: Started, tasks: Tasks) -> None:
    started.put(replace(row(may_pay=2 * GIB, stopped=True), to_take_back=0))
    started.until(lambda: len(tasks.ended) == 2)


def test_no_size_is_ever_sent(started: Started, tasks: Tasks) -> None:
    started.host.used = CAPACITY
    started.steps(20)
    assert tasks.calls == []
    assert tasks.reports == 2  # at the start and when its daemons were seen: many agents ask one framework


def test_an_instance_that_reports_nothing_is_asked_for_tasks_alone(agent_folder: Path, tasks: Tasks) -> None:
    class Silent:
        @hookimpl
        def list_tasks(self) -> TaskList:
            return tasks.listing

        def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
            return ()

        def close(self) -> None:
            pass

    started = Started(agent_folder, {"etl": lambda _: Silent()})
    started.until(lambda: started.agent.evictor.tasks)
    started.steps(5)
    assert started.ask(request="status")["clusters"][0]["failing"] == {}
    started.agent.close()


def test_a_plugin_that_hangs_when_it_is_built_stops_nobody_else(agent_folder: Path, tasks: Tasks) -> None:
    def hang(_: object) -> Any:
        time.sleep(5)

    started = Started(agent_folder, {"ops": hang, "etl": tasks}, qos=QosPolicy(memory_evict=MEMORY))
    started.host.used = size(1, 9.5)
    started.until(lambda: tasks.ended)
    assert started.ask(request="status")["building"] == ["alpha/ops"]
    started.agent.close()


def test_a_plugin_that_cannot_be_built_is_shown_with_its_reason(agent_folder: Path, tasks: Tasks) -> None:
    def fail(_: object) -> Any:
        raise FileNotFoundError("/etc/ops.token")

    started = Started(agent_folder, {"ops": fail, "etl": tasks})
    started.until(lambda: started.agent.builds.failed and started.agent.evictor.tasks)
    assert "FileNotFoundError: /etc/ops.token" in started.ask(request="status")["failed"]["alpha/ops"]
    started.agent.close()


def test_only_clusters_with_the_role_of_an_agent_are_built_and_in_that_role_alone(agent_folder: Path) -> None:
    roles: list[frozenset[Role]] = []

    class Sees(Framework):
        def __init__(self, config: Any) -> None:
            super().__init__(time.monotonic)
            roles.append(config.roles)

    started = Started(agent_folder, {"etl": Sees, "far": Sees})
    here, far = started.settings.clusters
    started.agent.close()
    far = replace(far, config=replace(far.config, roles=frozenset({Role.CONTROLLER})))
    started = Started(agent_folder, {}, clusters=(here, far))
    started.until(lambda: started.agent.clusters)
    assert list(started.agent.clusters) == ["alpha/etl"]
    assert roles[-1] == {Role.AGENT}
    assert len(roles) == 1
    started.agent.close()


def test_a_reload_of_labels_and_selectors_adds_and_removes_a_cluster(started: Started) -> None:
    before = started.agent.config
    batch = [replace(before.clusters[0], node_selector={"pool": "batch"})]
    started.agent._take(with_clusters(before, batch))
    assert dict(started.agent.clusters) == {}
    why = "its nodeSelector pool=batch does not match this host's labels (none)"
    assert started.ask(request="status")["not_selected"] == {"alpha/etl": why}
    started.agent._take(with_clusters(replace(before, node_labels={"pool": "batch"}), batch))
    started.until(lambda: started.agent.clusters)
    assert started.agent.followed.node.labels == {"pool": "batch"}


def test_a_cluster_whose_file_names_the_role_of_an_agent_no_longer_is_removed(started: Started) -> None:
    before = started.agent.config
    etl = before.clusters[0]
    far = replace(etl, config=replace(etl.config, roles=frozenset({Role.CONTROLLER})))
    read = replace(with_clusters(before, [far]), named=frozenset({etl.name}))
    started.agent._take(of_agents(read))
    assert dict(started.agent.clusters) == {}


def test_two_on_one_state_directory_are_refused(started: Started) -> None:
    for kind in (AgentProcess, Standalone):
        with pytest.raises(StateError, match="is running already"):
            kind(started.settings)


def test_status_and_explain_have_what_the_commands_show(started: Started) -> None:
    started.host.used = size(1, 4)
    started.steps(2)
    status = "\n".join(status_lines(from_json(Status, started.ask(GUEST, request="status"))))
    assert "cluster alpha/etl" in status
    assert "no task is terminated for overdraft" in status
    explained = "\n".join(explanation_lines(from_json(Explanation, started.ask(GUEST, request="explain"))))
    assert "in use 4.00" in explained
    assert "nothing is due: no controller's grant is valid" in explained
    assert len(lines(from_json(tasks_answer.Tasks, started.ask(GUEST, request="tasks")))) == 4


@pytest.mark.parametrize(
    ("to_take_back", "first"),
    [(GIB, "due: the controller's ledger asks for 1.00 GiB less"), (0, "nothing is due: by the controller's ledger")],
)
def test_explain_says_what_a_controller_wants_back_and_of_whom(started: Started, to_take_back: int, first: str) -> None:
    started.put(replace(row(may_pay=0, stopped=True), to_take_back=to_take_back))
    started.until(lambda: started.agent.followed.row is not None)
    started.ask(request="switch", state="stop", scope="alpha/etl", why="maintenance")
    shown = explanation_lines(from_json(Explanation, started.ask(GUEST, request="explain")))
    assert any(line.startswith(first) for line in shown)
    text = "alpha/etl: 2.00 GiB allocated, target 1.00 GiB, may still lose 0.00 GiB; it is stopped"
    assert text in " ".join(shown)
    assert "maintenance" in " ".join(shown)


def test_a_restore_holds_over_a_restart_until_the_cluster_lends_again(started: Started, tasks: Tasks) -> None:
    assert started.ask(request="restore") == {"clusters": ("alpha/etl",)}
    started.agent.close()
    again = AgentProcess(started.settings)
    assert again.followed.switch("alpha/etl").state == "restored"
    again.close()
    started.agent = AgentProcess(started.settings)
    assert started.ask(request="switch", state="lend", scope="etl") == {"scope": "alpha/etl", "state": "lend"}
    assert started.agent.followed.switch("alpha/etl").state == "lend"


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ({"request": "adopt"}, "unknown request 'adopt'"),
        ({"request": "x"}, "unknown request"),
        ({"request": "switch", "state": "hold", "scope": "etl"}, "cannot switch to 'hold'"),
        ({"request": "switch", "state": "stop", "scope": "nobody"}, "there is no scope 'nobody'"),
    ],
)
def test_what_an_agent_cannot_do_is_refused(started: Started, request_: dict[str, Any], why: str) -> None:
    with pytest.raises(ControlError, match=why):
        started.ask(**request_)


def test_a_guest_changes_nothing(started: Started) -> None:
    with pytest.raises(ControlError, match="may not change anything"):
        started.ask(GUEST, request="restore")


def test_stop_of_an_account_here_is_heeded(started: Started) -> None:
    started.ask(request="switch", state="stop", scope="all")
    assert started.agent.followed.stopped == {"alpha/etl"}


def test_reports_that_fail_keep_nothing_from_being_listed(agent_folder: Path, tasks: Tasks) -> None:
    class Silent(Tasks):
        @hookimpl
        def report_capacity(self, nodes: tuple[Node, ...], offers: tuple[Offer, ...]) -> CapacityReport:
            raise ConnectionError("no ResourceManager")

    silent = Silent()
    silent.nodes["a1"] = FakeNode(in_force=size(8))
    started = Started(agent_folder, {"etl": silent}, qos=QosPolicy(memory_evict=MEMORY))
    started.host.used = size(1, 9.5)
    started.until(lambda: silent.ended)
    started.agent.close()
