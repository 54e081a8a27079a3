"""The four hooks.

Hooks are plain functions; an author needs no asyncio. Core builds one instance for each cluster file and registers it
in a plugin manager of its own. Each instance has two lanes, each with one thread: **reads** (`list_tasks`, and
`report_capacity` without offers) and **acts** (`report_capacity` with offers, `kill_tasks`, `set_cgroup_parent`). A
lane makes one call at a time, but both lanes may call at the same time, so an instance must protect shared data. Every
call has `timeout_seconds`. After that time the lane is stalled: it gets no further call until it answers. A late answer
is still used.

Any hook may raise `TryLater` and `Broken` (see `errors`); any other exception means that this call failed. After
failures core calls again with growing pauses. The framework may still carry out a failed call with offers, and core
takes that into account.

An implementation may omit arguments that it does not use.
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
    """Mark a function as a hook. The first answer that is not `None` is used."""
    return _marker(firstresult=True)(function)


@hookspec
def report_capacity(
    nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float
) -> CapacityReport | None:
    """Tell the framework what it may use, and report what the framework has.

    **Called** on the controller: every few seconds without offers (reads lane), and with all offers that are due in one
    call, the largest first (acts lane).

    :param nodes: the nodes that the cluster selects.
    :param offers: the offers that are due. If there are none, the call only reads.
    :param timeout_seconds: the answer is due within this time.
    :return: one answer for each offer, and one row for each node of the framework with news. Rows that were read before
        the offers of the same call were carried out do not confirm them: core confirms by a later report.

    **Repeating** an offer is harmless. **Errors**: a bad offer is refused in its own answer and affects no other offer.
    After an exception core does not know what became of the offers. An offer without `take_back` must not terminate a
    task, neither now nor later.
    """


@hookspec
def list_tasks(node: Node, timeout_seconds: float) -> TaskList | None:
    """List all tasks of this cluster on this node that hold resources, including terminating ones.

    **Called** on the agent, about every second (reads lane). It reads only from the node: ten thousand agents must not
    call one resource manager.

    :param node: the node that the agent runs on.
    :param timeout_seconds: the answer is due within this time.
    :return: the tasks, the daemons of the framework, and whether the list is complete: an empty list is not the same
        as no answer.

    **Repeating** is harmless. **Errors**: after an exception core continues with the last list while it ages.
    """


@hookspec
def kill_tasks(node: Node, order: KillOrder, timeout_seconds: float) -> KillOutcome | None:
    """Terminate exactly these tasks.

    **Called** on the agent (acts lane), first gracefully. Core measures the grace and calls again with `force`. If the
    answer is `NO_ACCESS`, core on Kubernetes will call the controller's instance; today core has no second route.

    :param node: the node that the tasks are on.
    :param order: which tasks, why, and whether to terminate them immediately.
    :param timeout_seconds: the answer is due within this time.
    :return: one answer for each task, as soon as the terminations are under way. Core itself checks which tasks are
        gone.

    **Repeating** for the same task is harmless; a task that has gone is `ALREADY_GONE`. **Errors**: a task that cannot
    be terminated gets an answer, not an exception.
    """


@hookspec
def set_cgroup_parent(node: Node, parent: str, timeout_seconds: float) -> Placement | None:
    """Place the cluster's tasks on this node under a cgroup directory, if the framework can.

    **Called** on the agent (acts lane) when the parent directory or the tasks change.

    :param node: the node that the agent runs on.
    :param parent: the directory, relative to the cgroup root.
    :param timeout_seconds: the answer is due within this time.
    :return: for each task its place, the processes that core may move, or the setting that would change that.

    **Repeating** is harmless. **Errors**: a task that cannot be moved is part of the answer, not an exception.
    """
