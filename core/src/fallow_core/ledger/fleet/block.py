"""Some thousand nodes: few enough that the arrays of a step stay in cache, many enough that Python costs little."""

from collections.abc import Mapping

import numpy as np

from fallow_core.ledger.entries import NodeInputs, NodeLedger
from fallow_core.ledger.fleet.columns import RESOURCES, NodeColumns, RowColumns, bytes_of
from fallow_core.ledger.fleet.due import Selected, selected
from fallow_core.ledger.fleet.holds import Holds
from fallow_core.ledger.fleet.sizes import GUESSES, Sizes, sizes
from fallow_core.ledger.fleet.terms import AccountTerms, NodeTerms
from fallow_core.ledger.fleet.ticks import Ticks
from fallow_core.ledger.fleet.writing import write_node, write_rows
from fallow_core.ledger.publishing import SLOW
from fallow_core.ledger.publishing import Holds as PlainHolds
from fallow_core.ledger.rows import RowKey
from fallow_core.model.policy import PublishingPolicy
from fallow_hookspecs import RESOURCE_NAMES


class Block:
    """Nodes by number. `keys`: the keys of the rows of each, in the order of their slots."""

    def __init__(
        self, slots: int, nodes: int, node_terms: NodeTerms, account_terms: AccountTerms, ticks: Ticks
    ) -> None:
        self.nodes = NodeColumns.empty(nodes)
        self.rows = RowColumns.empty(slots, nodes)
        self.keys: list[tuple[RowKey, ...]] = [()] * nodes
        self.holds = Holds(slots, nodes, ticks)
        self._guesses = np.zeros((GUESSES, RESOURCES, nodes), np.float32)
        self._node_terms, self._account_terms = node_terms, account_terms

    @property
    def nbytes(self) -> int:
        """How much memory the arrays take."""
        return bytes_of(self.nodes) + bytes_of(self.rows) + self.holds.nbytes + self._guesses.nbytes

    def write(self, at: int, inputs: NodeInputs, hold_seconds: float) -> None:
        """Take in all that is known of a node."""
        keys = tuple(sorted(row.key for row in inputs.rows))
        if keys != self.keys[at]:
            self._move(at, keys, hold_seconds)
        write_node(self.nodes, self._node_terms, at, inputs)
        write_rows(self.rows, self._account_terms, at, inputs)

    def clear(self, at: int) -> None:
        """Take a node out."""
        self._move(at, (), 0)
        for slot in range(len(self.rows.terms)):
            self.rows.clear(slot, at)

    def sizes(self, publishing: PublishingPolicy, now: float) -> Sizes:
        """Compute the ledgers of all nodes."""
        terms = self._node_terms, self._account_terms.table
        return sizes(self.nodes, self.rows, *terms, self._guesses, publishing, now)

    def selected(
        self, found: Sizes, policy: PublishingPolicy, now: float, offer_lasts_seconds: Mapping[str, int | None]
    ) -> Selected:
        """Which rows are due; remembers growth."""
        return selected(self.rows, found, self.holds, self._account_terms.table, policy, now, offer_lasts_seconds)

    def plain_holds(self, at: int, hold_seconds: float) -> PlainHolds:
        """What is remembered of the growth of a node's rows, as `due_rows` has it."""
        found: PlainHolds = {}
        for slot, key in enumerate(self.keys[at]):
            for r, name in enumerate(RESOURCE_NAMES):
                hold = self.holds.plain(slot, r, at, hold_seconds)
                if hold is not None:
                    found[key, name] = hold
        return found

    def take_in(self, at: int, ledger: NodeLedger, hold_seconds: float, now: float) -> None:
        """Remember of the growth of a node what was computed of it alone."""
        for r, name in enumerate(RESOURCE_NAMES):
            for slot, entry in enumerate(ledger.of(name).rows):
                self.holds.push_one(slot, r, at, entry.newest, entry.wanted, now, now - SLOW * hold_seconds)

    def _move(self, at: int, keys: tuple[RowKey, ...], hold_seconds: float) -> None:
        """Rows came or went: what is remembered goes with its row."""
        before = self.plain_holds(at, hold_seconds)
        self.keys[at] = keys
        self.adopt(at, before)

    def adopt(self, at: int, holds: PlainHolds) -> None:
        """Remember of a node's rows what was remembered elsewhere."""
        for slot in range(len(self.rows.terms)):
            self.holds.forget(slot, at)
        for slot, key in enumerate(self.keys[at]):
            for r, name in enumerate(RESOURCE_NAMES):
                if (key, name) in holds:
                    self.holds.adopt(slot, r, at, holds[key, name])
