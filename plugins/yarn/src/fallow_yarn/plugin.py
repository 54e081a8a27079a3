"""The hooks of one YARN cluster.

Each lane has a ResourceManager object of its own, so no connection is shared between threads. What the reads lane last
saw of the nodes is handed to the acts lane as one immutable mapping.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fallow_hookspecs import (
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
from fallow_yarn.rm.size import Size, size_within

STANDBY_PAUSE_SECONDS = 2.0


class YarnInstance:
    """One YARN cluster: its ResourceManager, and its NodeManagers on this host."""

    def __init__(self, cluster: ClusterConfig, clock: Callable[[], float] = time.monotonic) -> None:
        spec: YarnSpec = cluster.spec
        self._spec = spec
        self._clock = clock
        history = SizeHistory()
        self._reads, self._acts = _manager(spec, history), _manager(spec, history)
        self._nodes: Mapping[str, NodeReading] = {}
        self._used: dict[str, Size] = {}

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
        return TaskList(
            tasks=(),
            age_seconds=0.0,
            complete=False,
            daemons=self._daemons(node),
            incomplete_reason="this plugin lists the NodeManagers, but no single containers",
        )

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        """What an operator should know of the ResourceManager and of the NodeManagers here."""
        deadline = Deadline.after(timeout_seconds, self._clock)
        with _in_the_words_of_the_contract():
            return diagnose(self._reads, self._spec, self._own, nodes, deadline)

    def close(self) -> None:
        """Close the connections."""
        self._reads.close()
        self._acts.close()

    def _report(self, nodes: tuple[Node, ...], deadline: Deadline) -> CapacityReport:
        asked_at = self._clock()
        facts = self._reads.facts(deadline)
        reading = self._reads.read(deadline)
        self._nodes = reading.nodes
        age_seconds = self._clock() - asked_at
        rows = (row for node in nodes for row in self._rows(node, reading, facts, age_seconds))
        return CapacityReport(
            capabilities=report.capabilities(facts),
            rows=tuple(rows),
            pending=report.pending(reading.metrics, self._spec.vcore_milli),
            detail=f"ResourceManager {facts.identity.version} at {self._spec.resource_manager.admin_address}",
        )

    def _rows(self, node: Node, reading: Reading, facts: Facts, age_seconds: float) -> Iterator[ReportRow]:
        floor = report.floor_of(facts)
        for node_id in self._own(node, reading.nodes):
            entry = reading.nodes[node_id]
            if entry.used is not None:
                self._used[node_id] = entry.used
            last_used = self._used.get(node_id)
            row = report.row(node.name, entry, last_used, floor, self._spec.vcore_milli, age_seconds)
            if row is not None:
                yield row

    def _own(self, node: Node, node_ids: Mapping[str, object]) -> list[str]:
        manager_is_local = is_loopback(self._spec.resource_manager.host)
        return own_ids(node_ids, node.addresses, self._spec.node_managers, manager_is_local)

    def _publish(self, offers: Sequence[Offer], deadline: Deadline) -> CapacityReport:
        facts = self._acts.facts(deadline)
        known = self._nodes
        updates: dict[str, NodeUpdate] = {}
        answers: list[OfferAnswer] = []
        for offer in offers:
            node_id = offer.framework_node
            if offer.take_back:
                answers.append(_refused(offer, Refusal.BAD_VALUE, "this plugin does not take back yet"))
            elif node_id not in known:
                answers.append(_refused(offer, Refusal.UNKNOWN_NODE, "the ResourceManager has not listed this node"))
            else:
                updates[node_id] = NodeUpdate(
                    node_id=node_id, size=self._size(offer), custom=known[node_id].node.custom
                )
        by_id = {offer.framework_node: offer for offer in offers}
        for update in self._acts.update(tuple(updates.values()), deadline):
            offer = by_id[update.node_id]
            size = updates[update.node_id].size
            answers.append(report.answer(offer.node, update, size, offer.total, self._spec.vcore_milli))
        return CapacityReport(capabilities=report.capabilities(facts), rows=(), answers=tuple(answers))

    def _size(self, offer: Offer) -> Size:
        return size_within(
            cpu_milli=offer.total.cpu_milli,
            memory_bytes=offer.total.memory_bytes,
            vcore_milli=self._spec.vcore_milli,
        )

    def _daemons(self, node: Node) -> tuple[Daemon, ...]:
        return node_managers(self._own(node, self._nodes))


def _manager(spec: YarnSpec, history: SizeHistory) -> ResourceManager:
    addresses = spec.resource_manager
    return ResourceManager(
        client=addresses.client_address,
        admin=addresses.admin_address,
        web=addresses.web_address,
        user=spec.user,
        history=history,
    )


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
