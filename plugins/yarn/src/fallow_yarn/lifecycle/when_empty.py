"""`whenEmpty: decommission`: nodes that have nothing to lend and nothing to do leave the cluster until they have.

A node is empty while its scheduler works with no more than the floor, in both resources, and has nothing allocated
there. Once that has been so for `EMPTY_SECONDS` it is taken out with a grace, so that a task that starts in the last
moment ends by itself. While it is out it is told as a node at its floor, or at less if that was offered since. An offer
above the floor takes it in again, and core makes one only when capacity has been there for a while.

Only nodes that were sent an offer leave, so that none does while Fallow observes.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from fallow_hookspecs import Offer, OfferAnswer, Refusal, Resources
from fallow_yarn.config import YarnSpec
from fallow_yarn.errors import YarnError
from fallow_yarn.hadoop_conf import HadoopConfError
from fallow_yarn.ipc.deadline import Deadline
from fallow_yarn.lifecycle.decommissioning import Decommissioning
from fallow_yarn.lifecycle.list_file import ListFileError
from fallow_yarn.lifecycle.lists import LifecycleError, Lists, lists_of
from fallow_yarn.lifecycle.recommissioning import recommission
from fallow_yarn.rm.active import Manager
from fallow_yarn.rm.client import NodeReading
from fallow_yarn.rm.nodes import ACTIVE, State
from fallow_yarn.rm.size import Size, size_within

EMPTY_SECONDS: Final = 600.0
GRACE_SECONDS: Final = 600
NOTHING: Final = Size(0, 0)


class WhenEmpty:
    """The empty nodes of one cluster. `look` is for the reads lane, and `taken` for the acts lane.

    `parked`: the nodes that are out for being empty, without those on their way. `offered`: what such nodes were
    offered since. `problem`: why an empty node stays.
    """

    def __init__(self, spec: YarnSpec, clock: Callable[[], float]) -> None:
        self._spec = spec
        self._clock = clock
        self._offered: frozenset[str] = frozenset()
        self._since: dict[str, float] = {}
        self._leaving: tuple[Decommissioning, frozenset[str]] | None = None
        self._floor = NOTHING
        self._found: Lists | None = None
        self.parked: frozenset[str] = frozenset()
        self.offered: Mapping[str, Resources] = {}
        self.problem = ""

    def look(self, manager: Manager, nodes: Mapping[str, NodeReading], floor: Size, deadline: Deadline) -> None:
        """Go one step on: begin with nodes that have been empty long enough, or see how far those are that leave."""
        self.problem, self._floor = "", floor
        due = self._due(nodes, floor)
        try:
            lists = self._lists(manager, deadline)
            on_its_way = frozenset() if self._leaving is None else self._leaving[1]
            known = [nodes[node_id].node for node_id in lists.parked.read() - on_its_way if node_id in nodes]
            back = {node.host for node in known if node.state in ACTIVE and node.state is not State.DECOMMISSIONING}
            if back or due or self._leaving is not None:
                with lists.locked():
                    lists.parked.remove_hosts(back)
                    self._step(manager, lists, due)
            here = {node_id for node_id, reading in nodes.items() if reading.node.state in ACTIVE}
            self.parked = lists.parked.read() - here
        except (YarnError, ListFileError, HadoopConfError) as error:
            if isinstance(error, LifecycleError):
                self._leaving = None
            self.problem = f"empty nodes stay: {error}"

    def taken(
        self, manager: Manager, offers: Sequence[Offer], deadline: Deadline
    ) -> tuple[list[Offer], tuple[OfferAnswer, ...]]:
        """The offers for nodes that are in the cluster, and the answers for those that are out.

        An offer above the floor takes such a node in again; its NodeManager has to be started by whoever does that.
        """
        self._offered |= {offer.framework_node for offer in offers}
        known = self.parked
        inside = [offer for offer in offers if offer.framework_node not in known]
        parked = [offer for offer in offers if offer.framework_node in known]
        asked = [offer for offer in parked if self._is_above_floor(offer)]
        stay = [
            OfferAnswer(node=offer.node, framework_node=offer.framework_node, accepted=offer.total)
            for offer in parked
            if offer not in asked
        ]
        taken = {answer.framework_node: answer.accepted for answer in stay if answer.accepted is not None}
        self.offered = {node_id: size for node_id, size in self.offered.items() if node_id in known} | taken
        return inside, (*stay, *(self._taken_in(manager, asked, deadline) if asked else ()))

    def _is_above_floor(self, offer: Offer) -> bool:
        total = offer.total
        size = size_within(
            cpu_milli=total.cpu_milli, memory_bytes=total.memory_bytes, vcore_milli=self._spec.vcore_milli
        )
        return size.memory_mb > self._floor.memory_mb or size.vcores > self._floor.vcores

    def _taken_in(self, manager: Manager, out: Sequence[Offer], deadline: Deadline) -> Iterator[OfferAnswer]:
        reason = "it was out for being empty, and is taken in again; its NodeManager has to be started"
        try:
            self._take_in(manager, {offer.framework_node.rpartition(":")[0] for offer in out}, deadline)
        except (YarnError, ListFileError, HadoopConfError) as error:
            reason = f"it is out for being empty, and cannot be taken in again: {error}"
        for offer in out:
            yield OfferAnswer(
                node=offer.node,
                framework_node=offer.framework_node,
                accepted=None,
                refusal=Refusal.UNKNOWN_NODE,
                reason=reason,
            )

    def _take_in(self, manager: Manager, hosts: Collection[str], deadline: Deadline) -> None:
        lists = self._lists(manager, deadline)
        with lists.locked():
            recommission(manager, lists, hosts)
        self.parked = lists.parked.read()

    def _lists(self, manager: Manager, deadline: Deadline) -> Lists:
        if self._found is None:
            self._found = lists_of(self._spec, manager, deadline)
        return self._found

    def _due(self, nodes: Mapping[str, NodeReading], floor: Size) -> dict[str, list[str]]:
        """The nodes that have been empty long enough, by hosts on which no other node is in use."""
        now = self._clock()
        empty = [node_id for node_id in self._offered if node_id in nodes and _is_empty(nodes[node_id], floor)]
        self._since = {node_id: self._since.get(node_id, now) for node_id in empty}
        long = {node_id for node_id, since in self._since.items() if now - since >= EMPTY_SECONDS}
        hosts: dict[str, list[str]] = {}
        for node_id in long:
            hosts.setdefault(nodes[node_id].node.host, []).append(node_id)
        used = {reading.node.host for key, reading in nodes.items() if reading.node.state in ACTIVE and key not in long}
        return {host: node_ids for host, node_ids in hosts.items() if host not in used}

    def _step(self, manager: Manager, lists: Lists, due: Mapping[str, Collection[str]]) -> None:
        if self._leaving is None and due:
            out = Decommissioning(manager, lists, sorted(due), GRACE_SECONDS, self._clock)
            out.begin()
            node_ids = frozenset(node_id for node_ids in due.values() for node_id in node_ids)
            self._leaving = out, node_ids
            lists.parked.add(node_ids)
        elif self._leaving is not None:
            out, node_ids = self._leaving
            if not node_ids & lists.parked.read():  # somebody has taken them in meanwhile
                self._leaving = None
            elif out.look().done:
                lists.parked.add(node_ids)
                out.settle()
                self._leaving = None


def _is_empty(reading: NodeReading, floor: Size) -> bool:
    size = reading.in_force
    if reading.node.state is not State.RUNNING or size is None or reading.used != NOTHING:
        return False
    return size.memory_mb <= floor.memory_mb and size.vcores <= floor.vcores
