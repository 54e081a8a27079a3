"""The hooks of one YARN cluster.

Each lane has a ResourceManager object of its own, so no connection is shared between threads. What the reads lane last
saw is handed to the acts lane as values that never change.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fallow_hookspecs import (
    Application,
    Capabilities,
    CapacityReport,
    ClusterConfig,
    Daemon,
    Finding,
    KillAnswer,
    KillOrder,
    KillOutcome,
    KillResult,
    Node,
    Offer,
    OfferAnswer,
    Placement,
    PluginError,
    ReportRow,
    Resources,
    Role,
    TaskList,
    TryLater,
    hookimpl,
)
from fallow_yarn import report
from fallow_yarn.access import Access, access
from fallow_yarn.config import YarnSpec
from fallow_yarn.ending import by_manager
from fallow_yarn.errors import StandbyError, YarnError
from fallow_yarn.identity import by_host, own_ids, superseded
from fallow_yarn.ipc.deadline import Deadline
from fallow_yarn.newest import Newest, Start
from fallow_yarn.nm.daemons import node_managers
from fallow_yarn.nm.processes import PROC_ROOT, now_ticks
from fallow_yarn.nm.tasks import NodeTasks
from fallow_yarn.places import are_local, places
from fallow_yarn.publishing import Publisher
from fallow_yarn.rm.active import ActiveManager, Lead, Manager
from fallow_yarn.rm.applications import RunningApplication
from fallow_yarn.rm.client import Facts, NodeReading, Reading, ResourceManager
from fallow_yarn.rm.history import SizeHistory
from fallow_yarn.rm.place import Place
from fallow_yarn.rm.scheduler import Metrics
from fallow_yarn.rm.size import Size, size_words

if TYPE_CHECKING:
    from fallow_yarn.lifecycle.when_empty import WhenEmpty

STANDBY_PAUSE_SECONDS = 2.0
REQUESTS_SECONDS = 30.0
"""So often it is read what each application waits for."""
MOST_APPLICATIONS = 500
"""Of more running applications that is not read: each may have thousands of requests."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What the lanes of a cluster have in common: who we are, which sizes nodes may have, and who is active."""

    access: Access
    history: SizeHistory = field(default_factory=SizeHistory)
    lead: Lead = field(default_factory=Lead)


def resource_manager(found: tuple[Place, ...], shared: Shared) -> Manager:
    """The ResourceManager at these places, be it one or the active one of several; not connected yet."""
    managers = [ResourceManager(place, shared.access, shared.history) for place in found]
    return managers[0] if len(managers) == 1 else ActiveManager(managers, shared.lead, time.monotonic)


