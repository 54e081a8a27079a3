"""`ledger.publishing` for nodes in columns: which rows are due, with which sizes."""

from typing import NamedTuple

import numpy as np

from fallow_core.ledger.due_offers import AHEAD_STEPS, DRAIN_PERCENT, FURTHER_PERCENT, RENEW_SHARE, STEP_PERCENT
from fallow_core.ledger.fleet.amounts import in_units, quotient, up_to_units
from fallow_core.ledger.fleet.arrays import Record, Records, compiled
from fallow_core.ledger.fleet.columns import RESOURCES
from fallow_core.ledger.fleet.growth_delays import ahead, drains, least_since, push
from fallow_core.ledger.fleet.lanes import LANES, Rules
from fallow_core.ledger.fleet.loading import bring
from fallow_core.ledger.fleet.node import compute
from fallow_core.ledger.growth_delay import BEHIND_PERCENT, IDLE_PERCENT, MARGIN_PERCENT, SLOW

WHY = (
    "",
    "schedulers may promise more than there is",
    "it drains",
    "more is allocated than there is",
    "another account waits for it",
    "it is below the floor",
    "it differs by more than the dead band",
)
"""Why one resource is due, by number."""
NOT_DUE, TOO_LARGE, DRAINS, OVERDRAWN, WAITED_FOR, BELOW_FLOOR, BEYOND_BAND = range(7)
URGENT = (TOO_LARGE, OVERDRAWN)

DUE = np.dtype([("node", np.int64), ("slot", np.int64), ("size", np.int64, RESOURCES), ("why", np.int8, RESOURCES)])
"""A row that is due: the numbers of its node and slot, and by resource the size to send and why (`WHY`)."""


class Limits(NamedTuple):
    """What of a `PublishingPolicy` decides about what is due, the time, its number, and the times of numbers."""

    now: float
    tick: int
    times: Record
    dead_band_percent: int
    growth_delay_seconds: float
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
    sides: Records,
    due: Records,
) -> int:
    """Compute nodes, and put the rows that are due into `due`: how many. `holds` is brought up to date."""
    many = 0
    for first in range(0, len(nodes), LANES):
        lanes = min(LANES, len(nodes) - first)
        bring(nodes, zones, rows, policies, accounts, rules, first, lanes, sides)
        compute(sides, rules)
        for r in range(RESOURCES):
            _hold(holds, first, lanes, limits, sides[r], r, rules.shared)
            _decide(sides[r], rules.shared, limits.dead_band_percent)
        many = _collect(rows, accounts, first, lanes, limits, sides, due, many)
    return many


@compiled
def _collect(
    rows: Records, accounts: Records, first: int, lanes: int, limits: Limits, sides: Records, due: Records, many: int
) -> int:
    """Add the rows that are due of the nodes in these lanes."""
    cpu, memory = sides[0], sides[1]
    for i in range(lanes):
        for s in range(len(cpu.share)):
            row = rows[first + i, s]
            differs = cpu.why[s, i] != NOT_DUE or memory.why[s, i] != NOT_DUE
            if _is_due(row, accounts[row.account], limits, differs):
                found = due[many]
                found.node, found.slot = first + i, s
                found.size[0], found.size[1] = cpu.decided[s, i], memory.decided[s, i]
                found.why[0], found.why[1] = cpu.why[s, i], memory.why[s, i]
                many += 1
    return many


@compiled
def _is_due(row: Record, account: Record, limits: Limits, differs: bool) -> bool:
    """`row_due`, without the size."""
    if not (differs or row.astray or limits.now - row.refreshed_at >= account.lasts_seconds * RENEW_SHARE):
        return False
    return bool(row.running and row.known and not limits.now - row.refused_at < limits.in_flight_seconds)


@compiled
def _hold(holds: Records, first: int, lanes: int, limits: Limits, side: Record, r: int, shared: bool) -> None:
    """The sizes that rows may grow to, as far as time is concerned; their newest ones if those are larger, or where
    not even all that is wanted would be due.
    """
    oldest = limits.now - SLOW * limits.growth_delay_seconds
    for i in range(lanes):
        for s in range(len(side.share)):
            newest, wanted = side.newest[s, i], side.wanted[s, i]
            side.held[s, i] = newest
            side.lowest[s, i], side.ahead[s, i], side.overdrawn[s, i] = side.size[s, i], 0, 0
            if side.is_row[s, i]:
                hold = holds[first + i, s]
                push(hold, r, newest, wanted, limits.now, limits.tick, limits.times, oldest)
                side.ahead[s, i] = ahead(hold, r, limits.now, wanted)
                over = side.target[s, i] < side.allocated[s, i]
                below = drains(hold, r, limits.now, over) | (side.most[s, i] < side.allocated[s, i])
                most_over = 0 if shared else max(-side.unallocated[i], 0)
                lent = min(side.allocated[s, i] - max(side.target[s, i], side.floor[s, i]), most_over)
                side.overdrawn[s, i] = lent * 100 > side.drain_step[i] * DRAIN_PERCENT
                below |= side.overdrawn[s, i] != 0
                at = min(newest, up_to_units(side.allocated[s, i], side.unit[s, i]))
                side.lowest[s, i] = side.size[s, i] if below else max(side.size[s, i], at)
                grows = _beyond_dead_band(newest, wanted, limits.dead_band_percent) or newest < side.floor[s, i]
                if wanted > newest and grows:
                    side.held[s, i] = max(newest, _least(hold, limits, r, s, i, side))


