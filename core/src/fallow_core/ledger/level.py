"""Weighted max-min: raise all shares with one level until the total is used up, each within its own bounds."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """One share: it is `weight` × level, but at least `lower`, and at most `upper` (`None`: no upper bound)."""

    weight: int
    lower: int
    upper: int | None = None


def level(total: int, bounds: list[Bounds]) -> list[int]:
    """The shares, rounded down. If the lower bounds alone are more than the total, they are the shares.

    Exact and independent of order: shares that break a bound are fixed at it, those on the side that breaks the bounds
    more first, until no bound is broken.
    """
    shares: list[Fraction | None] = [None] * len(bounds)
    while open_ones := [i for i, share in enumerate(shares) if share is None]:
        left = total - sum((share for share in shares if share is not None), Fraction(0))
        weights = sum(bounds[i].weight for i in open_ones)
        wanted = {i: left * bounds[i].weight / weights for i in open_ones}
        clamped = {i: _clamp(wanted[i], bounds[i]) for i in open_ones}
        excess = sum(clamped.values(), Fraction(0)) - left
        for i in open_ones:
            broken = clamped[i] - wanted[i]
            if excess == 0 or (broken != 0 and (broken > 0) == (excess > 0)):
                shares[i] = clamped[i]
    return [int(share) for share in shares if share is not None]


def _clamp(value: Fraction, bounds: Bounds) -> Fraction:
    if bounds.upper is not None:
        value = min(value, Fraction(max(bounds.upper, bounds.lower)))
    return max(value, Fraction(bounds.lower))
