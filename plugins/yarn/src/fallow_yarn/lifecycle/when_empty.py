"""`whenEmpty: decommission`: removes empty nodes from the cluster until there is something to lend on them.

A node is empty while its size in force is no more than the floor, in both resources, and nothing is allocated there.
After `EMPTY_SECONDS` it is decommissioned with a grace, so that a task that starts at the last moment can finish. While
it is removed it is reported at its floor, or at less if that was offered since. An offer above the floor recommissions
it; core makes such an offer only when the capacity has been there for a while.

Only nodes that were sent an offer are removed: none is while Fallow observes.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from fallow_hookspecs import Offer, OfferAnswer, Refusal, Resources
from fallow_yarn.errors import YarnError
from fallow_yarn.lifecycle.decommissioning import Decommissioning
from fallow_yarn.lifecycle.list_file import ListFileError
from fallow_yarn.lifecycle.lists import HostLists, LifecycleError, lists_of
from fallow_yarn.lifecycle.recommissioning import recommission
from fallow_yarn.model.size import ZERO, Size, size_within
from fallow_yarn.rm.manager import Manager
from fallow_yarn.rm.nodes import ACTIVE, State
from fallow_yarn.rm.readings import NodeReading
from fallow_yarn.settings.config import YarnSpec
from fallow_yarn.settings.hadoop_conf import HadoopConfError

EMPTY_SECONDS: Final = 600.0
GRACE_SECONDS: Final = 600


class WhenEmpty:
    """The empty nodes of one cluster. `poll` is for the reads lane, and `take` for the acts lane.

    `removed`: the nodes that were removed because they were empty, once that is done. `offered`: the sizes that they
    were offered since. `problem`: why an empty node was not removed.
    """

    def __init__(self, spec: YarnSpec, clock: Callable[[], float]) -> None:
        self._spec = spec
        self._clock = clock
        self._sent: frozenset[str] = frozenset()
        self._empty_since: dict[str, float] = {}
        self._under_way: tuple[Decommissioning, frozenset[str]] | None = None
        self._floor = ZERO
        self._found: HostLists | None = None
        self.removed: frozenset[str] = frozenset()
        self.offered: Mapping[str, Resources] = {}
        self.problem = ""

    def poll(self, manager: Manager, nodes: Mapping[str, NodeReading], floor: Size) -> None:
        """Advance by one step: start the removal of nodes that have been empty long enough, or continue one."""
        self.problem, self._floor = "", floor
        due = self._due(nodes, floor)
        try:
            lists = self._lists()
            under_way = frozenset() if self._under_way is None else self._under_way[1]
            known = [nodes[node_id].node for node_id in lists.removed.read() - under_way if node_id in nodes]
            back = {node.host for node in known if node.state in ACTIVE and node.state is not State.DECOMMISSIONING}
            if back or due or self._under_way is not None:
                with lists.locked():
                    lists.removed.discard_hosts(back)
                    self._step(manager, lists, due)
            here = {node_id for node_id, reading in nodes.items() if reading.node.state in ACTIVE}
            self.removed = lists.removed.read() - here
        except (YarnError, ListFileError, HadoopConfError) as error:
            if isinstance(error, LifecycleError):
                self._under_way = None
            self.problem = f"empty nodes are not removed: {error}"

    def take(self, manager: Manager, offers: Sequence[Offer]) -> tuple[list[Offer], tuple[OfferAnswer, ...]]:
        """The offers for nodes in the cluster, and the answers to those for removed nodes.

        An offer above the floor recommissions a removed node; its NodeManager has to be started by its supervisor.
        """
        self._sent |= {offer.framework_node for offer in offers}
        known = self.removed
        inside = [offer for offer in offers if offer.framework_node not in known]
        outside = [offer for offer in offers if offer.framework_node in known]
        wanted = [offer for offer in outside if self._is_above_floor(offer)]
        accepted = {offer.framework_node: offer.total for offer in outside if offer not in wanted}
        answers = [
            OfferAnswer(node=offer.node, framework_node=offer.framework_node, accepted=offer.total)
            for offer in outside
            if offer.framework_node in accepted
        ]
        self.offered = {node_id: size for node_id, size in self.offered.items() if node_id in known} | accepted
        if wanted:
            answers += self._recommissioned(manager, wanted)
        return inside, tuple(answers)

    def _is_above_floor(self, offer: Offer) -> bool:
        total = offer.total
        size = size_within(
            cpu_milli=total.cpu_milli, memory_bytes=total.memory_bytes, vcore_milli=self._spec.vcore_milli
        )
        return size.memory_mb > self._floor.memory_mb or size.vcores > self._floor.vcores

    def _recommissioned(self, manager: Manager, offers: Sequence[Offer]) -> Iterator[OfferAnswer]:
        reason = "it was removed because it was empty, and is recommissioned now; its NodeManager has to be started"
        try:
            lists = self._lists()
            with lists.locked():
                recommission(manager, lists, {offer.framework_node.rpartition(":")[0] for offer in offers})
            self.removed = lists.removed.read()
        except (YarnError, ListFileError, HadoopConfError) as error:
            reason = f"it was removed because it was empty, and cannot be recommissioned: {error}"
        for offer in offers:
            yield OfferAnswer(
                node=offer.node,
                framework_node=offer.framework_node,
                accepted=None,
                refusal=Refusal.UNKNOWN_NODE,
                reason=reason,
            )

    def _lists(self) -> HostLists:
        if self._found is None:
            self._found = lists_of(self._spec)
        return self._found

    def _due(self, nodes: Mapping[str, NodeReading], floor: Size) -> dict[str, list[str]]:
        """The nodes that have been empty long enough, by host; without hosts on which another node is in use."""
        now = self._clock()
        empty = [node_id for node_id in self._sent if node_id in nodes and _is_empty(nodes[node_id], floor)]
        self._empty_since = {node_id: self._empty_since.get(node_id, now) for node_id in empty}
        due = {node_id for node_id, since in self._empty_since.items() if now - since >= EMPTY_SECONDS}
        hosts: dict[str, list[str]] = {}
        for node_id in due:
            hosts.setdefault(nodes[node_id].node.host, []).append(node_id)
        used = {reading.node.host for key, reading in nodes.items() if reading.node.state in ACTIVE and key not in due}
        return {host: node_ids for host, node_ids in hosts.items() if host not in used}

    def _step(self, manager: Manager, lists: HostLists, due: Mapping[str, Collection[str]]) -> None:
        if self._under_way is None and due:
            decommissioning = Decommissioning(manager, lists, sorted(due), GRACE_SECONDS, self._clock)
            decommissioning.begin()
            node_ids = frozenset(node_id for node_ids in due.values() for node_id in node_ids)
            self._under_way = decommissioning, node_ids
            lists.removed.add(node_ids)
        elif self._under_way is not None:
            decommissioning, node_ids = self._under_way
            if not node_ids & lists.removed.read():  # somebody has recommissioned them in the meantime
                self._under_way = None
            elif decommissioning.poll().done:
                lists.removed.add(node_ids)
                decommissioning.finish()
                self._under_way = None


def _is_empty(reading: NodeReading, floor: Size) -> bool:
    size = reading.in_force
    if reading.node.state is not State.RUNNING or size is None or reading.used != ZERO:
        return False
    return size.memory_mb <= floor.memory_mb and size.vcores <= floor.vcores
