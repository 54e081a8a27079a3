"""A NodeManager that starts again at another port: what still counts of its old id, and for how long."""

import time
from pathlib import Path

import pytest
from plugins.yarn.tests.proc_fakes import NM_PID, NODE_ID, NOW_TICKS, FakeProc, container
from plugins.yarn.tests.yarn_fakes import HOST, FakeManager, entry, instance_on, reading

from fallow_hookspecs import NodeState, ReportRow, Resources, TaskList
from fallow_yarn.nm.daemons import MAIN_CLASS
from fallow_yarn.plugin import YarnInstance

NEW_ID = "worker-1:45999"
TASK = container(1)


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


class Cluster:
    """An instance on a host whose NodeManager has been seen at its first port."""

    def __init__(self, proc: FakeProc) -> None:
        self.proc, self.manager = proc, FakeManager()
        self.ticks = NOW_TICKS
        self.yarn: YarnInstance = instance_on(proc.root, self.manager, clock=time.monotonic, ticks=lambda: self.ticks)
        proc.listen(NM_PID, 45454)
        self.knows(NODE_ID)

    def knows(self, *node_ids: str) -> None:
        """The ResourceManager lists these, all of them RUNNING, and is asked; then this host is looked at."""
        self.manager.reading_now = reading(*(entry(node_id, http_address="") for node_id in node_ids))
        self.rows()
        self.tasks()

    def rows(self) -> dict[str, ReportRow]:
        return {row.framework_node: row for row in self.yarn.report_capacity((HOST,), (), 10.0).rows}

    def tasks(self) -> TaskList:
        self.ticks += 100
        return self.yarn.list_tasks(HOST, 10.0)

    def start_again(self, port: int) -> None:
        """The NodeManager ends and starts again."""
        self.proc.end(NM_PID)
        self.proc.add(NM_PID + 1, start=self.ticks + 50, command=["java", MAIN_CLASS.decode()])
        self.proc.listen(NM_PID + 1, port)


def test_the_old_id_of_a_node_manager_at_another_port_is_gone_before_the_resource_manager_says_so(
    proc: FakeProc,
) -> None:
    cluster = Cluster(proc)
    cluster.start_again(45999)
    cluster.knows(NODE_ID, NEW_ID)
    rows = cluster.rows()
    assert (rows[NODE_ID].state, rows[NODE_ID].allocated) == (NodeState.GONE, Resources(0, 0))
    assert rows[NEW_ID].state is NodeState.RUNNING


def test_the_old_id_counts_as_long_as_its_tasks_run_and_is_not_asked_for_them(proc: FakeProc) -> None:
    cluster = Cluster(proc)
    proc.launch(700, TASK, start=NOW_TICKS - 10)
    cluster.start_again(45999)
    proc.orphan(699)
    cluster.knows(NODE_ID, NEW_ID)
    listed = cluster.tasks()
    assert [(task.id, task.framework_node) for task in listed.tasks] == [(TASK, NODE_ID)]
    assert f"the web address of NodeManager {NEW_ID} is not known" in listed.incomplete_reason
    assert f"the web address of NodeManager {NODE_ID} is not known" not in listed.incomplete_reason
    proc.end(699, 700)
    assert cluster.tasks().tasks == ()


def test_a_node_manager_that_starts_again_at_its_port_is_the_same_all_the_time(proc: FakeProc) -> None:
    cluster = Cluster(proc)
    proc.end(NM_PID)
    cluster.tasks()
    assert cluster.rows()[NODE_ID].state is NodeState.RUNNING
    proc.add(NM_PID + 1, start=cluster.ticks + 50, command=["java", MAIN_CLASS.decode()])
    proc.listen(NM_PID + 1, 45454)
    cluster.tasks()
    assert cluster.rows()[NODE_ID].state is NodeState.RUNNING


def test_an_old_id_that_listens_again_counts_again(proc: FakeProc) -> None:
    cluster = Cluster(proc)
    cluster.start_again(45999)
    cluster.knows(NODE_ID, NEW_ID)
    proc.add(NM_PID + 2, start=cluster.ticks + 50, command=["java", MAIN_CLASS.decode()])
    proc.listen(NM_PID + 2, 45454)
    cluster.tasks()
    assert cluster.rows()[NODE_ID].state is NodeState.RUNNING


def test_nothing_is_called_gone_while_the_sockets_of_a_node_manager_cannot_be_read(
    proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(proc)
    cluster.start_again(45999)

    def refused(_process: Path) -> set[int]:
        raise PermissionError

    monkeypatch.setattr("fallow_yarn.nm.daemons.listening", refused)
    cluster.knows(NODE_ID, NEW_ID)
    assert cluster.rows()[NODE_ID].state is NodeState.RUNNING
