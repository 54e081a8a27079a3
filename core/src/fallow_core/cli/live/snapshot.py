"""One moment of a running Fallow: the answers to `status`, `explain` and `tasks`, and sums of them for the tables.

Amounts are milli-cores and bytes. What is not known is `None`, never zero.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fallow_core.api.cluster_status import ClusterStatus, RowStatus
from fallow_core.api.explain import Explanation
from fallow_core.api.status import NodeStatus, Status
from fallow_core.api.tasks import Tasks, TaskStatus
from fallow_core.cli.live.events import Event, events
from fallow_core.cli.problems import cluster_problems, status_problems, task_problems
from fallow_hookspecs import RESOURCE_NAMES, NodeState, ResourceName, Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a Fallow said: to `status`, to `explain` of each of its nodes, and to `tasks`."""

    status: Status
    explanations: tuple[Explanation, ...]
    tasks: Tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAmounts:
    """One resource of a node. `online`: in use outside batch. `batch`: what can be lent.

    `offer` and `in_force`: the sum over the clusters' rows on it that are not gone.
    """

    capacity: int | None
    online: int | None
    batch: int | None
    offer: int | None
    in_force: int | None
    allocated: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node."""

    name: str
    amounts: Mapping[ResourceName, NodeAmounts]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountAmounts:
    """One resource of an account over all nodes. A `demand` of infinity is everything there is."""

    target: int | None
    offer: int | None
    in_force: int | None
    allocated: int | None
    demand: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A cluster. `state`: in a word, how its nodes or the calls to it are; `switch` is the operator's word."""

    name: str
    switch: str
    state: str
    report_age_seconds: float | None
    amounts: Mapping[ResourceName, AccountAmounts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One moment. `answers` is what it was made from, for the record of a single thing."""

    mode: str
    uptime_seconds: float
    nodes: tuple[Node, ...]
    accounts: tuple[Account, ...]
    tasks: tuple[TaskStatus, ...]
    events: tuple[Event, ...]
    problems: tuple[str, ...]
    answers: Answers


def snapshot(answers: Answers) -> Snapshot:
    """The moment that the answers describe."""
    status, tasks = answers.status, answers.tasks
    rows = [row for cluster in status.clusters for row in cluster.rows]
    return Snapshot(
        mode=status.mode,
        uptime_seconds=status.uptime_seconds,
        nodes=tuple(_node(node, [row for row in rows if row.node == node.node]) for node in status.nodes),
        accounts=tuple(_account(cluster, answers.explanations) for cluster in status.clusters),
        tasks=tasks.tasks,
        events=events(status, answers.explanations),
        problems=(*status_problems(status), *cluster_problems(status), *task_problems(tasks)),
        answers=answers,
    )


def _node(node: NodeStatus, rows: Sequence[RowStatus]) -> Node:
    def amounts(name: ResourceName) -> NodeAmounts:
        found = node.of(name)
        used, batch_used = found.used, found.batch_used
        return NodeAmounts(
            capacity=found.capacity,
            online=None if used is None or batch_used is None else max(0, used - batch_used),
            batch=found.batch,
            offer=_sum(rows, name, lambda row: row.offer),
            in_force=_sum(rows, name, lambda row: row.in_force),
            allocated=found.allocated,
        )

    return Node(name=node.node, amounts={name: amounts(name) for name in RESOURCE_NAMES})


def _account(cluster: ClusterStatus, explanations: Iterable[Explanation]) -> Account:
    def amounts(name: ResourceName) -> AccountAmounts:
        every = (entry for explanation in explanations for entry in explanation.resources[name].accounts)
        entries = [entry for entry in every if entry.cluster == cluster.cluster]
        demands = [math.inf if entry.demand is None else entry.demand for entry in entries]
        return AccountAmounts(
            target=sum(entry.target for entry in entries) if entries else None,
            offer=_sum(cluster.rows, name, lambda row: row.offer),
            in_force=_sum(cluster.rows, name, lambda row: row.in_force),
            allocated=sum(row.allocated.amount(name) for row in cluster.rows) if cluster.rows else None,
            demand=sum(demands) if demands else None,
        )

    return Account(
        name=cluster.cluster,
        switch=cluster.switch.state,
        state=_state(cluster),
        report_age_seconds=cluster.report_age_seconds,
        amounts={name: amounts(name) for name in RESOURCE_NAMES},
    )


def _sum(rows: Iterable[RowStatus], name: ResourceName, size: Callable[[RowStatus], Resources | None]) -> int | None:
    """The sum over rows; unknown where one of them is, and where there are none. Nothing is promised on a gone one."""
    sizes = [size(row) for row in rows if row.state is not NodeState.GONE]
    known = [each.amount(name) for each in sizes if each is not None]
    return sum(known) if known and len(known) == len(sizes) else None


def _state(cluster: ClusterStatus) -> str:
    if cluster.failing:
        return "failing"
    if cluster.report_age_seconds is None:
        return "no report"
    states = Counter(row.state for row in cluster.rows)
    return ", ".join(state if count == 1 else f"{count} {state}" for state, count in states.items()) or "no node"
