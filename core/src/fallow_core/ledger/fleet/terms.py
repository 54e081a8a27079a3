"""Policies and what is pending, each kept once: nodes and rows hold the number."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from fallow_core.ledger.fleet.arrays import LARGEST_PENDING, NONE, Record, Records
from fallow_core.ledger.fleet.columns import RESOURCES
from fallow_core.ledger.task_shapes import TaskShape
from fallow_core.model.policy import AccountPolicy, NodePolicy, SwitchState
from fallow_hookspecs import RESOURCE_NAMES, Pending, Resources

ALL, NO_GROWTH, NOTHING = 0, 1, 2
"""What a switch leaves to an account."""
MOST_MIB_PER_CORE = 1 << 34


class AccountTerm(NamedTuple):
    """What rows have in common: their cluster, its policy on the node, and their unit."""

    cluster: str
    policy: AccountPolicy
    unit: Resources


class Work(NamedTuple):
    """What is known of a cluster's work: what waits, `None` where unknown, and the shape of what runs."""

    pending: Pending | None
    shape: TaskShape


POLICY = np.dtype(
    [
        (name, np.int64, RESOURCES)
        for name in (
            "watermark_percent",
            "reserved",
            "reserved_percent",
            "reserved_per_daemon",
            "cap_percent",
            "overcommit_percent",
        )
    ]
)
"""A node policy."""

ACCOUNT = np.dtype(
    [
        ("unit", np.int64, RESOURCES),
        ("limit_percent", np.int64, RESOURCES),
        ("limit_amount", np.int64, RESOURCES),
        ("pending", np.int64, RESOURCES),
        ("largest", np.int64, RESOURCES),
        ("weight", np.int64),
        ("mib_per_core", np.int64),
        ("lasts_seconds", np.float64),
        ("switch", np.int8),
        ("unknown", np.bool_),
    ]
)
"""What accounts have in common. `NONE`: no bound; NaN: offers last for ever. `switch`: `ALL`, `NO_GROWTH` or `NOTHING`.
`unknown`: what is pending is not known.
"""


class Policies:
    """The node policies in use."""

    def __init__(self) -> None:
        self._numbers: dict[NodePolicy, int] = {}
        self._table: Records | None = None

    def number(self, policy: NodePolicy) -> int:
        """The number of a policy."""
        if policy not in self._numbers:
            self._numbers[policy] = len(self._numbers)
            self._table = None
        return self._numbers[policy]

    @property
    def table(self) -> Records:
        """The records of all policies, by number; at least one, as nodes that are not there have the number 0."""
        if self._table is None:
            self._table = np.zeros(max(len(self._numbers), 1), POLICY)
            for record, policy in zip(self._table, self._numbers, strict=False):
                for field in POLICY.names or ():
                    record[field] = [getattr(policy.of(r), field) for r in RESOURCE_NAMES]
        return self._table


class Accounts:
    """The account terms in use, and what is known of the work of their clusters, and of how long their offers last."""

    def __init__(self) -> None:
        self._numbers: dict[AccountTerm, int] = {}
        self._work: dict[str, Work] = {}
        self._lasts_seconds: dict[str, int | None] = {}
        self._table: Records | None = None

    def number(self, term: AccountTerm) -> int:
        """The number of a term."""
        if term not in self._numbers:
            self._numbers[term] = len(self._numbers)
            self._table = None
        return self._numbers[term]

    def work(self, cluster: str, work: Work) -> None:
        """What is known of a cluster's work from now on, on all nodes."""
        if work != self._work.get(cluster):
            self._work[cluster] = work
            self._table = None

    def lasts(self, seconds: Mapping[str, int | None]) -> None:
        """For how long the offers to each cluster last; `None`, or one that is not named: for ever."""
        if seconds != self._lasts_seconds:
            self._lasts_seconds = dict(seconds)
            self._table = None

    @property
    def table(self) -> Records:
        """The records of all terms, by number; at least one, as slots without a row have the number 0."""
        if self._table is None:
            self._table = np.zeros(max(len(self._numbers), 1), ACCOUNT)
            for record, term in zip(self._table, self._numbers, strict=False):
                self._write(record, term)
        return self._table

    def _write(self, record: Record, term: AccountTerm) -> None:
        work = self._work.get(term.cluster, Work(None, TaskShape()))
        pending, limits = work.pending, [term.policy.limit(r) for r in RESOURCE_NAMES]
        largest = work.shape.largest if pending is None else pending.largest
        lasts = self._lasts_seconds.get(term.cluster)
        record["unit"] = [term.unit.amount(r) for r in RESOURCE_NAMES]
        record["limit_percent"] = [_or_none(limit.percent) for limit in limits]
        record["limit_amount"] = [_or_none(limit.amount) for limit in limits]
        record["pending"] = _waits(None if pending is None else pending.total)
        record["largest"] = _waits(largest)
        record["weight"] = term.policy.weight
        record["mib_per_core"] = _mib_per_core(work.shape)
        record["lasts_seconds"] = math.nan if lasts is None else lasts
        record["switch"] = _switch(term.policy.switch)
        record["unknown"] = pending is None


def _switch(switch: SwitchState) -> int:
    if switch is SwitchState.LEND:
        return ALL
    return NOTHING if switch in (SwitchState.DRAIN, SwitchState.STOP) else NO_GROWTH


def _waits(size: Resources | None) -> list[int]:
    """What waits somewhere in a cluster, cut to what fits the arithmetic: more than any cluster has."""
    return [0 if size is None else min(size.amount(r), LARGEST_PENDING) for r in RESOURCE_NAMES]


def _or_none(value: int | None) -> int:
    return NONE if value is None else min(value, NONE)


def _mib_per_core(shape: TaskShape) -> int:
    """Cut to what is no bound on any node in columns, even with a thousandth of a core."""
    return NONE if shape.honours_cpu or shape.mib_per_core is None else min(shape.mib_per_core, MOST_MIB_PER_CORE)
