"""Floors that keep losing work to pressure are given up for a while.

A framework keeps a node only at its floor, so that is offered where there is nothing to lend, too. While pressure lasts
each task that starts there is terminated, and the next one starts in its place. So a floor of which pressure ended a
task twice within `FLOOR_SECONDS` is none for as long from then on: the node is offered what it can lend, be it nothing.

Tasks that are chosen together are lost once. A loss counts when somebody has taken the order, not only when the task is
gone: what it leaves is not to be filled again.
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
    """The framework's node of a task that ends for pressure in a floor; empty if it is in none.

    It is in one if its row is to have no more than its floor, and has no more allocated.
    """
    node = task.task.framework_node
    rows = ledger.of(need.resource).rows if need.strategy in PRESSURE else ()
    own = (row for row in rows if (row.key.cluster, row.key.framework_node) == (task.cluster, node))
    return node if any(max(row.size, row.allocated) <= row.floor for row in own) else ""


def losses(terminations: Iterable[Termination]) -> Iterator[FloorLoss]:
    """What these terminations cost floors."""
    for termination in terminations:
        if termination.floor_of and termination.was_hit:
            yield FloorLoss(termination.key.cluster, termination.floor_of, termination.ordered_at)


def remembered(lost: Iterable[FloorLoss], now: float) -> tuple[FloorLoss, ...]:
    """Those that may still decide, each once."""
    return tuple(dict.fromkeys(loss for loss in lost if now - loss.at < 2 * FLOOR_SECONDS))


def given_up(terminations: Terminations, now: float) -> dict[Floor, float]:
    """Until when each floor is given up."""
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
