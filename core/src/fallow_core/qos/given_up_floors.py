"""Gives up floors that repeatedly lose tasks to pressure.

A framework keeps a node only at its floor, so the floor is offered even when nothing can be lent. While pressure lasts,
each task that starts there is terminated and replaced by the next one. Therefore a floor that lost a task to pressure
twice within `FLOOR_SECONDS` is given up for the same time: the node is then offered only what it can lend.

Tasks that are chosen together count as one loss. A loss counts as soon as the order was accepted, so that the room is
not filled again before the task is gone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from fallow_core.ledger.node_ledger import NodeLedger
from fallow_core.model.task import ObservedTask
from fallow_core.qos.need import Need
from fallow_core.qos.termination import FloorLoss, Termination, Terminations

FLOOR_SECONDS: Final = 3600.0
PRESSURE: Final = frozenset({"memory_evict", "cpu_evict"})


class Floor(NamedTuple):
    """The floor of one of a framework's nodes."""

    cluster: str
    framework_node: str


def floor_of(task: ObservedTask, need: Need, ledger: NodeLedger) -> str:
    """The framework's node of a task that pressure terminates within a floor; empty if it is not within one.

    A task is within a floor if neither the size nor the allocation of its row is above the floor.
    """
    node = task.task.framework_node
    rows = ledger.of(need.resource).rows if need.strategy in PRESSURE else ()
    own = (row for row in rows if (row.key.cluster, row.key.framework_node) == (task.cluster, node))
    return node if any(max(row.size, row.allocated) <= row.floor for row in own) else ""


def losses(terminations: Iterable[Termination]) -> Iterator[FloorLoss]:
    """The floor losses of these terminations."""
    for termination in terminations:
        if termination.floor_of and termination.was_accepted:
            yield FloorLoss(termination.key.cluster, termination.floor_of, termination.ordered_at)


def recent(lost: Iterable[FloorLoss], now: float) -> tuple[FloorLoss, ...]:
    """The losses that may still count, without duplicates."""
    return tuple(dict.fromkeys(loss for loss in lost if now - loss.at < 2 * FLOOR_SECONDS))


def given_up(terminations: Terminations, now: float) -> dict[Floor, float]:
    """The floors that are given up, each with the end of that time."""
    times: defaultdict[Floor, set[float]] = defaultdict(set)
    under_way = (termination for termination in terminations.active if termination.is_under_way)
    for loss in (*terminations.floor_losses, *losses(under_way)):
        times[Floor(loss.cluster, loss.framework_node)].add(loss.at)
    until: dict[Floor, float] = {}
    for floor, at in times.items():
        *before, last = sorted(at)
        if before and last - before[-1] < FLOOR_SECONDS and now < last + FLOOR_SECONDS:
            until[floor] = last + FLOOR_SECONDS
    return until
