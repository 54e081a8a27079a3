"""How batch capacity of one resource is divided over accounts (mode `exclusive`), and an account's part over its rows.

    fair    = weighted max-min of batch over demand, within limits, not below floors
    target  = max-min of batch over demand with each allocation as lower bound; what then is left is spread by weight,
              so that idle capacity is at hand for whoever asks first

Overdraft (allocations above batch): accounts above fair fall first, down to max(fair, floor); nobody else may add.
A drain: while one account is below its fair share and wants more, each one above its own goes to
max(fair, allocated − step), so that nobody starves beside a full one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fallow_core.ledger.level import Bounds, level

FULL_PERCENT = 80
"""An account that has allocated this share of its size in force counts as full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one account brings to one resource of a node. `demand` and `limit` are `None` where there is no bound."""

    weight: int
    allocated: int
    demand: int | None
    limit: int | None
    floor: int

    @property
    def most(self) -> int | None:
        """The most that it can use: its demand within its limit, but never below what it has allocated."""
        bounds = [bound for bound in (self.demand, self.limit) if bound is not None]
        return max(min(bounds), self.allocated) if bounds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one account gets. `drains_for_others`: it lies above its fair share while another one waits."""

    fair: int
    target: int
    drains_for_others: bool = False


def demand(allocated: int, in_force: int, pending: int | None, step: int) -> int | None:
    """The most that an account wants: `None` for no bound.

    With what is pending known: allocated + pending. Otherwise an account that is full wants everything, and another one
    wants `step` (the larger of its floor and its largest task) more than it has.
    """
    if pending is not None:
        return allocated + pending
    full = allocated * 100 >= in_force * FULL_PERCENT or in_force - allocated < step
    return None if full else allocated + step


def shares(batch: int, claims: Sequence[Claim], drain_step: int) -> list[Share]:
    """The share of each account, in the order of the claims."""
    fair = level(batch, [Bounds(weight=c.weight, lower=c.floor, upper=c.most) for c in claims])
    if sum(c.allocated for c in claims) > batch:
        bounds = [
            Bounds(weight=c.weight, lower=min(c.allocated, max(f, c.floor)), upper=c.allocated)
            for c, f in zip(claims, fair, strict=True)
        ]
        return [Share(fair=f, target=t) for f, t in zip(fair, level(batch, bounds), strict=True)]
    wanted = level(batch, [Bounds(weight=c.weight, lower=c.allocated, upper=c.most) for c in claims])
    if any(t < f and (c.most is None or t < c.most) for c, f, t in zip(claims, fair, wanted, strict=True)):
        return [_drained(c, f, t, drain_step) for c, f, t in zip(claims, fair, wanted, strict=True)]
    bounds = [Bounds(weight=c.weight, lower=t, upper=_limit(c)) for c, t in zip(claims, wanted, strict=True)]
    spread = level(batch, bounds)
    return [Share(fair=f, target=t) for f, t in zip(fair, spread, strict=True)]


def _drained(claim: Claim, fair: int, target: int, step: int) -> Share:
    if claim.allocated > fair:
        return Share(fair=fair, target=max(fair, claim.allocated - step), drains_for_others=True)
    return Share(fair=fair, target=target)


def _limit(claim: Claim) -> int | None:
    return None if claim.limit is None else max(claim.limit, claim.allocated)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one row brings to the division of its account's target."""

    allocated: int
    floor: int
    maximum: int | None
    unit: int


def divided(target: int, parts: Sequence[Part]) -> list[int]:
    """An account's target over its rows: what is free is split by allocation, an idle row by its floor.

    A row gets at least what it has allocated; below the sum of that all rows fall by the same share.
    """
    allocated = sum(part.allocated for part in parts)
    if target < allocated:
        bounds = [Bounds(weight=max(p.allocated, 1), lower=0, upper=p.allocated) for p in parts]
    else:
        bounds = [Bounds(weight=max(p.allocated, p.floor, p.unit), lower=p.allocated, upper=p.maximum) for p in parts]
    return level(target, bounds)


def whole_units(amounts: Sequence[int], units: Sequence[int]) -> list[int]:
    """Amounts as multiples of their units; whole units lost by that go to the largest remainders, ties in order.

    The sum never grows.
    """
    rounded = [amount // unit * unit for amount, unit in zip(amounts, units, strict=True)]
    left = sum(amounts) - sum(rounded)
    by_remainder = sorted(range(len(amounts)), key=lambda i: -((amounts[i] - rounded[i]) / units[i]))
    for i in by_remainder:
        if amounts[i] > rounded[i] and left >= units[i]:
            rounded[i] += units[i]
            left -= units[i]
    return rounded


def grown(wanted: Sequence[int], beliefs: Sequence[int], units: Sequence[int], free: int) -> list[int]:
    """Wanted sizes, with growth above a row's own belief cut to what nobody may still believe to have.

    `free` is batch − the sum of all beliefs. All growth together stays within it, so two rows cannot grow into the
    same capacity in one step.
    """
    growth = [max(want - belief, 0) for want, belief in zip(wanted, beliefs, strict=True)]
    allowed = level(max(free, 0), [Bounds(weight=max(g, 1), lower=0, upper=g) for g in growth])
    return [
        want if not more else (belief + less) // unit * unit
        for want, belief, unit, more, less in zip(wanted, beliefs, units, growth, allowed, strict=True)
    ]
