"""Weighted max-min: raise all shares with one level until the total is used up, each within its own bounds."""

from collections.abc import Sequence
from typing import NamedTuple


class Bounds(NamedTuple):
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
    if len(bounds) == 1:
        return [total]
    shares = [0] * len(bounds)
    free = [(i, b.weight, low, high) for i, (b, low, high) in enumerate(zip(bounds, least, most, strict=True))]
    while free:
        weights = sum(weight for _, weight, _, _ in free)
        within = [max(min(total * weight, high * weights), low * weights) for _, weight, low, high in free]
        excess = sum(within) - total * weights
        left, rest = total, []
        for each, amount in zip(free, within, strict=True):
            if excess == 0 or (amount - total * each[1]) * excess > 0:
                shares[each[0]] = amount // weights
                left -= amount // weights
            else:
                rest.append(each)
        total, free = left, rest
    return shares
