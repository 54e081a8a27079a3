"""`ledger.publishing` for nodes in columns: which rows are due, with which sizes."""

from typing import NamedTuple

import numpy as np

from fallow_core.ledger.fleet.amounts import in_units, up_to_units
from fallow_core.ledger.fleet.arrays import Floats, Record, Records, compiled
from fallow_core.ledger.fleet.columns import RESOURCES
from fallow_core.ledger.fleet.computed import Rules
from fallow_core.ledger.fleet.holds import least_since, push
from fallow_core.ledger.fleet.node import compute
from fallow_core.ledger.publishing import (
    BEHIND_PERCENT,
    FURTHER_PERCENT,
    IDLE_PERCENT,
    RENEW_SHARE,
    SLOW,
    STEP_PERCENT,
)

WHY = (
    "",
    "schedulers may promise more than there is",
    "another account waits for it",
    "it is below the floor",
    "it differs by more than the band",
)
"""Why one resource is due, by number."""
NOT_DUE, URGENT, WAITED_FOR, BELOW_FLOOR, BEYOND_BAND = range(5)

DUE = np.dtype([("node", np.int64), ("slot", np.int64), ("size", np.int64, RESOURCES), ("why", np.int8, RESOURCES)])
"""A row that is due: the numbers of its node and slot, and by resource the size to send and why (`WHY`)."""


class Limits(NamedTuple):
    """What of a `PublishingPolicy` decides about what is due, the time, its number, and the times of numbers."""

    now: float
    tick: int
    times: Floats
    band_percent: int
    growth_hold_seconds: float
    in_flight_seconds: float


@compiled
def select(
    nodes: Records,
    zones: Records,
    rows: Records,
    holds: Records,
    policies: Records,
    accounts: Records,
    rules: Rules,
    limits: Limits,
    found: Record,
    due: Records,
) -> int:
    """Compute nodes, and put the rows that are due into `due`: how many. `holds` is brought up to date."""
    many = 0
    for n in range(len(nodes)):
        node = nodes[n]
        own = rows[n, : node.rows]
        if len(own) == 0:
            continue
        compute(node, zones[n], own, policies[node.policy], accounts, rules, found)
        for r in range(RESOURCES):
            _decide(own, holds[n], rules, limits, r, found)
        for s in range(len(own)):
            if _is_due(own[s], accounts[own[s].account], limits, s, found):
                due[many].node, due[many].slot = n, s
                for r in range(RESOURCES):
                    due[many].size[r] = found.decided[r, s]
                    due[many].why[r] = found.why[r, s]
                many += 1
    return many


@compiled
def _is_due(row: Record, account: Record, limits: Limits, s: int, found: Record) -> bool:
    """`row_due`, without the size."""
    if not (row.running and row.known) or limits.now - row.refused_at < limits.in_flight_seconds:
        return False
    for r in range(RESOURCES):
        if found.why[r, s] != NOT_DUE:
            return True
    return bool(row.astray or limits.now - row.refreshed_at >= account.lasts_seconds * RENEW_SHARE)


@compiled
def _decide(rows: Records, holds: Records, rules: Rules, limits: Limits, r: int, found: Record) -> None:
    """What to do about one resource of each row."""
    waits = found.drains[r] != 0
    for s in range(len(rows)):
        held = found.held[r, s] = _held(rows[s], holds[s], limits, r, s, found)
        waits |= found.size[r, s] < held and _beyond_band(rows[s].newest[r], held, limits.band_percent)
    falls = _too_large(rows, rules, r, found)
    for s in range(len(rows)):
        row, size = rows[s], found.size[r, s]
        newest = row.newest[r]
        wanted = size if size < newest else max(min(size, found.held[r, s]), row.floor[r])
        if wanted < newest and falls >> s & 1:
            wanted, why = _further(row, wanted, r, s, found), URGENT
        elif wanted != newest:
            why = _why(row, wanted, waits, rules, limits, r, s, found)
        else:
            why = NOT_DUE
        found.decided[r, s] = newest if why == NOT_DUE else wanted
        found.why[r, s] = why


@compiled
def _why(row: Record, wanted: int, waits: bool, rules: Rules, limits: Limits, r: int, s: int, found: Record) -> int:
    """Why a row is due that does not have to fall at once."""
    newest, shrinks = row.newest[r], wanted < row.newest[r]
    step = max(found.unit[r, s], found.drain_step[r] * STEP_PERCENT // 100)
    if shrinks and waits and newest - wanted >= step:
        return WAITED_FOR
    if newest < row.floor[r]:
        return BELOW_FLOOR
    capped = min(found.most[r, s], found.limit[r, s]) < newest
    if shrinks and not (rules.shared or capped or row.allocated[r] > wanted):
        return NOT_DUE
    return BEYOND_BAND if _beyond_band(newest, wanted, limits.band_percent) else NOT_DUE


@compiled
def _held(row: Record, hold: Record, limits: Limits, r: int, s: int, found: Record) -> int:
    """The size that a row may grow to, as far as time is concerned; its newest one if that is larger."""
    newest, fair, unit = row.newest[r], found.fair[r, s], found.unit[r, s]
    now, seconds, times = limits.now, limits.growth_hold_seconds, limits.times
    push(hold, r, newest, found.wanted[r, s], now, limits.tick, times, now - SLOW * seconds)
    least = least_since(hold, r, now, seconds, times)
    above_fair = newest * IDLE_PERCENT // 100 if newest >= fair else 0
    little = least - newest <= max(unit, found.drain_step[r], above_fair)
    little |= not _beyond_band(newest, least, 2 * limits.band_percent)
    if little and newest * 100 >= fair * BEHIND_PERCENT:
        least = least_since(hold, r, now, SLOW * seconds, times)
    return int(max(newest, least))


@compiled
def _too_large(rows: Records, rules: Rules, r: int, found: Record) -> int:
    """The rows that have to fall at once, a bit for each slot."""
    falling, over = 0, -found.batch[r]
    if found.overcommitted[r] == 0:
        return 0
    for s in range(len(rows)):
        row, size = rows[s], found.size[r, s]
        has = max(row.newest[r], row.allocated[r])
        over += min(row.belief[r], has)
        if size < row.newest[r]:
            falling |= 1 << s
            found.share[r, s] = has - max(_further(row, size, r, s, found), row.allocated[r])
    if rules.shared:
        return falling
    chosen = 0
    while falling and over > 0:
        first = -1
        for s in range(len(rows)):
            if falling >> s & 1 and (first < 0 or found.share[r, s] > found.share[r, first]):
                first = s
        falling &= ~(1 << first)
        chosen |= 1 << first
        over -= found.share[r, first]
    return chosen


@compiled
def _further(row: Record, wanted: int, r: int, s: int, found: Record) -> int:
    """A size a little smaller than it must be, in whole units, as far as that is neither allocated nor floor."""
    unit = found.unit[r, s]
    further = in_units(max(row.newest[r] - found.drain_step[r] * FURTHER_PERCENT // 100, 0), unit)
    return int(min(wanted, max(further, row.floor[r], up_to_units(row.allocated[r], unit))))


@compiled
def _beyond_band(newest: int, wanted: int, band_percent: int) -> bool:
    """Whether two sizes differ by more than the band."""
    return bool(abs(wanted - newest) * 100 > newest * band_percent)
