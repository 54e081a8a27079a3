"""The suite of this plugin against an embedded YARN: what `fallow plugins check yarn` runs."""

import getpass
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

import pytest

from fallow_hookspecs import Role
from fallow_hookspecs.testing import AgentSuite, ControllerSuite
from fallow_yarn.embedded.application import MASTER_SIZE
from fallow_yarn.embedded.cluster import EmbeddedYarn
from fallow_yarn.embedded.settings import Settings
from fallow_yarn.model.size import Size
from fallow_yarn.testing.framework import Running, YarnFramework, wired

SIZE = Size(4096, 8)
PATIENCE_SECONDS = 10.0


@pytest.fixture(scope="module")
def fallow_framework(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnFramework]:
    """An embedded YARN with one NodeManager."""
    folder = tmp_path_factory.mktemp("yarn")
    settings = Settings(
        memory_mb=SIZE.memory_mb, vcores=SIZE.vcores, heartbeat_seconds=0.05, starting_seconds=0.0, change_seconds=0.002
    )
    with (
        EmbeddedYarn(folder / "cluster", settings) as yarn,
        wired(running(yarn), folder / "ends", PATIENCE_SECONDS) as made,
    ):
        yield made


def running(yarn: EmbeddedYarn) -> Running:
    """An embedded YARN in the words of the framework."""

    def submit(containers: int, memory_mb: int, vcores: int, command: str) -> Callable[[], Collection[str]]:
        application = yarn.submit(containers=containers, memory_mb=memory_mb, vcores=vcores, command=command)
        return lambda: application.running

    def delay(seconds: float) -> None:
        scheduler = yarn.rm.scheduler
        assert scheduler is not None  # nobody stops it
        scheduler.settings = replace(scheduler.settings, change_seconds=max(seconds, yarn.settings.change_seconds))

    node = yarn.nodes["nm1"]
    return Running(
        client=yarn.rm.client_address,
        admin=yarn.rm.admin_address,
        web=yarn.rm.web_address,
        user=getpass.getuser(),
        node_id=node.node_id,
        node_web=node.web_address,
        node_pid=lambda: node.pid,
        size=SIZE,
        master=MASTER_SIZE,
        submit=submit,
        delay=delay,
    )


class TestController(ControllerSuite):
    """The plugin as a controller."""


class TestAgent(AgentSuite):
    """The plugin as an agent."""


class TestAgentAlone(AgentSuite):
    """The plugin as an agent whose controller is elsewhere: it is told of no ResourceManager."""

    @pytest.fixture
    def fallow_framework(self, fallow_framework: YarnFramework) -> Iterator[YarnFramework]:
        """The same YARN; the plugin is told which of the NodeManagers of this host is meant."""
        before = fallow_framework.roles, fallow_framework.spec
        named = {fallow_framework.nodes[0].name: list(fallow_framework.sizes())}
        fallow_framework.roles, fallow_framework.spec = frozenset({Role.AGENT}), {"nodeManagersByNode": named}
        yield fallow_framework
        fallow_framework.roles, fallow_framework.spec = before
