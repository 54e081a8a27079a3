"""The conformance suites for plugin authors (`fallow-hookspecs[testing]`): each clause of the contract has tests.

An author provides the framework, or an emulation, as a `Framework`, and subclasses a suite for each role::

    class TestController(ControllerSuite):
        @pytest.fixture(scope="class")
        def fallow_framework(self) -> Iterator[Framework]:
            with MyFramework() as framework:
                yield framework

This package must not import core or know a framework.
"""

import pytest

pytest.register_assert_rewrite(
    *(f"fallow_hookspecs.testing.{name}_suite" for name in ("plugin", "report", "offer", "tasks", "kill", "placement")),
    "fallow_hookspecs.testing.base",
    "fallow_hookspecs.testing.calling",
)

from fallow_hookspecs.testing.clauses import CLAUSES, Clause  # noqa: E402 - the modules below are rewritten first
from fallow_hookspecs.testing.framework import Framework, UnableError  # noqa: E402
from fallow_hookspecs.testing.kill_suite import KillSuite  # noqa: E402
from fallow_hookspecs.testing.offer_suite import OfferSuite  # noqa: E402
from fallow_hookspecs.testing.placement_suite import PlacementSuite  # noqa: E402
from fallow_hookspecs.testing.plugin_suite import PluginSuite  # noqa: E402
from fallow_hookspecs.testing.report_suite import ReportSuite  # noqa: E402
from fallow_hookspecs.testing.tasks_suite import TasksSuite  # noqa: E402


class ControllerSuite(PluginSuite, ReportSuite, OfferSuite):
    """All tests of an instance on the controller."""


class AgentSuite(PluginSuite, TasksSuite, KillSuite, PlacementSuite):
    """All tests of an instance on the agent."""


__all__ = ["CLAUSES", "AgentSuite", "Clause", "ControllerSuite", "Framework", "UnableError"]
