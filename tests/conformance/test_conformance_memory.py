"""The correct plugin passes the suite, and nothing of the suite is skipped for it."""

import pytest
from tests.conformance.memory_framework import MemoryFramework

from fallow_hookspecs.testing import AgentSuite, ControllerSuite, Framework


@pytest.fixture
def fallow_framework() -> Framework:
    return MemoryFramework()


class TestController(ControllerSuite): ...


class TestAgent(AgentSuite): ...
