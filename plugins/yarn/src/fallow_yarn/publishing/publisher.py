"""Publishes offers: sends each as a node size, and answers it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final

from fallow_hookspecs import Capabilities, Offer, OfferAnswer, Refusal
from fallow_yarn.model.size import Size, size_within
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.publishing.answers import answer
from fallow_yarn.publishing.resend import Resend, Start
from fallow_yarn.rm.admin import FAR_TIMEOUT_MS, NodeUpdate
from fallow_yarn.rm.manager import Manager
from fallow_yarn.rm.nodes import Node
from fallow_yarn.rm.readings import NodeReading
from fallow_yarn.settings.config import YarnSpec

BATCH_SIZE: Final = 200
"""The number of offers in a call: small enough that the first call leaves soon, large enough that calls cost little."""


class Publisher:
    """Publishes the offers of one cluster. Use it from one thread.

    A scheduler ignores an update that does not change a node's size, including its over-commit timeout. So if a
    take-back asks for the current size of a node, the size is changed by 1 MB and back. `_running` has the sizes whose
    notice is running: a repeated take-back must not restart its notice.
    """

    def __init__(self, manager: Manager, spec: YarnSpec, resend: Resend) -> None:
        self._manager = manager
        self._spec = spec
        self._resend = resend
        self._running: dict[str, Size] = {}
        self._start: Start | None = None

    def note_start(self, start: Start) -> None:
        """Record the start of the current ResourceManager: notices end with the one that they were sent to."""
        if start != self._start:
            self._running.clear()
            self._start = start

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
                self._nudge(updates, nodes, deadline)
                yield updates

        for taken in self._resend.send(self._manager, batches(), deadline):
            offer, update = due[taken.node_id]
            self._running.pop(update.node_id, None)
            if taken.accepted and offer.take_back:
                self._running[update.node_id] = update.size
            answers.append(answer(offer.node, taken, update.size, offer.total, self._spec.vcore_milli))
        return tuple(answers)

    def _update(self, offer: Offer, capabilities: Capabilities, nodes: Mapping[str, Node]) -> NodeUpdate | OfferAnswer:
        if offer.framework_node not in nodes:
            return _refused(offer, Refusal.UNKNOWN_NODE, "the ResourceManager does not list this node")
        for name in offer.take_back:
            if not (capabilities.cpu if name == "cpu" else capabilities.memory).takes_back:
                return _refused(offer, Refusal.BAD_VALUE, f"this ResourceManager does not take back {name}")
        size = size_within(
            cpu_milli=offer.total.cpu_milli,
            memory_bytes=offer.total.memory_bytes,
            vcore_milli=self._spec.vcore_milli,
        )
        notice_ms = min(offer.take_back.values()) * 1000 if offer.take_back else FAR_TIMEOUT_MS
        try:
            return NodeUpdate(
                node_id=offer.framework_node,
                size=size,
                custom=nodes[offer.framework_node].custom,
                over_commit_timeout_ms=min(notice_ms, FAR_TIMEOUT_MS),
            )
        except ValueError as error:
            return _refused(offer, Refusal.BAD_VALUE, str(error))

    def _nudge(self, updates: Sequence[NodeUpdate], nodes: Mapping[str, Node], deadline: Deadline) -> None:
        """Change the sizes of nodes for which a notice would be ignored."""
        nudges = [
            replace(
                update, size=Size(update.size.memory_mb + 1, update.size.vcores), over_commit_timeout_ms=FAR_TIMEOUT_MS
            )
            for update in updates
            if update.over_commit_timeout_ms != FAR_TIMEOUT_MS
            and update.size == nodes[update.node_id].capability
            and update.size != self._running.get(update.node_id)
        ]
        if nudges:
            self._manager.update(nudges, deadline)


def _batches(offers: Sequence[Offer]) -> Iterator[Sequence[Offer]]:
    """The offers of each call. If one takes back, all go in one call, after the update that nudges it.

    They are ordered by node id: a scheduler searches a node from the one that was changed longest ago, and so finds it
    soon if the order is always the same.
    """
    count = len(offers) if any(offer.take_back for offer in offers) else BATCH_SIZE
    in_order = sorted(offers, key=attrgetter("framework_node"))
    for start in range(0, len(in_order), count):
        yield in_order[start : start + count]


def _of_report(offers: Sequence[Offer], known: Mapping[str, NodeReading]) -> Mapping[str, Node] | None:
    """The nodes of the offers from the newest report; `None` if they have to be read now.

    They have to be read if a node is new, if an offer takes back and so needs the current size, or if a node has
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
