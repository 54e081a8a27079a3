"""Policies and what is pending, each kept once: a column holds its number, and one step of arithmetic looks it up."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from fallow_core.ledger.fleet.arrays import LARGEST_PENDING, NONE, AnyArray, Floats
from fallow_core.ledger.rows import ZERO
from fallow_core.ledger.shapes import TaskShape
from fallow_core.model.policy import AccountPolicy, NodePolicy, SwitchState
from fallow_hookspecs import RESOURCE_NAMES, Pending, ResourceName, Resources

ALL, NO_GROWTH, NOTHING = 0, 1, 2
"""What a switch leaves to an account."""


class AccountTerm(NamedTuple):
    """What rows have in common: their cluster, its policy on the node, and their unit."""

    cluster: str
    policy: AccountPolicy
    unit: Resources


class Work(NamedTuple):
    """What is known of a cluster's work: what waits, `None` where unknown, and the shape of what runs."""

    pending: Pending | None
    shape: TaskShape


class NodeTerms:
    """The node policies in use. Arrays by resource and number."""

    def __init__(self) -> None:
        self._numbers: dict[NodePolicy, int] = {}
        self._policies: list[NodePolicy] = []
        self._table: dict[str, Floats] | None = None

    def number(self, policy: NodePolicy) -> int:
        """The number of a policy."""
        if policy not in self._numbers:
            self._numbers[policy] = len(self._policies)
            self._policies.append(policy)
            self._table = None
        return self._numbers[policy]

    @property
    def table(self) -> dict[str, Floats]:
        """The fields of all policies."""
        if self._table is None:
            names = (
                "watermark_percent",
                "reserved",
                "reserved_percent",
                "reserved_per_daemon",
                "cap_percent",
                "overcommit_percent",
            )
            self._table = {
                field: np.array([[getattr(p.of(r), field) for p in self._policies] for r in RESOURCE_NAMES], float)
                for field in names
            }
        return self._table


class AccountTerms:
    """The account terms in use; number 0 is that of slots without a row, which want nothing and get nothing."""

    def __init__(self) -> None:
        nobody = AccountTerm("", AccountPolicy(weight=0, switch=SwitchState.DRAIN), Resources(1, 1))
        self._numbers = {nobody: 0}
        self._work: dict[str, Work] = {"": Work(Pending(total=ZERO), TaskShape())}
        self._table: AccountTable | None = None

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

    @property
    def table(self) -> "AccountTable":
        """The fields of all terms."""
        if self._table is None:
            self._table = AccountTable(list(self._numbers), self._work)
        return self._table


class AccountTable:
    """Account terms as arrays, by number, and by resource where there are two. `NONE`: no bound.

    `switch`: `ALL`, `NO_GROWTH` or `NOTHING`. `unknown`: 1 where what is pending is not known.
    """

    def __init__(self, terms: list[AccountTerm], of_clusters: Mapping[str, Work]) -> None:
        self.clusters = [term.cluster for term in terms]
        self.weight = _by_resource(terms, lambda term, _: term.policy.weight)
        self.switch = np.array([_switch(term.policy.switch) for term in terms], np.int8)
        self.unit = _by_resource(terms, lambda term, r: term.unit.amount(r))
        self.limit_percent = _by_resource(terms, lambda term, r: _or(term.policy.limit(r).percent))
        self.limit_amount = _by_resource(terms, lambda term, r: _or(term.policy.limit(r).amount))
        self.limit_amount[self.limit_percent < NONE] = NONE
        work = [of_clusters.get(cluster, Work(None, TaskShape())) for cluster in self.clusters]
        totals = [None if of.pending is None else of.pending.total for of in work]
        largest = [of.shape.largest if of.pending is None else of.pending.largest for of in work]
        self.pending = np.array([[_waits(size, r) for size in totals] for r in RESOURCE_NAMES])
        self.unknown = np.array([[float(size is None) for size in totals] for r in RESOURCE_NAMES])
        self.largest = np.array([[_waits(size, r) for size in largest] for r in RESOURCE_NAMES])
        self.mib_per_core = np.array([NONE if of.shape.honours_cpu else _or(of.shape.mib_per_core) for of in work])

    def lasts_seconds(self, of_clusters: Mapping[str, int | None]) -> AnyArray:
        """For how long offers last, by number; NaN where for ever."""
        lasts = [of_clusters.get(cluster) for cluster in self.clusters]
        return np.array([np.nan if seconds is None else seconds for seconds in lasts])


def _switch(switch: SwitchState) -> int:
    if switch is SwitchState.LEND:
        return ALL
    return NOTHING if switch in (SwitchState.DRAIN, SwitchState.STOP) else NO_GROWTH


def _by_resource(terms: list[AccountTerm], amount: Callable[[AccountTerm, ResourceName], float]) -> Floats:
    return np.array([[amount(term, name) for term in terms] for name in RESOURCE_NAMES], float)


def _waits(size: Resources | None, resource: ResourceName) -> float:
    """An amount that waits somewhere in a cluster, cut to what fits the arithmetic: more than any cluster has."""
    return 0.0 if size is None else float(min(size.amount(resource), LARGEST_PENDING))


def _or(value: int | None) -> float:
    return NONE if value is None else float(value)