@compiled
def _least(hold: Record, limits: Limits, r: int, s: int, i: int, side: Record) -> int:
    """The smallest target of the last while, which is the longer where growth is not much."""
    newest, fair, unit = side.newest[s, i], side.fair[s, i], side.unit[s, i]
    now, seconds, times = limits.now, limits.growth_delay_seconds, limits.times
    least = least_since(hold, r, now, seconds, times)
    margin = quotient(max(side.wanted[s, i] - least, 0) * MARGIN_PERCENT, 100)
    least = least if least <= newest else in_units(least - margin, unit)
    above_fair = newest * IDLE_PERCENT // 100 if newest >= fair else 0
    little = least - newest <= max(unit, side.drain_step[i], above_fair)
    little |= not _beyond_dead_band(newest, least, 2 * limits.dead_band_percent)
    if little and newest * 100 >= fair * BEHIND_PERCENT:
        least = least_since(hold, r, now, SLOW * seconds, times)
    return int(least)


@compiled
def _decide(side: Record, shared: bool, dead_band_percent: int) -> None:
    """What to do about one resource of each row."""
    _fall_further(side)
    _too_large(side, shared)
    for i in range(LANES):
        waits = side.drains[i] != 0
        for s in range(len(side.share)):
            held = side.held[s, i]
            waits |= (side.size[s, i] < held) & _beyond_dead_band(side.newest[s, i], held, dead_band_percent)
        for s in range(len(side.share)):
            size, newest, floor = side.size[s, i], side.newest[s, i], side.floor[s, i]
            allocated, lowest = side.allocated[s, i], side.lowest[s, i]
            wanted = lowest if size < newest else max(min(size, side.held[s, i]), floor)
            shrinks = wanted < newest
            step = max(side.unit[s, i], quotient(side.drain_step[i] * STEP_PERCENT, 100))
            waited_for = shrinks & waits & (newest - wanted >= step)
            capped = min(side.most[s, i], side.limit[s, i]) < newest
            stays = shrinks & (not (shared | capped | (allocated > wanted)))
            why = BEYOND_BAND if _beyond_dead_band(newest, wanted, dead_band_percent) & (not stays) else NOT_DUE
            why = BELOW_FLOOR if newest < floor else why
            why = WAITED_FOR if waited_for else why
            drain = max(side.unit[s, i], side.drain_step[i])
            drained = (newest < allocated) & (newest - wanted < drain)
            why = (NOT_DUE if drained else DRAINS) if wanted < min(newest, allocated) else why
            why = OVERDRAWN if (side.overdrawn[s, i] != 0) & shrinks else why
            why = TOO_LARGE if side.falls[s, i] else why
            why = NOT_DUE if wanted == newest else why
            wanted = side.further[s, i] if (why == TOO_LARGE) | (why == OVERDRAWN) else wanted
            wanted = min(wanted, max(_ahead_of(side, s, i), floor)) if why == DRAINS else wanted
            side.decided[s, i] = newest if why == NOT_DUE else wanted
            side.why[s, i] = why


@compiled
def _fall_further(side: Record) -> None:
    """Sizes a little smaller than they must be, in whole units, as far as that is neither allocated nor floor."""
    for i in range(LANES):
        for s in range(len(side.share)):
            unit = side.unit[s, i]
            ahead = min(side.ahead[s, i], AHEAD_STEPS * side.drain_step[i])
            further = min(_ahead_of(side, s, i), in_units(max(side.lowest[s, i] - ahead, 0), unit))
            has = 0 if side.overdrawn[s, i] != 0 else up_to_units(side.allocated[s, i], unit)
            kept = max(side.floor[s, i], has)
            side.further[s, i] = min(side.lowest[s, i], max(further, kept))


@compiled
def _ahead_of(side: Record, s: int, i: int) -> int:
    """The size from which the next fluctuation of the load will not be due again."""
    step = quotient(side.drain_step[i] * FURTHER_PERCENT, 100)
    return int(in_units(max(side.newest[s, i] - step, 0), side.unit[s, i]))


@compiled
def _too_large(side: Record, shared: bool) -> None:
    """Which rows have to fall at once: those that leave the most first, and no more of them than suffice."""
    for i in range(LANES):
        over = -side.batch[i]
        for s in range(len(side.share)):
            allocated, newest = side.allocated[s, i], side.newest[s, i]
            has = max(newest, allocated)
            over += min(side.belief[s, i], has)
            falls = (side.overcommitted[i] > 0) & (max(side.lowest[s, i], allocated) < newest)
            leaves = newest - max(side.further[s, i], allocated) if falls else 0
            falls &= leaves * 100 >= side.drain_step[i] * STEP_PERCENT
            side.falls[s, i], side.leaves[s, i] = falls, leaves if falls else 0
        for s in range(len(side.share)):
            leaves, rest = side.leaves[s, i], over
            for other in range(len(side.share)):
                more = side.leaves[other, i] > leaves
                first = more | ((side.leaves[other, i] == leaves) & (other < s))
                rest -= side.leaves[other, i] if first else 0
            side.falls[s, i] &= shared | (rest > 0)


@compiled
def _beyond_dead_band(newest: int, wanted: int, dead_band_percent: int) -> bool:
    """Whether two sizes differ by more than the dead band."""
    return bool(abs(wanted - newest) * 100 > newest * dead_band_percent)
