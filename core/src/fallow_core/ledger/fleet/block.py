"""Some thousand nodes in columns, and what is remembered of them."""

import numpy as np

from fallow_core.ledger.entries import NodeInputs
from fallow_core.ledger.fleet.arrays import Records
from fallow_core.ledger.fleet.columns import ROW, ZONE, empty
from fallow_core.ledger.fleet.due_offers import DUE, Limits, select
from fallow_core.ledger.fleet.encoding import write_node, write_rows, zones_of
from fallow_core.ledger.fleet.growth_delays import HOLD, adopt, plain
from fallow_core.ledger.fleet.lanes import Rules, room
from fallow_core.ledger.fleet.terms import Accounts, Policies
from fallow_core.ledger.fleet.ticks import Ticks
from fallow_core.ledger.growth_delay import GrowthDelays
from fallow_core.ledger.rows import RowKey
from fallow_core.model.policy import PublishingPolicy, Sharing
from fallow_hookspecs import RESOURCE_NAMES


class Block:
    """Nodes by number. `keys`: the keys of the rows of each, in the order of their slots."""

    def __init__(self, slots: int, nodes: int, policies: Policies, accounts: Accounts, ticks: Ticks) -> None:
        self.nodes = empty(nodes)
        self.zones: Records = np.zeros((nodes, 0), ZONE)
        self.rows: Records = np.zeros((nodes, slots), ROW)
        self.keys: list[tuple[RowKey, ...]] = [()] * nodes
        self._growth_delays: Records = np.zeros((nodes, slots), HOLD)
        self._growth_delays["since"] = np.nan
        self._computed = room(slots)
        self._policies, self._accounts, self._ticks = policies, accounts, ticks

    @property
    def nbytes(self) -> int:
        """How much memory the arrays take."""
        return self.nodes.nbytes + self.zones.nbytes + self.rows.nbytes + self._growth_delays.nbytes

    @property
    def tables(self) -> tuple[Records, Records]:
        """The policies and accounts that numbers stand for."""
        return self._policies.table, self._accounts.table

    def write(self, at: int, inputs: NodeInputs) -> None:
        """Take in all that is known of a node."""
        keys = tuple(sorted(row.key for row in inputs.rows))
        if keys != self.keys[at]:
            self._move(at, keys)
        more = zones_of(inputs) - self.zones.shape[1]
        if more > 0:
            self.zones = np.concatenate([self.zones, np.zeros((len(self.nodes), more), ZONE)], 1)
        write_node(self.nodes[at], self.zones[at], self._policies, inputs)
        write_rows(self.rows[at], self._accounts, inputs)

    def clear(self, at: int) -> None:
        """Take a node out."""
        self._move(at, ())
        self.nodes[at]["rows"] = 0

    def due(
        self, publishing: PublishingPolicy, limits: PublishingPolicy, now: float, only: int | None = None
    ) -> Records:
        """Compute the ledgers of all nodes, or of only one, and select the rows that are due; remembers growth."""
        own = slice(None) if only is None else slice(only, only + 1)
        due = np.empty(self.rows[own].size, DUE)
        count = select(
            self.nodes[own],
            self.zones[own],
            self.rows[own],
            self._growth_delays[own],
            *self.tables,
            rules_of(publishing, now),
            Limits(
                now=now,
                tick=self._ticks.number(now),
                times=self._ticks.table,
                dead_band_percent=limits.dead_band_percent,
                growth_delay_seconds=float(limits.growth_delay_seconds),
                in_flight_seconds=float(limits.in_flight_seconds),
            ),
            self._computed,
            due,
        )
        found = due[:count].copy()
        found["node"] += only or 0
        return found

    def holds(self, at: int) -> GrowthDelays:
        """What is remembered of the growth of a node's rows, as `due_rows` has it."""
        found: GrowthDelays = {}
        for record, key in zip(self._growth_delays[at], self.keys[at], strict=False):
            for r, name in enumerate(RESOURCE_NAMES):
                hold = plain(record, r, self._ticks)
                if hold is not None:
                    found[key, name] = hold
        return found

    def adopt(self, at: int, holds: GrowthDelays) -> None:
        """Remember this of the growth of a node's rows, and nothing else."""
        self._growth_delays[at]["since"] = np.nan
        self._growth_delays[at]["count"] = 0
        for record, key in zip(self._growth_delays[at], self.keys[at], strict=False):
            for r, name in enumerate(RESOURCE_NAMES):
                if (key, name) in holds:
                    adopt(record, r, holds[key, name], self._ticks)

    def _move(self, at: int, keys: tuple[RowKey, ...]) -> None:
        """Rows came or went: what is remembered goes with its row."""
        before = self.holds(at)
        self.keys[at] = keys
        self.rows[at] = np.zeros(1, ROW)
        self.adopt(at, before)


def rules_of(policy: PublishingPolicy, now: float) -> Rules:
    """What of a policy decides about sizes."""
    return Rules(
        now=now,
        shared=policy.sharing is Sharing.SHARED,
        drain_step_percent=policy.drain_step_percent,
        degrade_after_seconds=float(policy.degrade_after_seconds),
        withdraw_after_seconds=float(policy.withdraw_after_seconds),
    )
