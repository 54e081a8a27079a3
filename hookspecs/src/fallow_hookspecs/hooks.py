"""The four hooks.

Hooks are plain functions; an author needs no asyncio. Core builds one instance for each cluster file and registers it
in a plugin manager of its own. Each instance has two lanes, each one thread: **reads** (`list_tasks`, and
`report_capacity` without offers) and **acts** (`report_capacity` with offers, `kill_tasks`, `set_cgroup_parent`). A
lane never makes two calls at once, but one call of each lane may run at the same time, so an instance guards what
both share. Every call carries `timeout_seconds`, the time after which core takes the lane for stalled: a stalled lane
gets no further call until it answers, and what it answers late still counts as the answer of its call.

What may be raised, by any hook: `TryLater` and `Broken` (see `errors`); anything else marks this call as failed. After
failures core calls again with growing pauses. A failed call with offers may still be carried out by the framework, and
core reckons with it.

An implementation may leave out arguments that it does not use.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import pluggy

from fallow_hookspecs.capacity import CapacityReport, Node, Offer
from fallow_hookspecs.placement import Placement
from fallow_hookspecs.tasks import KillOrder, KillOutcome, TaskList

PROJECT = "fallow"

_F = TypeVar("_F", bound=Callable[..., Any])

hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a method of an instance as the implementation of the hook of that name."""

_marker = pluggy.HookspecMarker(PROJECT)


def hookspec(function: _F) -> _F:
    """Mark a function as a hook of which the first answer that is not `None` counts."""
    return _marker(firstresult=True)(function)


@hookspec
def report_capacity(
    nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float
) -> CapacityReport | None:
    """Tell the framework what it may use, and core what the framework has.

    **Called** on the controller: without offers every few seconds (reads lane), with all offers that are due in one
    call, the largest first (acts lane).

    :param nodes: the nodes that the cluster selects.
    :param offers: what is due; often none: then the call only asks.
    :param timeout_seconds: the answer is due within this time.
    :return: one answer for each offer, and one row for each node of the framework that there is news of. Rows read
        before the offers of the same call were carried out do not confirm them: core confirms by a later report.

    **Repeating** an offer is harmless. **Errors**: one bad node in a call spoils no other: it is refused in its answer.
    An exception means that nothing is known of any offer of the call. Without `take_back` in an offer no task may be
    ended by it, then or later.
    """


@hookspec
def list_tasks(node: Node, timeout_seconds: float) -> TaskList | None:
    """All tasks of this cluster on this node that hold resources, those that are terminating included.

    **Called** on the agent, every second or so (reads lane). It asks only what is on the node: ten thousand agents do
    not talk to one resource manager.

    :param node: the node the agent runs on.
    :param timeout_seconds: the answer is due within this time.
    :return: the tasks, the daemons of the framework, and whether the list is complete: an empty list is not the same
        as no answer.

    **Repeating** is harmless. **Errors**: an exception means that nothing is known; core goes on with the last list
    while it grows older.
    """


@hookspec
def kill_tasks(node: Node, order: KillOrder, timeout_seconds: float) -> KillOutcome | None:
    """End exactly these tasks.

    **Called** on the agent (acts lane), first gracefully; core times the grace and calls again with `force`. Where the
    agent's instance answers `NO_ACCESS`, core asks the controller's instance.

    :param node: the node the tasks are on.
    :param order: which tasks, why, and whether now.
    :param timeout_seconds: the answer is due within this time.
    :return: one answer for each task, as soon as the terminations are under way. Core sees by itself what is gone.

    **Repeating** for the same task is harmless; a task that has gone is `ALREADY_GONE`. **Errors**: one task that
    cannot be terminated is an answer, not an exception.
    """


@hookspec
def set_cgroup_parent(node: Node, parent: str, timeout_seconds: float) -> Placement | None:
    """Place the cluster's tasks on this node under a cgroup directory, as far as the framework can.

    **Called** on the agent (acts lane), when the wanted parent or the tasks change.

    :param node: the node the agent runs on.
    :param parent: the directory, relative to the cgroup root.
    :param timeout_seconds: the answer is due within this time.
    :return: for each task where it is, which processes core may move, or which setting would change that. Core does
        the moving.

    **Repeating** is harmless. **Errors**: a task that cannot be moved is part of the answer, not an exception.
    """
