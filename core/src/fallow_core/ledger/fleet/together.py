"""`ledger.together`: what accounts can use of one resource, given the other one."""

import math

from fallow_core.ledger.fleet.arrays import NONE, Record, Records, compiled
from fallow_core.ledger.fleet.columns import RESOURCES
from fallow_core.ledger.fleet.level import level
from fallow_core.ledger.together import ROUNDED_OFF, ROUNDS

NOTHING_NEEDED = -1.0


@compiled
def cut(rows: Records, found: Record) -> None:
    """The demands, cut to what accounts can use, and the fair shares with them."""
    for r in range(RESOURCES):
        for s in range(len(rows)):
            found.demand[r, s] = found.wants[r, s]
            found.lower[r, s] = rows[s].floor[r]
        _fair_shares(rows, r, found)
    for _ in range(ROUNDS):
        changed = 0
        for s in range(len(rows)):
            changed |= _use(rows[s], s, found)
        for r in range(RESOURCES):
            if changed >> r & 1:
                _fair_shares(rows, r, found)


@compiled
def _fair_shares(rows: Records, r: int, found: Record) -> None:
    """The weighted max-min of batch over demand."""
    for s in range(len(rows)):
        found.upper[r, s] = min(found.demand[r, s], found.limit[r, s])
    level(found.batch[r], len(rows), found.weight[r], found.lower[r], found.upper[r], found.fair[r])


@compiled
def _use(row: Record, s: int, found: Record) -> int:
    """The demands of one account. Says which have changed, a bit for each resource."""
    changed = 0
    cpu, memory = _part(row, 0, s, found), _part(row, 1, s, found)
    least = max(cpu, memory) if min(cpu, memory) == NOTHING_NEEDED else min(cpu, memory)
    for r in range(RESOURCES):
        demand = found.wants[r, s]
        if (memory if r else cpu) != least:
            needed = float(found.next_up[r, s]) * least - ROUNDED_OFF
            if needed < NONE:
                demand = min(row.allocated[r] + math.ceil(needed) + found.spare[r, s], demand)
        if demand != found.demand[r, s]:
            found.demand[r, s] = demand
            changed |= 1 << r
    return changed


@compiled
def _part(row: Record, r: int, s: int, found: Record) -> float:
    """The part of what it would start next for which its fair share suffices. A demand that was cut before and is met
    is none that it runs out of first.
    """
    demand, fair = found.demand[r, s], found.fair[r, s]
    if found.next_up[r, s] == 0 or (demand != found.wants[r, s] and fair >= demand):
        return NOTHING_NEEDED
    return float(max(fair - row.allocated[r], 0) / found.next_up[r, s])
