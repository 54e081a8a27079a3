"""What accounts can use of one resource, given the other one: a task needs both.

An account that runs out of memory at its fair share cannot use all of its fair share of CPU. What it cannot use it does
not want: otherwise it would hold CPU that others wait for, and they would drain for one that nobody can help. So its
demand for each resource but the one it runs out of first is cut to

    allocated + what it would start next × the part of that for which the first one suffices + spare

That leaves more to others, who may then run out of something else: it is computed `ROUNDS` times, each time from the
fair shares with the demands of the time before.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from fallow_core.ledger.max_min import Bounds, level
from fallow_core.ledger.sharing import Claim

ROUNDS = 2
ROUNDED_OFF = 2.0**-20
"""So much may a float be above the whole number that it stands for: parts are floats, amounts stay integers."""


class Need(NamedTuple):
    """One account and one resource. The demand of `claim` is what it wants as if there were no other resource.

    `next_up`: what it would start next: what is pending, or where that is unknown as much again as it has; only the
    ratio to the other resource counts then. `spare`: what it gets on top, as a part of a task is of no use.
    """

    claim: Claim
    next_up: int
    spare: int


def cut(batches: Sequence[int], needs: Sequence[Sequence[Need]]) -> tuple[list[list[Claim]], list[int | None]]:
    """The claims with cut demands, and the resource that each account runs out of first: `None` if nothing was cut.

    Resources, and in each the accounts, in the order of the arguments.
    """
    demands = [[need.claim.demand for need in of] for of in needs]
    first: list[int | None] = [None] * len(needs[0])
    for _ in range(ROUNDS):
        before = [*map(tuple, demands)]
        fair = [_fair(*each) for each in zip(batches, needs, demands, strict=True)]
        for i in range(len(first)):
            own = [of[i] for of in needs]
            parts = [
                None if _cut_enough(need, of[i], shares[i]) else _part(need, shares[i])
                for need, of, shares in zip(own, demands, fair, strict=True)
            ]
            usable, first[i] = _usable(own, parts)
            for of, demand in zip(demands, usable, strict=True):
                of[i] = demand
        if before == [*map(tuple, demands)]:
            break
    return [list(map(_with_demand, of, cut_to)) for of, cut_to in zip(needs, demands, strict=True)], first


def _with_demand(need: Need, demand: int | None) -> Claim:
    return need.claim if demand == need.claim.demand else need.claim._replace(demand=demand)


def _fair(batch: int, needs: Sequence[Need], demands: Sequence[int | None]) -> list[int]:
    claims = [need.claim for need in needs]
    upper = [
        _lesser(c.limit, demand) if demand is not None else c.limit for c, demand in zip(claims, demands, strict=True)
    ]
    return level(
        batch, [Bounds(weight=c.weight, lower=c.floor, upper=most) for c, most in zip(claims, upper, strict=True)]
    )


def _cut_enough(need: Need, demand: int | None, fair: int) -> bool:
    """Whether a demand was cut before, and is met: the account does not run out of that resource first."""
    return demand is not None and demand != need.claim.demand and fair >= demand


def _part(need: Need, fair: int) -> float | None:
    """The part of what it would start next for which its fair share suffices; `None` where it needs nothing."""
    return max(fair - need.claim.allocated, 0) / float(need.next_up) if need.next_up else None


def _usable(needs: Sequence[Need], parts: Sequence[float | None]) -> tuple[list[int | None], int | None]:
    """The demands of one account, and the resource that cut them; one that suffices for as little is not cut."""
    wanted = [need.claim.demand for need in needs]
    known = [part for part in parts if part is not None]
    if not known:
        return wanted, None
    least = min(known)
    demands = [
        want if part == least else _lesser(want, _cut(need, least))
        for need, want, part in zip(needs, wanted, parts, strict=True)
    ]
    return demands, parts.index(least) if demands != wanted else None


def _cut(need: Need, part: float) -> int:
    return need.claim.allocated + math.ceil(float(need.next_up) * part - ROUNDED_OFF) + need.spare


def _lesser(demand: int | None, usable: int) -> int:
    return usable if demand is None else min(demand, usable)
