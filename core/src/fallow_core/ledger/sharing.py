"""How batch capacity of one resource is divided over accounts, and an account's part over its rows.

Exclusive, so that no capacity is promised twice:

    fair    = weighted max-min of batch over demand, within limits, not below floors
    target  = max-min of batch over demand with each allocation as lower bound; where all that is wanted fits, the rest
              is spread by weight, so that idle capacity is at hand for whoever asks first

Shared: target = allocated + all that is free, for each account, within its limit.

Overdraft (allocations above batch), in both: accounts above fair fall first, down to fair; nobody else may add.
A drain: while one account is a unit or more below its fair share, each one above its own goes to
max(fair, allocated − step), so that nobody starves beside a full one.
Targets are whole units: the largest fractions are rounded up as far as there is room, ties in the order of the claims.
"""

from collections.abc import Sequence
from typing import NamedTuple

from fallow_core.ledger.max_min import Bounds, level

FULL_PERCENT = 80
"""An account that has allocated this share of its size in force counts as full."""


class Claim(NamedTuple):
    """What one account brings to one resource of a node. `demand` and `limit` are `None` where there is no bound."""

    weight: int
    allocated: int
    demand: int | None
    limit: int | None
    floor: int
    unit: int

    @property
    def most(self) -> int | None:
        """The most that it can use: its demand within its limit."""
        return min((bound for bound in (self.demand, self.limit) if bound is not None), default=None)


class Share(NamedTuple):
    """What one account gets. `drains_for_others`: it lies above its fair share while another one waits."""

    fair: int
    target: int
    drains_for_others: bool = False


def demand(allocated: int, in_force: int, pending: int | None, step: int, unit: int) -> int | None:
    """The most that an account wants: `None` for no bound.

    With what is pending known: allocated + pending. Otherwise an account that is full wants everything, and another one
    wants no more than the smallest size at which it is not full: with less it would at once count as full again.
    `step` is the room that it should have to start anything.
    """
    if pending is not None:
        return allocated + pending
    roomy = max(allocated + step, allocated * 100 // FULL_PERCENT + 1)
    roomy = -(-roomy // unit) * unit
    return None if in_force < roomy else roomy


def fair_shares(batch: int, claims: Sequence[Claim]) -> list[int]:
    """The weighted max-min of batch over demand, in the order of the claims."""
    return level(batch, [Bounds(weight=c.weight, lower=c.floor, upper=c.most) for c in claims])


def shares(batch: int, claims: Sequence[Claim], drain_step: int) -> list[Share]:
    """The share of each account, in the order of the claims."""
    fair = fair_shares(batch, claims)
    if sum(c.allocated for c in claims) > batch:
        return _fallen(batch, claims, fair)
    bounds = [Bounds(weight=c.weight, lower=max(c.allocated, c.floor), upper=c.most) for c in claims]
    most = [max(b.lower, b.upper) for b in bounds if b.upper is not None]
    if len(most) == len(bounds) and sum(most) <= batch:
        bounds = [Bounds(weight=c.weight, lower=m, upper=c.limit) for c, m in zip(claims, most, strict=True)]
    targets = whole_units(batch, level(batch, bounds), [c.unit for c in claims])
    if any(f - t >= c.unit for c, f, t in zip(claims, fair, targets, strict=True)):
        return [_drained(c, f, t, drain_step) for c, f, t in zip(claims, fair, targets, strict=True)]
    return [Share(fair=f, target=t) for f, t in zip(fair, targets, strict=True)]


def promised_to_all(batch: int, claims: Sequence[Claim], drain_step: int) -> list[Share]:
    """The same where all that is free is promised to each account. Nobody drains for another one."""
    fair = fair_shares(batch, claims)
    free = batch - sum(c.allocated for c in claims)
    if free < 0:
        return _fallen(batch, claims, fair)
    return [Share(fair=f, target=_promised(claim, free)) for f, claim in zip(fair, claims, strict=True)]


def _promised(claim: Claim, free: int) -> int:
    most = claim.allocated + free
    return max(claim.allocated, (most if claim.limit is None else min(most, claim.limit)) // claim.unit * claim.unit)


def _fallen(batch: int, claims: Sequence[Claim], fair: Sequence[int]) -> list[Share]:
    falling = [
        Bounds(weight=c.weight, lower=min(c.allocated, f), upper=c.allocated) for c, f in zip(claims, fair, strict=True)
    ]
    targets = whole_units(batch, level(batch, falling), [c.unit for c in claims])
    return [Share(fair=f, target=t) for f, t in zip(fair, targets, strict=True)]


def _drained(claim: Claim, fair: int, target: int, step: int) -> Share:
    if claim.allocated <= fair:
        return Share(fair=fair, target=target)
    target = max(fair, claim.allocated - max(step, claim.unit))
    return Share(fair=fair, target=target // claim.unit * claim.unit, drains_for_others=True)


class Part(NamedTuple):
    """What one row brings to the division of its account's target. `most`: more it may not get; `None`: no bound."""

    allocated: int
    floor: int
    most: int | None
    unit: int


def divided(target: int, parts: Sequence[Part]) -> list[int]:
    """An account's target over its rows, in whole units: what is free is split by allocation, an idle row by its floor.

    A row gets at least what it has allocated; below the sum of that all rows fall by the same share, down to floors.
    """
    if target < sum(part.allocated for part in parts):
        bounds = [Bounds(weight=max(p.allocated, 1), lower=p.floor, upper=p.allocated) for p in parts]
    else:
        bounds = [Bounds(weight=max(p.allocated, p.floor, p.unit), lower=p.allocated, upper=p.most) for p in parts]
    return whole_units(target, level(target, bounds), [p.unit for p in parts])


def whole_units(total: int, amounts: Sequence[int], units: Sequence[int]) -> list[int]:
    """Amounts rounded down to their units; as long as the total has room, those with the largest fractions are rounded
    up instead, ties in order.
    """
    rounded = [amount // unit * unit for amount, unit in zip(amounts, units, strict=True)]
    left = total - sum(rounded)
    for i in sorted(range(len(amounts)), key=lambda i: (rounded[i] - amounts[i]) / units[i]):
        left -= units[i]
        if rounded[i] == amounts[i] or left < 0:
            break
        rounded[i] += units[i]
    return rounded


def grown(
    batch: int, wanted: Sequence[int], newest: Sequence[int], beliefs: Sequence[int], units: Sequence[int]
) -> list[int]:
    """Wanted sizes, with growth cut to what nobody may still believe to have.

    That is batch − the sum of all beliefs, each rounded up to its unit. If it is less than nothing, no size grows above
    the `newest` one sent. Otherwise all growth above beliefs together stays within it, so that two rows do not grow
    into the same capacity.
    """
    kept = [-(-belief // unit) * unit for belief, unit in zip(beliefs, units, strict=True)]
    free = batch - sum(kept)
    if free < 0:
        return [min(want, new) for want, new in zip(wanted, newest, strict=True)]
    growth = [max(want - keep, 0) for want, keep in zip(wanted, kept, strict=True)]
    allowed = level(free, [Bounds(weight=1, lower=0, upper=more) for more in growth])
    whole = whole_units(free, allowed, units)
    return [want - more + min(more, less) for want, more, less in zip(wanted, growth, whole, strict=True)]


def beyond_dead_band(newest: int, wanted: int, dead_band_percent: int) -> bool:
    """Whether two sizes differ by more than the dead band: only that is worth a call by itself."""
    return abs(wanted - newest) * 100 > newest * dead_band_percent