class YarnInstance:
    """One YARN cluster: its ResourceManager, and its NodeManagers on this host."""

    def __init__(
        self,
        cluster: ClusterConfig,
        clock: Callable[[], float] = time.monotonic,
        manager: Callable[[tuple[Place, ...], Shared], Manager] = resource_manager,
        proc_root: Path = PROC_ROOT,
        ticks: Callable[[], int] = now_ticks,
    ) -> None:
        spec: YarnSpec = cluster.spec
        self._spec = spec
        self._clock = clock
        self._proc_root, self._ticks = proc_root, ticks
        found = places(spec)
        self._rules = spec.rules(manager_is_local=are_local(found))
        self._shared = shared = Shared(access(spec))
        self._reads, self._acts = manager(found, shared), manager(found, shared)
        self._nodes: Mapping[str, NodeReading] = {}
        self._ids_by_host: tuple[Mapping[str, object], Mapping[str, list[str]]] = ({}, {})
        self._capabilities: Capabilities | None = None
        self._start: Start | None = None
        self._newest = Newest()
        self._publisher = Publisher(self._acts, spec, self._newest)
        self._roles = cluster.roles
        self._applications: tuple[Application, ...] = ()
        self._waiting: tuple[RunningApplication, ...] = ()
        self._waiting_at = -math.inf
        self._allocated: dict[str, Resources] = {}
        self._tasks: dict[str, NodeTasks] = {}
        self._daemons: dict[str, tuple[Daemon, ...]] = {}
        self._last_seen: dict[str, int] = {}
        self._superseded: dict[str, frozenset[str]] = {}
        leaves = spec.when_empty == "decommission" and Role.CONTROLLER in cluster.roles
        self._when_empty = _when_empty(spec, clock) if leaves else None

    @hookimpl
    def report_capacity(
        self, nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float
    ) -> CapacityReport:
        """Carry out the offers, or report."""
        deadline = Deadline.after(timeout_seconds, self._clock)
        with _in_the_words_of_the_contract():
            return self._publish(offers, deadline) if offers else self._report(nodes, deadline)

    @hookimpl
    def list_tasks(self, node: Node, timeout_seconds: float) -> TaskList:
        """The containers of the node's NodeManagers, and the NodeManagers. Asks this host alone."""
        deadline = Deadline.after(timeout_seconds, self._clock)
        addresses, own = self._web_addresses(node), self._own(node, self._nodes)
        masters = [task_id for application in self._applications for task_id in application.master_task_ids]
        listed = self._tasks_of(node).list(addresses, own, deadline, masters)
        before = self._daemons.get(node.name, ())
        live = report.live(own, self._nodes)
        daemons = node_managers(live, before, self._proc_root, listed.node_managers)
        self._daemons[node.name] = daemons
        self._note_listening(node, live, daemons)
        problems = listed.problems
        if self._capabilities is None:
            problems += ("the ResourceManager has not told yet which NodeManagers there are",)
        return TaskList(
            tasks=listed.tasks,
            age_seconds=listed.age_seconds,
            complete=not problems,
            daemons=daemons,
            incomplete_reason="; ".join(problems),
        )

    @hookimpl
    def kill_tasks(self, node: Node, order: KillOrder, timeout_seconds: float) -> KillOutcome:
        """Signal the containers' processes here; where that may not be, have their NodeManager do it."""
        deadline = Deadline.after(timeout_seconds, self._clock)
        if Role.AGENT in self._roles:
            answers = self._tasks_of(node).end(order, self._web_addresses(node), deadline)
        else:
            answers = {task_id: KillAnswer(result=KillResult.NO_ACCESS) for task_id in order.task_ids}
        if Role.CONTROLLER in self._roles:
            answers = by_manager(self._acts, answers, deadline, force=order.force)
        return KillOutcome(answers=answers)

    @hookimpl
    def set_cgroup_parent(self, node: Node, parent: str) -> Placement:
        """Where the containers of the newest list are. A NodeManager decides that by its own settings alone."""
        return self._tasks_of(node).placement(parent)

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        """What an operator should know of the ResourceManager and of the NodeManagers here."""
        from fallow_yarn.diagnosis import diagnose  # an agent keeps none of it in memory

        deadline = Deadline.after(timeout_seconds, self._clock)
        return diagnose(self._reads, self._spec, self._shared.access, self._own, nodes, deadline)

    def close(self) -> None:
        """Close the connections."""
        self._reads.close()
        self._acts.close()

    def _report(self, nodes: tuple[Node, ...], deadline: Deadline) -> CapacityReport:
        facts = self._reads.facts(deadline)
        if not facts.identity.active:  # what it lists now is empty, and not so
            state = facts.identity.ha_state or "starting"
            raise StandbyError(f"{self._reads.place}: the ResourceManager is not active: {state}")
        asked_at = self._clock()
        reading = self._reads.read(deadline)
        age_seconds = self._clock() - asked_at
        self._start = (self._reads.place.name, facts.identity.started_on)
        self._newest.met(self._start, reading.nodes, self._reads, deadline)
        self._nodes, self._capabilities = reading.nodes, report.capabilities(facts)
        problem = ""
        if self._when_empty is not None:
            self._when_empty.look(self._reads, reading.nodes, self._floor(facts), deadline)
            problem = self._when_empty.problem and f"; {self._when_empty.problem}"
        rows = tuple(row for node in nodes for row in self._rows(node, reading, facts, age_seconds))
        stale = self._read_applications(reading.metrics, deadline)
        own, vcore_milli = {row.framework_node for row in rows}, self._spec.vcore_milli
        largest = report.largest(reading.nodes.values(), facts)
        return CapacityReport(
            capabilities=self._capabilities,
            rows=rows,
            pending=report.pending(reading.metrics, self._waiting, vcore_milli),
            applications=self._applications,
            detail=f"ResourceManager {facts.identity.version} at {self._reads.place}"
            + ("" if largest is None else f"; containers of at most {size_words(largest)}")
            + problem
            + stale,
            largest_elsewhere=report.largest_elsewhere(reading.nodes, own, vcore_milli),
        )

    def _rows(self, node: Node, reading: Reading, facts: Facts, age_seconds: float) -> Iterator[ReportRow]:
        floor, left = self._floor(facts), self._when_empty
        parked, offered = (left.parked, left.offered) if left is not None else (frozenset(), {})
        for node_id in own_ids(by_host(parked), node, self._rules) if parked else ():
            told = offered.get(node_id)
            yield report.parked_row(node.name, node_id, told, floor, self._spec.vcore_milli, age_seconds)
        for node_id in self._own(node, reading.nodes):
            if node_id in parked:
                continue
            entry, before = reading.nodes[node_id], self._allocated.get(node_id)
            is_superseded = node_id in self._superseded.get(node.name, ())
            row = report.row(
                node.name, entry, before, floor, self._spec.vcore_milli, age_seconds, is_superseded=is_superseded
            )
            if row is not None:
                self._allocated[node_id] = row.allocated
                yield row

    def _floor(self, facts: Facts) -> Size:
        return Size(0, 0) if self._spec.when_empty == "zero" else report.floor_of(facts)

    def _own(self, node: Node, node_ids: Mapping[str, object]) -> list[str]:
        indexed, ids_by_host = self._ids_by_host
        if indexed is not node_ids:
            ids_by_host = by_host(node_ids)
            self._ids_by_host = (node_ids, ids_by_host)
        return own_ids(ids_by_host, node, self._rules)

    def _publish(self, offers: Sequence[Offer], deadline: Deadline) -> CapacityReport:
        capabilities = self._capabilities or report.capabilities(self._acts.facts(deadline))
        if self._start is not None:
            self._publisher.met(self._start)
        answered: tuple[OfferAnswer, ...] = ()
        if self._when_empty is not None:
            offers, answered = self._when_empty.taken(self._acts, offers, deadline)
        answers = self._publisher.publish(offers, capabilities, self._nodes, deadline)
        return CapacityReport(capabilities=capabilities, rows=(), answers=answered + answers)

    def _read_applications(self, metrics: Metrics, deadline: Deadline) -> str:
        """Read the applications; why they could not be, which leaves those of before.

        What they wait for is read with them once in a while: it is most of the page where much waits.
        """
        waits = metrics.pending_containers != 0
        is_time = self._clock() - self._waiting_at >= REQUESTS_SECONDS
        requests = waits and is_time and len(self._applications) <= MOST_APPLICATIONS
        try:
            found = self._reads.applications(deadline, requests=requests)
        except YarnError as error:
            return f"; the applications are those of an earlier report: {error}"
        self._applications = report.applications(found)
        if requests:
            self._waiting, self._waiting_at = found, self._clock()
        elif not waits:
            self._waiting = ()
        return ""

    def _tasks_of(self, node: Node) -> NodeTasks:
        tasks = NodeTasks(self._shared.access, self._spec.vcore_milli, self._clock, self._ticks, self._proc_root)
        return self._tasks.setdefault(node.name, tasks)

    def _web_addresses(self, node: Node) -> dict[str, str]:
        """Where the NodeManagers of a node answer that are not gone."""
        known, gone = self._nodes, self._superseded.get(node.name, ())
        live = (node_id for node_id in report.live(self._own(node, known), known) if node_id not in gone)
        return {node_id: known[node_id].node.http_address for node_id in live}

    def _note_listening(self, node: Node, own: Sequence[str], daemons: Sequence[Daemon]) -> None:
        """Tell which ids of a node have a successor; unless one has sockets that cannot be read, and may be any."""
        if any(daemon.framework_node is None for daemon in daemons):
            return
        listening = {d.framework_node: d.process.start_ticks for d in daemons if d.framework_node is not None}
        now = self._ticks()
        self._last_seen.update(dict.fromkeys(listening, now))
        self._superseded[node.name] = superseded(
            listening, {node_id: self._last_seen[node_id] for node_id in own if node_id in self._last_seen}
        )


def _when_empty(spec: YarnSpec, clock: Callable[[], float]) -> "WhenEmpty":
    from fallow_yarn.lifecycle.when_empty import WhenEmpty  # an agent keeps none of it in memory

    return WhenEmpty(spec, clock)


@contextmanager
def _in_the_words_of_the_contract() -> Iterator[None]:
    try:
        yield
    except StandbyError as error:
        raise TryLater(str(error), STANDBY_PAUSE_SECONDS) from error
    except YarnError as error:
        raise PluginError(str(error)) from error
