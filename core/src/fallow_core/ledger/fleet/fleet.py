"""The ledger of all nodes: those that fit columns in blocks, the few others one by one."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from fallow_core.ledger.due_offers import DueOffer, DueResource, due_rows, row_due
from fallow_core.ledger.entries import NodeInputs
from fallow_core.ledger.fleet.arrays import Records
from fallow_core.ledger.fleet.block import Block
from fallow_core.ledger.fleet.due_offers import DUE, URGENT, WHY
from fallow_core.ledger.fleet.encoding import fits
from fallow_core.ledger.fleet.terms import Accounts, Policies, Work
from fallow_core.ledger.fleet.ticks import Ticks
from fallow_core.ledger.growth_delay import SLOW, GrowthDelays
from fallow_core.ledger.node_ledger import node_ledger
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.policy import PublishingPolicy

Run = Callable[[Callable[[Block], Records], Iterable[Block]], Iterable[Records]]
"""Calls a function for each block: `map`, or one that does so side by side."""


@dataclass(frozen=True, slots=True)
class FleetDue:
    """The rows that are due: those in columns as records (`DUE`) with the numbers that nodes have in the fleet, the
    largest size first; and those of the nodes that are computed one by one.
    """

    rows: Records
    others: list[DueOffer]


class Fleet:
    """Nodes by name, with up to `slots` rows each in columns. Every method belongs to one thread.

    The number of a node is that of its block × `block_nodes` + its number there.
    """

    def __init__(self, slots: int = 4, block_nodes: int = 5000) -> None:
        self.blocks: list[Block] = []
        self._slots, self.block_nodes = slots, block_nodes
        self._policies, self._accounts, self._ticks = Policies(), Accounts(), Ticks()
        self._numbers: dict[str, int] = {}
        self._free: list[int] = []
        self._others: dict[str, NodeInputs] = {}
        self._others_growth_delays: GrowthDelays = {}

    def write(self, inputs: NodeInputs) -> None:
        """Take in all that is known of a node; it may be a new one."""
        if fits(inputs, self._slots):
            block, at = self._place(inputs.node)
            block.write(at, inputs)
            if self._others.pop(inputs.node, None) is not None:
                block.adopt(at, self._taken(inputs.node))
            return
        if inputs.node in self._numbers:
            block, at = self._place(inputs.node)
            self._others_growth_delays |= block.holds(at)
            self._leave(inputs.node)
        known = {row.key for row in inputs.rows}
        gone = [key for key in self._others_growth_delays if key[0].node == inputs.node and key[0] not in known]
        for key in gone:
            del self._others_growth_delays[key]
        self._others[inputs.node] = inputs

    def remove(self, node: str) -> None:
        """Forget a node."""
        if self._others.pop(node, None) is not None:
            self._taken(node)
        if node in self._numbers:
            self._leave(node)

    def work(self, cluster: str, work: Work) -> None:
        """What is known of a cluster's work from now on, on all nodes."""
        self._accounts.work(cluster, work)
        for node, inputs in self._others.items():
            pending, shapes = {**inputs.pending, cluster: work.pending}, {**inputs.shapes, cluster: work.shape}
            self._others[node] = replace(inputs, pending=pending, shapes=shapes)

    def due(
        self,
        publishing: PublishingPolicy,
        limits: PublishingPolicy,
        now: float,
        offer_lasts_seconds: Mapping[str, int | None],
        run: Run = map,
    ) -> FleetDue:
        """Compute all nodes, and select the rows that are due by `limits`; the same as `due_rows`, node by node."""
        self._ticks.forget(now - SLOW * limits.growth_delay_seconds)
        self._accounts.lasts(offer_lasts_seconds)
        of_blocks = run(lambda block: block.due(publishing, limits, now), self.blocks)
        others = []
        for inputs in self._others.values():
            ledger = node_ledger(replace(inputs, publishing=publishing, now=now))
            others += due_rows(ledger, inputs.rows, self._others_growth_delays, limits, now, offer_lasts_seconds)
        return self._joined(list(of_blocks), others)

    def changed(
        self, inputs: NodeInputs, limits: PublishingPolicy, offer_lasts_seconds: Mapping[str, int | None]
    ) -> list[DueOffer]:
        """Take in one node and compute it alone: what is due there."""
        self.write(inputs)
        if inputs.node in self._others:
            ledger = node_ledger(inputs)
            return due_rows(ledger, inputs.rows, self._others_growth_delays, limits, inputs.now, offer_lasts_seconds)
        self._accounts.lasts(offer_lasts_seconds)
        block, at = self._place(inputs.node)
        due = block.due(inputs.publishing, limits, inputs.now, only=at)
        due["node"] = self._numbers[inputs.node]
        rows = {row.key: row for row in inputs.rows}
        return self.worded(FleetDue(due, []), rows, limits, inputs.now, offer_lasts_seconds)

    def worded(
        self,
        due: FleetDue,
        rows: Mapping[RowKey, Row],
        limits: PublishingPolicy,
        now: float,
        offer_lasts_seconds: Mapping[str, int | None],
    ) -> list[DueOffer]:
        """What is due in the form that is sent, the largest size first."""
        found = list(due.others)
        for key, sizes, why in zip(
            self._keys(due.rows), due.rows["size"].tolist(), due.rows["why"].tolist(), strict=True
        ):
            decisions = [
                DueResource(wanted=size, why=WHY[number], urgent=number in URGENT)
                for size, number in zip(sizes, why, strict=True)
            ]
            of_row = row_due(rows[key], decisions, limits, now, offer_lasts_seconds.get(key.cluster))
            found += [] if of_row is None else [of_row]
        return sorted(found, key=lambda d: (-d.size.memory_bytes, -d.size.cpu_milli, d.key))

    def is_in_columns(self, node: str) -> bool:
        """Whether a node lies in columns; the others are computed one by one."""
        return node in self._numbers

    def place(self, node: str) -> tuple[Block, int]:
        """The block in which a node lies, and its number there."""
        return self._place(node)

    @property
    def nbytes(self) -> int:
        """How much memory the arrays take."""
        return sum(block.nbytes for block in self.blocks)

    def _joined(self, of_blocks: list[Records], others: list[DueOffer]) -> FleetDue:
        for i, rows in enumerate(of_blocks):
            rows["node"] += i * self.block_nodes
        found = np.concatenate([np.empty(0, DUE), *of_blocks])
        order = np.lexsort((found["slot"], found["node"], -found["size"][:, 0], -found["size"][:, 1]))
        return FleetDue(found[order], others)

    def _keys(self, due: Records) -> Iterator[RowKey]:
        for node, slot in zip(due["node"].tolist(), due["slot"].tolist(), strict=True):
            block, at = divmod(node, self.block_nodes)
            yield self.blocks[block].keys[at][slot]

    def _place(self, node: str) -> tuple[Block, int]:
        """Where a node lies; a new one gets a place."""
        if node not in self._numbers:
            if not self._free:
                first = len(self.blocks) * self.block_nodes
                self._free = list(range(first + self.block_nodes - 1, first - 1, -1))
                self.blocks.append(Block(self._slots, self.block_nodes, self._policies, self._accounts, self._ticks))
            self._numbers[node] = self._free.pop()
        block, at = divmod(self._numbers[node], self.block_nodes)
        return self.blocks[block], at

    def _leave(self, node: str) -> None:
        block, at = self._place(node)
        block.clear(at)
        self._free.append(self._numbers.pop(node))

    def _taken(self, node: str) -> GrowthDelays:
        """What is remembered of a node that is computed by itself; no longer here."""
        own = [key for key in self._others_growth_delays if key[0].node == node]
        return {key: self._others_growth_delays.pop(key) for key in own}
