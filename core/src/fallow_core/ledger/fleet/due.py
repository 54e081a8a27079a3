"""`ledger.publishing` for many nodes at once: which rows are due, with which sizes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fallow_core.ledger.fleet.arrays import AnyArray, Bools, Ints
from fallow_core.ledger.fleet.columns import RowColumns
from fallow_core.ledger.fleet.holds import Holds
from fallow_core.ledger.fleet.sizes import Sizes
from fallow_core.ledger.fleet.terms import AccountTable
from fallow_core.ledger.publishing import BEHIND_PERCENT, FURTHER_PERCENT, IDLE_PERCENT, RENEW_SHARE, STEP_PERCENT
from fallow_core.model.policy import PublishingPolicy

WHY = (
    "",
    "schedulers may promise more than there is",
    "another account waits for it",
    "it is below the floor",
    "it differs by more than the band",
)
"""Why one resource is due, by number."""
URGENT, WAITED_FOR, BELOW_FLOOR, BEYOND_BAND = range(1, 5)


@dataclass(frozen=True, slots=True)
class Selected:
    """The rows that are due: slots and nodes, and by row and resource the sizes to send and why (`WHY`)."""

    slots: Ints
    nodes: Ints
    sizes: Ints
    why: AnyArray


def selected(
    rows: RowColumns,
    found: Sizes,
    holds: Holds,
    table: AccountTable,
    policy: PublishingPolicy,
    now: float,
    offer_lasts_seconds: Mapping[str, int | None],
) -> Selected:
    """The rows that are due. `holds` is brought up to date."""
    holds.push(rows.newest, found.wanted, policy, now)
    wanted, why = _decided(rows, found, holds, policy, now)
    lasts = table.lasts_seconds(offer_lasts_seconds)
    due = (why > 0).any(1) | rows.astray
    if not np.isnan(lasts).all():
        due |= now - rows.refreshed_at >= lasts.take(rows.terms) * RENEW_SHARE
    refused = now - rows.refused_at < policy.in_flight_seconds
    slots, nodes = np.nonzero(due & rows.running & rows.known & ~refused)
    return Selected(slots, nodes, wanted[slots, :, nodes], why[slots, :, nodes])


def _decided(
    rows: RowColumns, found: Sizes, holds: Holds, policy: PublishingPolicy, now: float
) -> tuple[Ints, AnyArray]:
    """The sizes to send, and why, by number; 0 where it is not due."""
    newest, size = rows.newest, found.size
    band = newest * policy.band_percent
    asked = (found.wanted > newest) & ((found.wanted - newest) * 100 > band) | (rows.floor > newest)
    above_fair = np.where(newest >= found.fair, newest * IDLE_PERCENT // 100, 0)
    little = np.maximum(np.maximum(found.unit, found.drain_step), above_fair)
    held = holds.held(asked, little, newest * 100 < found.fair * BEHIND_PERCENT, policy, now)
    waits = ((size < held) & ((held - newest) * 100 > band)).any(0) | found.drains
    wanted = np.where(size < newest, size, np.maximum(np.minimum(size, held), rows.floor))
    shrinks = wanted < newest
    further = _further(rows, found, wanted)
    urgent = _too_large(rows, found, shrinks, further)
    waited_for = shrinks & waits & (newest - wanted >= np.maximum(found.unit, found.drain_step * STEP_PERCENT // 100))
    below = (newest < rows.floor) & (wanted != newest)
    needed: Bools = ~shrinks | found.shared | (rows.allocated > wanted) | (found.most < newest) | (found.limit < newest)
    beyond = (np.abs(wanted - newest) * 100 > band) & needed
    why = np.zeros(newest.shape, np.int8)
    for number, where in ((BEYOND_BAND, beyond), (BELOW_FLOOR, below), (WAITED_FOR, waited_for), (URGENT, urgent)):
        np.putmask(why, where, number)
    wanted = np.where(why > 0, wanted, newest)
    np.copyto(wanted, further, where=urgent)
    return wanted, why


def _too_large(rows: RowColumns, found: Sizes, shrinks: Bools, further: Ints) -> Bools:
    """The rows that have to fall at once: those that leave the most first, and no more of them than suffice."""
    falls: Bools = shrinks & found.overcommitted
    if found.shared:
        return falls
    has = np.maximum(rows.newest, rows.allocated)
    over = np.minimum(rows.belief, has).sum(0) - found.batch
    at = falls.any(0)
    leaves = np.where(falls, has - np.maximum(further, rows.allocated), -1)[:, at]
    order = np.argsort(-leaves, axis=0, kind="stable")
    ordered = np.take_along_axis(leaves, order, 0)
    chosen = (ordered >= 0) & (over[at] > ordered.cumsum(0) - ordered)
    falls[:, at] = False
    np.put_along_axis(picked := np.zeros(leaves.shape, np.bool_), order, chosen, 0)
    falls[:, at] = picked
    return falls


def _further(rows: RowColumns, found: Sizes, wanted: Ints) -> Ints:
    """Sizes a little smaller than they must be, in whole units, as far as that is neither allocated nor floor."""
    step = found.drain_step * FURTHER_PERCENT // 100
    further = (rows.newest - step) // found.unit * found.unit
    kept = np.maximum(rows.floor, -(-rows.allocated // found.unit) * found.unit)
    sizes: Ints = np.minimum(wanted, np.maximum(further, kept))
    return sizes
