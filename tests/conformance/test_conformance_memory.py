"""The correct plugin passes the suite, in this process and through a copilot, and nothing is skipped for it."""

import pytest
from tests.conformance.memory_framework import MemoryFramework

from fallow_core.cli import through_copilot
from fallow_hookspecs.testing import AgentSuite, ControllerSuite, Framework
from fallow_hookspecs.testing.calling import Opener


@pytest.fixture
def fallow_framework() -> Framework:
    return MemoryFramework()


class TestController(ControllerSuite): ...


class TestAgent(AgentSuite): ...


class TestControllerThroughCopilot(ControllerSuite):
    @pytest.fixture
    def fallow_open(self) -> Opener:
        return through_copilot.opened


class TestAgentThroughCopilot(AgentSuite):
    @pytest.fixture
    def fallow_open(self) -> Opener:
        return through_copilot.opened
