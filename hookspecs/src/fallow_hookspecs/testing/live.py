"""The suites for a live cluster, which they only read. `fallow plugins check --config` runs them.

Tests that would have to change the cluster are skipped.
"""

import json
from collections.abc import Collection, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

import pytest

from fallow_hookspecs.capacity import CapacityReport, Node, Offer, Resources
from fallow_hookspecs.placement import Placement
from fallow_hookspecs.plugin import ENTRY_POINT_GROUP, Role
from fallow_hookspecs.tasks import KillOrder, KillOutcome
from fallow_hookspecs.testing.calling import Called
from fallow_hookspecs.testing.framework import Framework, UnableError
from fallow_hookspecs.testing.plugin_suite import PluginSuite
from fallow_hookspecs.testing.report_suite import ReportSuite
from fallow_hookspecs.testing.tasks_suite import TasksSuite


class LiveFramework(Framework):
    """A cluster that is known only by its configuration.

    `described` has the `plugin`, its `spec` and `roles` as in a cluster file, and the `node`: its `name` and
    `addresses`.
    """

    timeout_seconds = 10.0
    request = Resources(0, 0)

    def __init__(self, described: Mapping[str, Any]) -> None:
        (entry,) = metadata.entry_points(group=ENTRY_POINT_GROUP, name=described["plugin"])
        self.plugin = entry.load()
        self.spec = described["spec"]
        self.roles = frozenset(Role(role) for role in described["roles"])
        node = described["node"]
        self.nodes = (Node(name=node["name"], addresses=tuple(node["addresses"])),)

    def mend(self) -> None:
        """Nothing was broken."""

    def reset(self) -> None:
        """It stays as it is."""

    def have_tasks(self, count: int) -> None:
        """What runs, runs."""

    def start_tasks(self, count: int, *, stubborn: bool = False) -> tuple[str, ...]:
        """Not in a live cluster."""
        _unable()

    def finish(self, task_ids: Collection[str]) -> None:
        """Not in a live cluster."""
        _unable()

    def tasks(self) -> frozenset[str]:
        """Nobody else is asked."""
        _unable()

    def sizes(self) -> Mapping[str, Resources]:
        """Nobody else is asked."""
        _unable()

    def allocated(self) -> Mapping[str, Resources]:
        """Nobody else is asked."""
        _unable()


class OnlyAsked(Called):
    """Calls that change something are not made."""

    def publish(
        self, nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float | None = None
    ) -> CapacityReport:
        """Not in a live cluster."""
        _unable()

    def kill(self, node: Node, order: KillOrder, timeout_seconds: float | None = None) -> KillOutcome:
        """Not in a live cluster."""
        _unable()

    def place(self, node: Node, parent: str, timeout_seconds: float | None = None) -> Placement:
        """Not in a live cluster."""
        _unable()


def _unable() -> NoReturn:
    raise UnableError("a live cluster is only asked")


@pytest.fixture(scope="module")
def fallow_framework(pytestconfig: pytest.Config) -> Framework:
    """The cluster that the option describes."""
    return LiveFramework(json.loads(Path(pytestconfig.getoption("--fallow-live")).read_text(encoding="utf-8")))


class TestController(PluginSuite, ReportSuite):
    """What it reports."""

    calls = OnlyAsked


class TestAgent(TasksSuite):
    """What it lists."""

    calls = OnlyAsked
