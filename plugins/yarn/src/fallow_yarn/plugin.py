"""The hooks of one YARN cluster.

Each lane has a ResourceManager object of its own, so no connection is shared between threads. What the reads lane last
saw is handed to the acts lane as values that never change.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fallow_hookspecs import (
    Capabilities,
    CapacityReport,
    ClusterConfig,
    Daemon,
    Finding,
    Node,
    Offer,
    OfferAnswer,
    PluginError,
    Refusal,
    ReportRow,
    Resources,
    TaskList,
    TryLater,
    hookimpl,
)
from fallow_yarn import report
from fallow_yarn.config import YarnSpec
from fallow_yarn.diagnosis import diagnose
from fallow_yarn.errors import StandbyError, YarnError
from fallow_yarn.identity import is_loopback, own_ids
from fallow_yarn.ipc.deadline import Deadline
from fallow_yarn.nm.daemons import node_managers
from fallow_yarn.rm.admin import NodeUpdate
from fallow_yarn.rm.client import Facts, NodeReading, Reading, ResourceManager
from fallow_yarn.rm.history import SizeHistory
from fallow_yarn.rm.nodes import CustomResource
from fallow_yarn.rm.size import size_within

STANDBY_PAUSE_SECONDS = 2.0


def resource_manager(spec: YarnSpec, history: SizeHistory) -> ResourceManager:
    """The ResourceManager of a spec, not connected yet."""
    addresses = spec.resource_manager
    return ResourceManager(
        client=addresses.client_address,
        admin=addresses.admin_address,
        web=addresses.web_address,
        user=spec.user,
        history=history,
    )


class YarnInstance:
    """One YARN cluster: its ResourceManager, and its NodeManagers on this host."""

    def __init__(
        self,
        cluster: ClusterConfig,
        clock: Callable[[], float] = time.monotonic,
        manager: Callable[[YarnSpec, SizeHistory], ResourceManager] = resource_manager,
    ) -> None:
        spec: YarnSpec = cluster.spec
        self._spec = spec
        self._clock = clock
        history = SizeHistory()
        self._reads, self._acts = manager(spec, history), manager(spec, history)
        self._nodes: Mapping[str, NodeReading] = {}
        self._capabilities: Capabilities | None = None
        self._allocated: dict[str, Resources] = {}
        self._daemons: dict[str, tuple[Daemon, ...]] = {}

    @hookimpl
    def report_capacity(
        self, nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float
    ) -> CapacityReport:
        """Carry out the offers, or report."""
        deadline = Deadline.after(timeout_seconds, self._clock)
        with _in_the_words_of_the_contract():
            return self._publish(offers, deadline) if offers else self._report(nodes, deadline)

    @hookimpl
    def list_tasks(self, node: Node) -> TaskList:
        """The NodeManager processes of this host. Single containers are not listed."""
        node_ids = report.live(self._own(node, self._nodes), self._nodes)
        self._daemons[node.name] = daemons = node_managers(node_ids, self._daemons.get(node.name, ()))
        return TaskList(
            tasks=(),
            age_seconds=0.0,
            complete=False,
            daemons=daemons,
            incomplete_reason="this plugin lists the NodeManagers, but no single containers",
        )

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        """What an operator should know of the ResourceManager and of the NodeManagers here."""
        deadline = Deadline.after(timeout_seconds, self._clock)
        return diagnose(self._reads, self._spec, self._own, nodes, deadline)

    def close(self) -> None:
        """Close the connections."""
        self._reads.close()
        self._acts.close()

    def _report(self, nodes: tuple[Node, ...], deadline: Deadline) -> CapacityReport:
        facts = self._reads.facts(deadline)
        if not facts.identity.active:  # what it lists now is empty, and not so
            state = facts.identity.ha_state or "starting"
            raise StandbyError(f"{self._spec.resource_manager.web_address}: the ResourceManager is not active: {state}")
        asked_at = self._clock()
        reading = self._reads.read(deadline)
        age_seconds = self._clock() - asked_at
        self._nodes, self._capabilities = reading.nodes, report.capabilities(facts)
        rows = (row for node in nodes for row in self._rows(node, reading, facts, age_seconds))
        return CapacityReport(
            capabilities=self._capabilities,
            rows=tuple(rows),
            pending=report.pending(reading.metrics, self._spec.vcore_milli),
            detail=f"ResourceManager {facts.identity.version} at {self._spec.resource_manager.admin_address}",
        )

    def _rows(self, node: Node, reading: Reading, facts: Facts, age_seconds: float) -> Iterator[ReportRow]:
        floor = report.floor_of(facts)
        for node_id in self._own(node, reading.nodes):
            entry, before = reading.nodes[node_id], self._allocated.get(node_id)
            row = report.row(node.name, entry, before, floor, self._spec.vcore_milli, age_seconds)
            if row is not None:
                self._allocated[node_id] = row.allocated
                yield row

    def _own(self, node: Node, node_ids: Mapping[str, object]) -> list[str]:
        manager_is_local = is_loopback(self._spec.resource_manager.host)
        return own_ids(node_ids, node.addresses, self._spec.node_managers, manager_is_local)

    def _publish(self, offers: Sequence[Offer], deadline: Deadline) -> CapacityReport:
        capabilities = self._capabilities or report.capabilities(self._acts.facts(deadline))
        custom = self._custom(offers, deadline)
        due: dict[str, tuple[Offer, NodeUpdate]] = {}
        answers: list[OfferAnswer] = []
        for offer in offers:
            update = self._update(offer, custom)
            if isinstance(update, OfferAnswer):
                answers.append(update)
            elif update.node_id in due:
                answers.append(_refused(offer, Refusal.BAD_VALUE, "there is another offer for this node in the call"))
            else:
                due[update.node_id] = offer, update
        for taken in self._acts.update([update for _, update in due.values()], deadline):
            offer, update = due[taken.node_id]
            answers.append(report.answer(offer.node, taken, update.size, offer.total, self._spec.vcore_milli))
        return CapacityReport(capabilities=capabilities, rows=(), answers=tuple(answers))

    def _custom(self, offers: Sequence[Offer], deadline: Deadline) -> Mapping[str, tuple[CustomResource, ...]]:
        """The further resources of each node, which an update has to repeat. Where a node is new, all are asked for."""
        known = self._nodes
        if all(offer.framework_node in known for offer in offers):
            return {offer.framework_node: known[offer.framework_node].node.custom for offer in offers}
        return {node.node_id: node.custom for node in self._acts.nodes(deadline)}

    def _update(self, offer: Offer, custom: Mapping[str, tuple[CustomResource, ...]]) -> NodeUpdate | OfferAnswer:
        if offer.take_back:
            return _refused(offer, Refusal.BAD_VALUE, "this plugin does not take back yet")
        if offer.framework_node not in custom:
            return _refused(offer, Refusal.UNKNOWN_NODE, "the ResourceManager does not list this node")
        size = size_within(
            cpu_milli=offer.total.cpu_milli,
            memory_bytes=offer.total.memory_bytes,
            vcore_milli=self._spec.vcore_milli,
        )
        try:
            return NodeUpdate(node_id=offer.framework_node, size=size, custom=custom[offer.framework_node])
        except ValueError as error:
            return _refused(offer, Refusal.BAD_VALUE, str(error))


def _refused(offer: Offer, refusal: Refusal, reason: str) -> OfferAnswer:
    return OfferAnswer(
        node=offer.node, framework_node=offer.framework_node, accepted=None, refusal=refusal, reason=reason
    )


@contextmanager
def _in_the_words_of_the_contract() -> Iterator[None]:
    try:
        yield
    except StandbyError as error:
        raise TryLater(str(error), STANDBY_PAUSE_SECONDS) from error
    except YarnError as error:
        raise PluginError(str(error)) from error
