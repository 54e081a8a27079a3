"""Composes the reports of one cluster from what its ResourceManager answered."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fallow_hookspecs import Application, CapacityReport, Node, ReportRow, Resources
from fallow_yarn.errors import YarnError
from fallow_yarn.model.size import Size, size_words
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.reports.capabilities import capabilities
from fallow_yarn.reports.largest import largest_container, largest_elsewhere
from fallow_yarn.reports.own_nodes import OwnNodes
from fallow_yarn.reports.pending import applications, pending, pending_by_partition, sum_of
from fallow_yarn.reports.rows import removed_row, row
from fallow_yarn.rm.applications import RunningApplication
from fallow_yarn.rm.manager import Manager
from fallow_yarn.rm.readings import Facts, Reading
from fallow_yarn.rm.scheduler import Metrics

REQUESTS_SECONDS = 30.0
"""Minimum pause between two readings of the applications' pending requests."""
MOST_APPLICATIONS = 500
"""With more running applications the pending requests are not read: each may have thousands of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the ResourceManager answered, and how old that is.

    `floor`: the smallest size of a node. `removed`: the nodes that were removed because they were empty, with the size
    that they were offered since, if any. `problem`: why an empty node was not removed.
    """

    facts: Facts
    reading: Reading
    age_seconds: float
    floor: Size
    removed: Mapping[str, Resources | None]
    problem: str = ""


class Reporter:
    """Makes the reports of one cluster. Use it from one thread. `applications`: those of the newest report."""

    def __init__(self, manager: Manager, vcore_milli: int, own: OwnNodes, clock: Callable[[], float]) -> None:
        self._manager = manager
        self._vcore_milli = vcore_milli
        self._own = own
        self._clock = clock
        self.applications: tuple[Application, ...] = ()
        self._waiting: tuple[RunningApplication, ...] = ()
        self._waiting_at = -math.inf
        self._allocated: dict[str, Resources] = {}
        self._exclusive: Mapping[str, bool] = {}

    def report(self, nodes: tuple[Node, ...], observed: Observation, deadline: Deadline) -> CapacityReport:
        """The report for these nodes. Reads the applications; those of before stay if they cannot be read."""
        facts, reading = observed.facts, observed.reading
        labels = sorted({each.node.label for each in reading.nodes.values()} - {""})
        trouble = self._read_labels(deadline) if labels else ""
        rows = tuple(row for node in nodes for row in self._rows(node, observed, has_labels=bool(labels)))
        notes = [f"ResourceManager {facts.identity.version} at {self._manager.addresses}"]
        if (largest := largest_container(reading.nodes.values(), facts)) is not None:
            notes.append(f"containers of at most {size_words(largest)}")
        notes += [self._own.unmatched(nodes), observed.problem, trouble]
        notes += [self._read_applications(reading.metrics, deadline, has_labels=bool(labels))]
        waiting = self._waiting if self._clock() - self._waiting_at < 2 * REQUESTS_SECONDS else None
        parts = pending_by_partition(reading.metrics, waiting, labels, self._vcore_milli) if labels else {}
        own = {row.framework_node for row in rows}
        return CapacityReport(
            capabilities=capabilities(facts),
            rows=rows,
            pending=sum_of(parts) if labels else pending(reading.metrics, self._waiting, self._vcore_milli),
            pending_by_partition=parts,
            applications=self.applications,
            detail="; ".join(filter(None, notes)),
            largest_elsewhere=largest_elsewhere(reading.nodes, own, self._vcore_milli),
            scheduler_start=_start(self._manager.addresses.name, facts),
        )

    def _rows(self, node: Node, observed: Observation, *, has_labels: bool) -> Iterator[ReportRow]:
        age_seconds, floor, removed = observed.age_seconds, observed.floor, observed.removed
        for node_id in self._own.matching(node, removed) if removed else ():
            yield removed_row(node.name, node_id, removed[node_id], floor, self._vcore_milli, age_seconds)
        superseded = self._own.superseded(node)
        for node_id in self._own.of(node, observed.reading.nodes):
            if node_id in removed:
                continue
            made = row(
                node.name,
                observed.reading.nodes[node_id],
                self._allocated.get(node_id),
                floor,
                self._vcore_milli,
                age_seconds,
                is_superseded=node_id in superseded,
                partitions=self._partitions(observed.reading.nodes[node_id].node.label) if has_labels else (),
            )
            if made is not None:
                self._allocated[node_id] = made.allocated
                yield made

    def _partitions(self, label: str) -> tuple[str, ...]:
        """The partitions whose requests a node with this label can serve. An unknown label counts as exclusive."""
        return (label, "") if label and not self._exclusive.get(label, True) else (label,)

    def _read_labels(self, deadline: Deadline) -> str:
        """Read which labels are exclusive, as often as pending requests; the reason if that is not known."""
        if self._exclusive and self._clock() - self._waiting_at < REQUESTS_SECONDS:
            return ""
        try:
            self._exclusive = self._manager.labels(deadline)
        except YarnError as error:
            return f"node labels count as exclusive unless it was read before that they are not: {error}"
        return ""

    def _read_applications(self, metrics: Metrics, deadline: Deadline, *, has_labels: bool) -> str:
        """Read the applications; the reason if they could not be read.

        Their requests are read every `REQUESTS_SECONDS` only: with many pending requests they are most of the page.
        """
        waits = has_labels or metrics.pending_containers != 0  # the scheduler does not count those of labels
        is_time = self._clock() - self._waiting_at >= REQUESTS_SECONDS
        requests = waits and is_time and len(self.applications) <= MOST_APPLICATIONS
        try:
            found = self._manager.applications(deadline, requests=requests)
        except YarnError as error:
            return f"the applications are those of an earlier report: {error}"
        self.applications = applications(found)
        if requests:
            self._waiting, self._waiting_at = found, self._clock()
        elif not waits:
            self._waiting = ()
        return ""


def _start(name: str, facts: Facts) -> str:
    started_on = facts.identity.started_on
    return "" if started_on is None else f"{name}@{started_on}"
