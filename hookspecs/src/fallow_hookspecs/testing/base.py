"""The common base of all suites: the clause of a test, and the instance that it calls."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, TypeVar

import pytest

from fallow_hookspecs.capacity import Node, Offer, ReportRow, Resources
from fallow_hookspecs.plugin import ClusterConfig, Role
from fallow_hookspecs.testing.calling import Called, Opener, wait_until
from fallow_hookspecs.testing.clauses import CLAUSES
from fallow_hookspecs.testing.framework import Framework

CLUSTER_NAME = "conformance"
NOBODYS_NODE = Node(name="nobodys-node", addresses=("192.0.2.250",))
"""A node on which the framework has no node of its own."""

_F = TypeVar("_F", bound=Callable[..., Any])

Open = Callable[[], AbstractContextManager[Called]]


def tries(clause: str) -> Callable[[_F], _F]:
    """Mark a test as a test of a clause. A failure is shown with the clause."""
    mark: Callable[[_F], _F] = pytest.mark.fallow_clause(CLAUSES[clause])
    return mark


class Suite:
    """Fixtures of all suites. The fixture `fallow_framework` is the author's: see `Framework`.

    `calls` makes the calls: see `Called`.
    """

    calls: type[Called] = Called

    @pytest.fixture
    def ready(self, fallow_framework: Framework) -> Iterator[Framework]:
        """The framework in its initial state: no tasks, full sizes, reachable."""
        fallow_framework.mend()
        fallow_framework.reset()
        yield fallow_framework
        fallow_framework.mend()

    @pytest.fixture
    def opened(self, ready: Framework, fallow_open: Opener) -> Open:
        """Opens an instance: `with opened() as called: ...`."""

        @contextmanager
        def opened() -> Iterator[Called]:
            with ExitStack() as stack:
                instance = stack.enter_context(fallow_open(ready.plugin, cluster_of(ready)))
                yield self.calls(instance, ready.timeout_seconds)

        return opened

    @pytest.fixture
    def called(self, ready: Framework, opened: Open) -> Iterator[Called]:
        """An open instance. With the controller role it has reported once, as in core."""
        with opened() as called:
            if Role.CONTROLLER in ready.roles and called.has("report_capacity"):
                called.report(ready.nodes)
            yield called
            ready.mend()  # before the instance is closed: it may have to say good-bye


def cluster_of(framework: Framework) -> ClusterConfig:
    """The cluster file that an instance is built from."""
    spec = framework.plugin.model_for(framework.roles).model_validate(dict(framework.spec))
    return ClusterConfig(name=CLUSTER_NAME, roles=framework.roles, spec=spec)


def rows_of(called: Called, framework: Framework) -> dict[str, ReportRow]:
    """The rows of a fresh report, by the framework's nodes."""
    return {row.framework_node: row for row in called.report(framework.nodes).rows}


def first_row(called: Called, framework: Framework) -> ReportRow:
    """The row of the framework's node on the first node, where tasks are started."""
    rows = [row for row in called.report(framework.nodes).rows if row.node == framework.nodes[0].name]
    assert rows, f"the report has no row for {framework.nodes[0].name}"
    return rows[0]


def offer_of(row: ReportRow, total: Resources) -> Offer:
    """An offer for the node of a row."""
    return Offer(node=row.node, framework_node=row.framework_node, total=total)


def smaller_by(size: Resources, units: int, row: ReportRow) -> Resources:
    """A size that is smaller by a number of units."""
    unit = row.unit
    return Resources(size.cpu_milli - units * unit.cpu_milli, size.memory_bytes - units * unit.memory_bytes)


def wait_for_size(framework: Framework, framework_node: str, size: Resources) -> None:
    """Wait until the scheduler works with this size."""
    wait_until(
        lambda: framework.sizes()[framework_node] == size,
        framework.patience_seconds,
        f"the scheduler works with {size} on {framework_node}",
    )
