"""The role of an agent alone, beside an embedded and a real NodeManager: no ResourceManager is named to it."""

from collections.abc import Iterator

import pytest
from tests.e2e.yarn.protocol.clusters import Shape, Yarn
from tests.e2e.yarn.protocol.conftest import StartYarn
from tests.e2e.yarn.protocol.test_yarn_tasks import NODE, submit
from tests.e2e.yarn.rest import wait_for

from fallow_hookspecs import ClusterConfig, KillAnswer, KillOrder, KillResult, Role, TaskRole
from fallow_yarn.agent import YarnAgent
from fallow_yarn.entry import PLUGIN

ALONE = frozenset({Role.AGENT})


@pytest.fixture(scope="module")
def cluster(start_yarn: StartYarn) -> Yarn:
    return start_yarn(Shape(memory_mb=4096, vcores=8))


@pytest.fixture
def yarn(cluster: Yarn) -> Iterator[YarnAgent]:
    """It is told which of the NodeManagers of this host is meant: there may be others."""
    spec = PLUGIN.model_for(ALONE).model_validate({"nodeManagers": [cluster.nodes["nm1"].node_id]})
    made = PLUGIN.build(ClusterConfig(name="etl", roles=ALONE, spec=spec))
    assert isinstance(made, YarnAgent)
    yield made
    made.close()


def test_it_finds_its_node_manager_and_lists_and_ends_containers(cluster: Yarn, yarn: YarnAgent) -> None:
    manager = cluster.nodes["nm1"]
    app = submit(cluster)
    tasks = yarn.list_tasks(NODE, 5.0)
    assert (tasks.complete, tasks.incomplete_reason) == (True, "")
    assert [(daemon.process.pid, daemon.framework_node) for daemon in tasks.daemons] == [(manager.pid, manager.node_id)]
    workers = {task.id for task in tasks.tasks if task.role is TaskRole.WORKER}
    assert workers == app.running()
    assert all(task.processes for task in tasks.tasks)

    victim = min(workers)
    order = KillOrder(task_ids=(victim,), reason="memory of this host is short")
    assert yarn.kill_tasks(NODE, order, 5.0).answers == {victim: KillAnswer(result=KillResult.TERMINATING)}
    wait_for(lambda: app.exits() == {victim: 143}, 30, "the end")
    findings = {finding.subject: finding for finding in yarn.diagnose((NODE,), 15.0)}
    assert findings["NodeManagers of here"].ok
    assert findings[f"executor of {manager.node_id}"].ok
    assert findings[f"release of {manager.node_id}"].ok
