"""The hooks of one YARN cluster, for the controller and for both roles in one process.

Each lane has a ResourceManager object of its own, so no connection is shared between threads. The reads lane hands what
it read to the acts lane as values that never change.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fallow_hookspecs import (
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
    Role,
    TaskList,
    TryLater,
    hookimpl,
)
from fallow_yarn.errors import StandbyError, YarnError
from fallow_yarn.model.size import ZERO, Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.nm.daemons import node_managers
from fallow_yarn.nm.foreign import Foreign
from fallow_yarn.nm.procfs import PROC_ROOT, now_ticks
from fallow_yarn.nm.proof import uid_of
from fallow_yarn.publishing.publisher import Publisher
from fallow_yarn.publishing.resend import Resend, Start
from fallow_yarn.reports.capabilities import capabilities
from fallow_yarn.reports.own_nodes import OwnNodes
from fallow_yarn.reports.reporter import Observation, Reporter
from fallow_yarn.rm.active import active_facts
from fallow_yarn.rm.connect import Shared, resource_manager
from fallow_yarn.rm.manager import Manager
from fallow_yarn.rm.readings import Facts, floor_of, live
from fallow_yarn.security.access import access
from fallow_yarn.settings.config import YarnSpec
from fallow_yarn.settings.rm_addresses import RmAddresses, are_local, rm_addresses
from fallow_yarn.tasks.node_tasks import NodeTasks
from fallow_yarn.tasks.rm_termination import terminate_by_manager

if TYPE_CHECKING:
    from fallow_yarn.lifecycle.when_empty import WhenEmpty

STANDBY_PAUSE_SECONDS = 2.0


class YarnInstance:
    """One YARN cluster: its ResourceManager, and its NodeManagers on this host."""

    def __init__(
        self,
        cluster: ClusterConfig,
        clock: Callable[[], float] = time.monotonic,
        manager: Callable[[tuple[RmAddresses, ...], Shared], Manager] = resource_manager,
        proc_root: Path = PROC_ROOT,
        ticks: Callable[[], int] = now_ticks,
    ) -> None:
        spec: YarnSpec = cluster.spec
        self._spec = spec
        self._clock = clock
        self._proc_root, self._ticks = proc_root, ticks
        self._roles = cluster.roles
        self._node_manager_uid = uid_of(spec.node_manager_user) if Role.AGENT in cluster.roles else None
        found = rm_addresses(spec)
        self._shared = shared = Shared(access(spec))
        self._reads, self._acts = manager(found, shared), manager(found, shared)
        self._own = OwnNodes(spec.rules(manager_is_local=are_local(found)))
        self._reporter = Reporter(self._reads, spec.vcore_milli, self._own, clock)
        self._resend = Resend()
        self._publisher = Publisher(self._acts, spec, self._resend)
        self._capabilities: Capabilities | None = None
        self._start: Start | None = None
        self._tasks: dict[str, NodeTasks] = {}
        self._daemons: dict[str, tuple[Daemon, ...]] = {}
        self._foreign: dict[str, Foreign] = {}
        removes = spec.when_empty == "decommission" and Role.CONTROLLER in cluster.roles
        self._when_empty = _when_empty(spec, clock) if removes else None

    @hookimpl
    def report_capacity(
        self, nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float
    ) -> CapacityReport:
        """Publish the offers, or report."""
        deadline = Deadline.after(timeout_seconds, self._clock)
        with _errors_of_the_contract():
            return self._publish(offers, deadline) if offers else self._report(nodes, deadline)

    @hookimpl
    def list_tasks(self, node: Node, timeout_seconds: float) -> TaskList:
        """The containers of the node's NodeManagers, and the NodeManagers. Asks this host only."""
        deadline = Deadline.after(timeout_seconds, self._clock)
        readings = self._own.readings
        own, addresses = self._own.of(node, readings), self._own.web_addresses(node)
        masters = [task_id for application in self._reporter.applications for task_id in application.master_task_ids]
        listed = self._tasks_of(node).list(addresses, own, deadline, masters)
        live_ids = live(own, readings)
        before, foreign = self._daemons.get(node.name, ()), self._foreign.setdefault(node.name, Foreign())
        daemons = node_managers(live_ids, before, self._proc_root, listed.node_managers, foreign)
        self._daemons[node.name] = daemons
        self._own.note_running(node, (process.pid for process in listed.node_managers))
        self._own.note_listening(node, live_ids, daemons, self._ticks())
        problems = listed.problems
        if self._capabilities is None:
            problems += ("the ResourceManager has not listed its NodeManagers yet",)
        return TaskList(
            tasks=listed.tasks,
            age_seconds=listed.age_seconds,
            complete=not problems,
            daemons=daemons,
            incomplete_reason="; ".join(problems),
        )

    @hookimpl
    def kill_tasks(self, node: Node, order: KillOrder, timeout_seconds: float) -> KillOutcome:
        """Signal the containers' processes here; where that is not permitted, through the ResourceManager."""
        deadline = Deadline.after(timeout_seconds, self._clock)
        if Role.AGENT in self._roles:
            answers = self._tasks_of(node).terminate(order, self._own.web_addresses(node), deadline)
        else:
            answers = {task_id: KillAnswer(result=KillResult.NO_ACCESS) for task_id in order.task_ids}
        if Role.CONTROLLER in self._roles:
            answers = terminate_by_manager(self._acts, answers, deadline, force=order.force)
        return KillOutcome(answers=answers)

    @hookimpl
    def set_cgroup_parent(self, node: Node, parent: str) -> Placement:
        """Where the containers of the newest list are. A NodeManager places them by its own settings only."""
        return self._tasks_of(node).placement(parent)

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        """The findings of `fallow doctor` about the ResourceManager and the NodeManagers here."""
        from fallow_yarn.diagnosis.diagnose import diagnose  # loaded on demand: most processes never need it

        deadline = Deadline.after(timeout_seconds, self._clock)
        return diagnose(self._reads, self._spec, self._shared.access, self._own.of, nodes, deadline)

    def close(self) -> None:
        """Close the connections."""
        self._reads.close()
        self._acts.close()

    def _report(self, nodes: tuple[Node, ...], deadline: Deadline) -> CapacityReport:
        facts = active_facts(self._reads, deadline)
        asked_at = self._clock()
        reading = self._reads.read(deadline)
        age_seconds = self._clock() - asked_at
        self._start = (self._reads.addresses.name, facts.identity.started_on)
        self._resend.observe(self._start, reading.nodes, self._reads, deadline)
        self._own.readings, self._capabilities = reading.nodes, capabilities(facts)
        floor, empty = self._floor(facts), self._when_empty
        if empty is not None:
            empty.poll(self._reads, reading.nodes, floor, deadline)
        observed = Observation(
            facts=facts,
            reading=reading,
            age_seconds=age_seconds,
            floor=floor,
            removed={} if empty is None else {node_id: empty.offered.get(node_id) for node_id in empty.removed},
            problem="" if empty is None else empty.problem,
        )
        return self._reporter.report(nodes, observed, deadline)

    def _floor(self, facts: Facts) -> Size:
        return ZERO if self._spec.when_empty == "zero" else floor_of(facts)

    def _publish(self, offers: Sequence[Offer], deadline: Deadline) -> CapacityReport:
        found = self._capabilities or capabilities(self._acts.facts(deadline))
        answered: tuple[OfferAnswer, ...] = ()
        if self._when_empty is not None:
            offers, answered = self._when_empty.take(self._acts, offers, deadline)
        answers = self._publisher.publish(offers, found, self._own.readings, deadline)
        return CapacityReport(capabilities=found, rows=(), answers=answered + answers)

    def _tasks_of(self, node: Node) -> NodeTasks:
        access, vcore_milli, uid = self._shared.access, self._spec.vcore_milli, self._node_manager_uid
        tasks = NodeTasks(access, vcore_milli, self._clock, self._ticks, self._proc_root, uid)
        return self._tasks.setdefault(node.name, tasks)


def _when_empty(spec: YarnSpec, clock: Callable[[], float]) -> "WhenEmpty":
    from fallow_yarn.lifecycle.when_empty import WhenEmpty  # only clusters with whenEmpty: decommission load it

    return WhenEmpty(spec, clock)


@contextmanager
def _errors_of_the_contract() -> Iterator[None]:
    try:
        yield
    except StandbyError as error:
        raise TryLater(str(error), STANDBY_PAUSE_SECONDS) from error
    except YarnError as error:
        raise PluginError(str(error)) from error
