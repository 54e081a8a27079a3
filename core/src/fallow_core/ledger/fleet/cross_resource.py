"""`ledger.together`: what accounts can use of one resource, given the other one."""

import math

from fallow_core.ledger.cross_resource import ROUNDED_OFF, ROUNDS
from fallow_core.ledger.fleet.arrays import NONE, Record, Records, compiled
from fallow_core.ledger.fleet.lanes import LANES
from fallow_core.ledger.fleet.sharing import fair_shares

NOTHING_NEEDED = -1.0


@compiled
def cut(sides: Records) -> None:
    """The demands, cut to what accounts can use, and the fair shares with them."""
    for side in sides:
        for s in range(len(side.share)):
            for i in range(LANES):
                side.demand[s, i] = side.wants[s, i]
        fair_shares(side)
    for _ in range(ROUNDS):
        changed = _use(sides)
        for r in range(len(sides)):
            if changed >> r & 1:
                fair_shares(sides[r])


@compiled
def _use(sides: Records) -> int:
    """The demands of the accounts. Says which have changed, a bit for each resource."""
    changed = 0
    for i in range(LANES):
        for s in range(len(sides[0].share)):
            cpu, memory = _part(sides[0], s, i), _part(sides[1], s, i)
            least = max(cpu, memory) if min(cpu, memory) == NOTHING_NEEDED else min(cpu, memory)
            changed |= _demand(sides[0], cpu, least, s, i) | _demand(sides[1], memory, least, s, i) << 1
    return changed


@compiled
def _part(side: Record, s: int, i: int) -> float:
    """The part of what it would start next for which its fair share suffices. A demand that was cut before and is met
    is none that it runs out of first.
    """
    demand, fair, next_up = side.demand[s, i], side.fair[s, i], side.next_up[s, i]
    part = max(fair - side.allocated[s, i], 0) / max(next_up, 1)
    needs_nothing = (next_up == 0) | ((demand != side.wants[s, i]) & (fair >= demand))
    return NOTHING_NEEDED if needs_nothing else part


@compiled
def _demand(side: Record, part: float, least: float, s: int, i: int) -> int:
    """The demand, cut where another part is the least one; whether it has changed."""
    needed = min(float(side.next_up[s, i]) * least - ROUNDED_OFF, float(NONE))
    usable = min(side.allocated[s, i] + math.ceil(needed) + side.spare[s, i], side.wants[s, i])
    demand = side.wants[s, i] if part == least else usable
    changed = int(demand != side.demand[s, i])
    side.demand[s, i] = demand
    return changed
