"""The conformance suite of the YARN plugin against a real ResourceManager and NodeManager, in process and through a
copilot."""

from collections.abc import Callable, Collection, Iterator

import pytest
from tests.e2e.yarn import rest
from tests.e2e.yarn.application import containers_running
from tests.e2e.yarn.cluster import AM_MEMORY_MB, Cluster, StartCluster
from tests.e2e.yarn.config import Setup

from fallow_core.cli import through_copilot
from fallow_hookspecs.testing import AgentSuite, ControllerSuite
from fallow_hookspecs.testing.calling import Opener
from fallow_yarn.model.size import Size
from fallow_yarn.testing.framework import Running, YarnFramework, wired

SIZE = Size(4096, 8)
PATIENCE_SECONDS = 30.0


@pytest.fixture(scope="module")
def fallow_framework(yarn_cluster: StartCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnFramework]:
    setup = Setup(memory_mb=SIZE.memory_mb, vcores=SIZE.vcores, heartbeat_ms=200)
    cluster = yarn_cluster(setup)
    with wired(running(cluster), tmp_path_factory.mktemp("ends"), PATIENCE_SECONDS) as framework:
        yield framework


def running(cluster: Cluster) -> Running:
    def submit(containers: int, memory_mb: int, vcores: int, command: str) -> Callable[[], Collection[str]]:
        application = cluster.submit(containers, memory_mb, vcores, command)
        return lambda: containers_running(application)

    node = cluster.nms["nm1"]
    return Running(
        client=cluster.rm.client,
        admin=cluster.rm.admin,
        web=cluster.rm.web,
        user=rest.USER,
        node_id=node.node_id,
        node_web=node.web,
        node_pid=lambda: node.pid,
        size=SIZE,
        master=Size(AM_MEMORY_MB, 1),
        submit=submit,
    )


class TestController(ControllerSuite): ...


class TestAgent(AgentSuite): ...


class _ThroughCopilot:
    @pytest.fixture
    def fallow_open(self) -> Opener:
        return through_copilot.opened


class TestControllerThroughCopilot(_ThroughCopilot, ControllerSuite): ...


class TestAgentThroughCopilot(_ThroughCopilot, AgentSuite): ...
