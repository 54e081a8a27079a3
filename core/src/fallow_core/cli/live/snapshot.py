"""One moment of a running Fallow, typed: what the answers to `status`, `explain` and `tasks` say together.

Amounts are milli-cores and bytes, ages are seconds. What is not known is `None`, never zero.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fallow_core.cli.live.events import Event, events
from fallow_core.cli.live.problems import problems
from fallow_core.cli.render import FIELDS
from fallow_hookspecs import RESOURCE_NAMES, ResourceName

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a Fallow said: to `status`, to `explain` of each of its nodes, and to `tasks`."""

    status: Answer
    explanations: tuple[Answer, ...]
    tasks: Answer


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
    overdraft: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node, and how old its sample is."""

    name: str
    amounts: Mapping[ResourceName, NodeAmounts]
    sample_age_seconds: float | None


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
class Task:
    """A task. `used` is `None` where it is not measured. `cost_core_seconds`: what its end would lose."""

    cluster: str
    id: str
    framework_node: str
    application: str
    user: str
    queue: str
    role: str
    state: str
    used: Mapping[ResourceName, int] | None
    requested: Mapping[ResourceName, int]
    age_seconds: float | None
    cost_core_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One moment. `answers` is what it was made from, for the record of a single thing."""

    mode: str
    uptime_seconds: float
    nodes: tuple[Node, ...]
    accounts: tuple[Account, ...]
    tasks: tuple[Task, ...]
    events: tuple[Event, ...]
    problems: tuple[str, ...]
    answers: Answers


def snapshot(answers: Answers) -> Snapshot:
    """The moment that the answers describe.

    :raises KeyError: an answer lacks something, as one of another version may.
    """
    status = answers.status
    rows = [row for cluster in status["clusters"] for row in cluster["rows"]]
    return Snapshot(
        mode=status["mode"],
        uptime_seconds=status["uptime_seconds"],
        nodes=tuple(_node(node, [row for row in rows if row["node"] == node["node"]]) for node in status["nodes"]),
        accounts=tuple(_account(cluster, answers.explanations) for cluster in status["clusters"]),
        tasks=tuple(_task(task) for task in answers.tasks["tasks"]),
        events=events(status, answers.explanations),
        problems=tuple(problems(status, answers.tasks)),
        answers=answers,
    )


def _node(node: Answer, rows: list[Answer]) -> Node:
    def amounts(name: ResourceName) -> NodeAmounts:
        found = node[name]
        used, batch_used = found["used"], found["batch_used"]
        return NodeAmounts(
            capacity=found["capacity"],
            online=None if used is None or batch_used is None else max(0, used - batch_used),
            batch=found["batch"],
            offer=_sum(rows, "offer", name),
            in_force=_sum(rows, "in_force", name),
            allocated=found["allocated"],
            overdraft=found["overdraft"],
        )

    ages = [node[name]["sample_age_seconds"] for name in RESOURCE_NAMES]
    return Node(
        name=node["node"],
        amounts={name: amounts(name) for name in RESOURCE_NAMES},
        sample_age_seconds=None if None in ages else max(ages),
    )


def _account(cluster: Answer, explanations: Iterable[Answer]) -> Account:
    def amounts(name: ResourceName) -> AccountAmounts:
        entries = [
            entry
            for explanation in explanations
            for entry in explanation["resources"][name]["accounts"]
            if entry["cluster"] == cluster["cluster"]
        ]
        demands = [math.inf if entry["demand"] is None else entry["demand"] for entry in entries]
        return AccountAmounts(
            target=sum(entry["target"] for entry in entries) if entries else None,
            offer=_sum(cluster["rows"], "offer", name),
            in_force=_sum(cluster["rows"], "in_force", name),
            allocated=sum(row["allocated"][FIELDS[name]] for row in cluster["rows"]) if cluster["rows"] else None,
            demand=sum(demands) if demands else None,
        )

    return Account(
        name=cluster["cluster"],
        switch=cluster["switch"]["state"],
        state=_state(cluster),
        report_age_seconds=cluster["report_age_seconds"],
        amounts={name: amounts(name) for name in RESOURCE_NAMES},
    )


def _sum(rows: Iterable[Answer], what: str, name: ResourceName) -> int | None:
    """The sum over rows; unknown where one of them is, and where there are none. Nothing is promised on a gone one."""
    sizes = [row[what] for row in rows if row["state"] != "gone"]
    return None if not sizes or None in sizes else sum(size[FIELDS[name]] for size in sizes)


def _state(cluster: Answer) -> str:
    if cluster["failing"]:
        return "failing"
    if cluster["report_age_seconds"] is None:
        return "no report"
    states = Counter(row["state"] for row in cluster["rows"])
    return ", ".join(state if count == 1 else f"{count} {state}" for state, count in states.items()) or "no node"


def _task(task: Answer) -> Task:
    used = task["used"]
    return Task(
        cluster=task["cluster"],
        id=task["task"],
        framework_node=task["framework_node"],
        application=task["name"] or task["application"],
        user=task["user"],
        queue=task["queue"],
        role=task["role"],
        state=task["termination"]["phase"] if task["termination"] else task["state"],
        used=None if used is None else {name: used[FIELDS[name]] for name in RESOURCE_NAMES},
        requested={name: task["requested"][FIELDS[name]] for name in RESOURCE_NAMES},
        age_seconds=task["age_seconds"],
        cost_core_seconds=task["harm_core_seconds"],
    )
