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
    least = [each.lower for each in bounds]
    if sum(least) >= total:
        return least
    most = [total if each.upper is None else max(each.upper, each.lower) for each in bounds]
    if sum(most) <= total:
        return most
    shares = [0] * len(bounds)
    free = list(range(len(bounds)))
    while free:
        weights = sum(bounds[i].weight for i in free)
        wanted = {i: total * bounds[i].weight for i in free}
        within = {i: max(min(wanted[i], most[i] * weights), least[i] * weights) for i in free}
        excess = sum(within.values()) - total * weights
        fixed = [i for i in free if excess == 0 or (within[i] - wanted[i]) * excess > 0]
        for i in fixed:
            shares[i] = within[i] // weights
        total -= sum(shares[i] for i in fixed)
        free = [i for i in free if i not in fixed]
    return shares
