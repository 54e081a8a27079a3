"""Publishes offers: sends each as a node size, and answers it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final

from fallow_hookspecs import Capabilities, Offer, OfferAnswer, Refusal
from fallow_yarn.model.size import MIB_BYTES, Size, largest_of, size_within
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.publishing.answers import answer
from fallow_yarn.publishing.resend import Resend
from fallow_yarn.rm.admin import NodeUpdate, UpdateAnswer
from fallow_yarn.rm.manager import Manager
from fallow_yarn.rm.nodes import Node
from fallow_yarn.rm.readings import NodeReading
from fallow_yarn.settings.config import YarnSpec

BATCH_SIZE: Final = 200
"""The number of offers in a call: small enough that the first call leaves soon, large enough that calls cost little."""


class Publisher:
    """Publishes the offers of one cluster. Use it from one thread.

    A take-back is two updates, one after the other. The first has the size that is taken back to and a timeout of zero:
    the scheduler terminates what is above it at once. The second has the offered size and the far timeout: without it
    the node would stay armed, and the next size of somebody else could end containers. If only the first one arrives,
    no more is allocated than its size, and the next offer moves the timeout away.
    """

    def __init__(self, manager: Manager, spec: YarnSpec, resend: Resend) -> None:
        self._manager = manager
        self._spec = spec
        self._resend = resend

    def publish(
        self, offers: Sequence[Offer], capabilities: Capabilities, known: Mapping[str, NodeReading], deadline: Deadline
    ) -> tuple[OfferAnswer, ...]:
        """Publish all valid offers, and answer each. `known`: the nodes of the newest report."""
        nodes = _of_report(offers, known)
        if nodes is None:
            nodes = {node.node_id: node for node in self._manager.nodes(deadline)}
        due: dict[str, tuple[Offer, NodeUpdate]] = {}
        answers: list[OfferAnswer] = []

        def batches() -> Iterator[list[NodeUpdate]]:
            for batch in _batches(offers):
                updates = []
                for offer in batch:
                    update = self._update(offer, capabilities, nodes)
                    if isinstance(update, OfferAnswer):
                        answers.append(update)
                    elif update.node_id in due:
                        why = "there is another offer for this node in the call"
                        answers.append(_refused(offer, Refusal.BAD_VALUE, why))
                    else:
                        due[update.node_id] = offer, update
                        updates.append(update)
                failed = self._terminate([due[update.node_id] for update in updates], nodes, deadline)
                answers.extend(self._answer(due, taken) for taken in failed.values())
                yield [update for update in updates if update.node_id not in failed]

        answered = [self._answer(due, taken) for taken in self._resend.send(self._manager, batches(), deadline)]
        return (*answers, *answered)

    def _answer(self, due: Mapping[str, tuple[Offer, NodeUpdate]], taken: UpdateAnswer) -> OfferAnswer:
        offer, update = due[taken.node_id]
        return answer(offer.node, taken, update.size, offer.total, self._spec.vcore_milli)

    def _update(self, offer: Offer, capabilities: Capabilities, nodes: Mapping[str, Node]) -> NodeUpdate | OfferAnswer:
        if offer.framework_node not in nodes:
            return _refused(offer, Refusal.UNKNOWN_NODE, "the ResourceManager does not list this node")
        for name in offer.take_back:
            if not (capabilities.cpu if name == "cpu" else capabilities.memory).takes_back:
                return _refused(offer, Refusal.BAD_VALUE, f"this ResourceManager does not take back {name}")
        if any(amount < offer.total.amount(name) for name, amount in offer.take_back.items()):
            return _refused(offer, Refusal.BAD_VALUE, "nothing can be taken back to less than the offer")
        size = size_within(
            cpu_milli=offer.total.cpu_milli,
            memory_bytes=offer.total.memory_bytes,
            vcore_milli=self._spec.vcore_milli,
        )
        try:
            return NodeUpdate(node_id=offer.framework_node, size=size, custom=nodes[offer.framework_node].custom)
        except ValueError as error:
            return _refused(offer, Refusal.BAD_VALUE, str(error))

    def _terminate(
        self, due: Sequence[tuple[Offer, NodeUpdate]], nodes: Mapping[str, Node], deadline: Deadline
    ) -> dict[str, UpdateAnswer]:
        """Have the scheduler terminate what is taken back; those that it did not accept."""
        updates = [
            replace(update, size=self._down_to(offer, update, nodes[update.node_id]), over_commit_timeout_ms=0)
            for offer, update in due
            if offer.take_back
        ]
        answers = self._manager.update(updates, deadline) if updates else ()
        return {taken.node_id: taken for taken in answers if not taken.accepted}

    def _down_to(self, offer: Offer, update: NodeUpdate, node: Node) -> Size:
        """The size above which containers are terminated: of what is not taken back, all that they have.

        The scheduler ignores an update that changes nothing, its timeout included. So the size is another one than the
        present one and than the one that follows.
        """
        size = largest_of((node.capability, node.used))
        if "memory" in offer.take_back:
            size = replace(size, memory_mb=-(-offer.take_back["memory"] // MIB_BYTES))
        if "cpu" in offer.take_back:
            size = replace(size, vcores=-(-offer.take_back["cpu"] // self._spec.vcore_milli))
        while size in (node.capability, update.size):
            more_memory = "cpu" in offer.take_back
            size = Size(size.memory_mb + more_memory, size.vcores + (not more_memory))
        return size


def _batches(offers: Sequence[Offer]) -> Iterator[Sequence[Offer]]:
    """The offers of each call.

    They are ordered by node id: a scheduler searches a node from the one that was changed longest ago, and so finds it
    soon if the order is always the same.
    """
    in_order = sorted(offers, key=attrgetter("framework_node"))
    for start in range(0, len(in_order), BATCH_SIZE):
        yield in_order[start : start + BATCH_SIZE]


def _of_report(offers: Sequence[Offer], known: Mapping[str, NodeReading]) -> Mapping[str, Node] | None:
    """The nodes of the offers from the newest report; `None` if they have to be read now.

    They have to be read if a node is new, if an offer takes back and so needs what a node has now, or if a node has
    further resources: if its NodeManager has restarted with another number of them, an update would set the old one.
    """
    nodes = {}
    for offer in offers:
        reading = known.get(offer.framework_node)
        if reading is None or reading.node.custom or offer.take_back:
            return None
        nodes[offer.framework_node] = reading.node
    return nodes


def _refused(offer: Offer, refusal: Refusal, reason: str) -> OfferAnswer:
    return OfferAnswer(
        node=offer.node, framework_node=offer.framework_node, accepted=None, refusal=refusal, reason=reason
    )
