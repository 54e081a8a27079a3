"""Weighted max-min: raise all shares with one level until the total is used up, each within its own bounds."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """One share: it is `weight` × level, but at least `lower`, and at most `upper` (`None`: no upper bound)."""

    weight: int
    lower: int
    upper: int | None = None


def level(total: int, bounds: Sequence[Bounds]) -> list[int]:
    """The shares, rounded down. If the lower bounds alone are more than the total, they are the shares.

    Independent of order: shares that break a bound are fixed at it, those on the side that breaks the bounds more
    first, until no bound is broken. All amounts are taken × the sum of the weights, so that integers stay exact.
    """
    shares = [0] * len(bounds)
    free = list(range(len(bounds)))
    while free:
        weights = sum(bounds[i].weight for i in free)
        wanted = {i: total * bounds[i].weight for i in free}
        within = {i: _clamped(wanted[i], bounds[i], weights) for i in free}
        excess = sum(within.values()) - sum(wanted.values())
        fixed = [i for i in free if excess == 0 or (within[i] - wanted[i]) * excess > 0]
        for i in fixed:
            shares[i] = within[i] // weights
        total -= sum(shares[i] for i in fixed)
        free = [i for i in free if i not in fixed]
    return shares


def _clamped(scaled: int, bounds: Bounds, scale: int) -> int:
    if bounds.upper is not None:
        scaled = min(scaled, bounds.upper * scale)
    return max(scaled, bounds.lower * scale)
