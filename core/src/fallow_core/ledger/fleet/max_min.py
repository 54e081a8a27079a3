"""`ledger.level` and `sharing.whole_units`, for the accounts of nodes side by side."""

from fallow_core.ledger.fleet.amounts import in_units, quotient
from fallow_core.ledger.fleet.arrays import Record, compiled
from fallow_core.ledger.fleet.lanes import LANES


@compiled
def level(side: Record) -> None:
    """Fill in `share`: `total` within `lower` and `upper` by the weights in `free`.

    An upper bound above the total counts as the total: it changes no share.
    """
    for i in range(LANES):
        total = side.left[i] = side.total[i]
        least = most = 0
        for s in range(len(side.share)):
            upper = side.upper[s, i] = max(min(side.upper[s, i], total), side.lower[s, i])
            least += side.lower[s, i]
            most += upper
        for s in range(len(side.share)):
            side.share[s, i] = side.lower[s, i] if least >= total else side.upper[s, i]
            side.free[s, i] = side.free[s, i] if (least < total) & (total < most) else 0
    while _fix(side):
        pass
    _raise(side)


@compiled
def _fix(side: Record) -> int:
    """Fix the free shares that break the bounds more: they are `free` no longer. How many there were."""
    many = 0
    for i in range(LANES):
        weights = excess = 0
        for s in range(len(side.share)):
            weights += side.free[s, i]
        for s in range(len(side.share)):
            wanted = side.left[i] * side.free[s, i]
            within = max(min(wanted, side.upper[s, i] * weights), side.lower[s, i] * weights)
            excess += within - wanted if side.free[s, i] > 0 else 0
        left = side.left[i]
        for s in range(len(side.share)):
            lower, upper, wanted = side.lower[s, i], side.upper[s, i], left * side.free[s, i]
            below = (excess > 0) & (wanted < lower * weights)
            above = (excess < 0) & (wanted > upper * weights)
            fixed = (side.free[s, i] > 0) & (below | above)
            bound = lower if below else upper
            side.share[s, i] = bound if fixed else side.share[s, i]
            side.free[s, i] = 0 if fixed else side.free[s, i]
            side.left[i] -= bound if fixed else 0
            many += fixed
    return many


@compiled
def _raise(side: Record) -> None:
    """Raise those that are free still with one level."""
    for i in range(LANES):
        weights = 0
        for s in range(len(side.share)):
            weights += side.free[s, i]
        for s in range(len(side.share)):
            even = quotient(side.left[i] * side.free[s, i], max(weights, 1))
            within = max(min(even, side.upper[s, i]), side.lower[s, i])
            side.share[s, i] = within if side.free[s, i] > 0 else side.share[s, i]


@compiled
def whole_units(side: Record) -> None:
    """Round shares in their place: one is rounded up if there is room for it and for those with larger fractions."""
    for i in range(LANES):
        left = side.total[i]
        for s in range(len(side.share)):
            share, unit = side.share[s, i], side.unit[s, i]
            rounded = side.share[s, i] = in_units(share, unit)
            side.part[s, i] = (share - rounded) / unit
            left -= rounded
        for s in range(len(side.share)):
            part, needed = side.part[s, i], 0
            for other in range(len(side.share)):
                larger = side.part[other, i] > part
                first = larger | ((side.part[other, i] == part) & (other <= s))
                needed += side.unit[other, i] if first else 0
            side.share[s, i] += side.unit[s, i] if (part > 0.0) & (needed <= left) else 0
