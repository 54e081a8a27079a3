"""`ledger.level` and `sharing.whole_units`, for the accounts of a node."""

from fallow_core.ledger.fleet.amounts import in_units
from fallow_core.ledger.fleet.arrays import Ints, compiled


@compiled
def level(total: int, count: int, weight: Ints, lower: Ints, upper: Ints, shares: Ints) -> None:
    """Fill in the first `count` shares. An upper bound above the total counts as the total: it changes no share."""
    least = most = 0
    for i in range(count):
        least += lower[i]
        shares[i] = max(min(upper[i], total), lower[i])
        most += shares[i]
    if least >= total:
        for i in range(count):
            shares[i] = lower[i]
    elif most > total:
        free = (1 << count) - 1
        while free:
            total, free = _fix(total, free, count, weight, lower, shares)


@compiled
def _fix(total: int, free: int, count: int, weight: Ints, lower: Ints, shares: Ints) -> tuple[int, int]:
    """Fix the shares that break the bounds more, or the rest of them; what is left, and which are still free, as bits.

    Those that are free hold their upper bounds.
    """
    weights = excess = 0
    for i in range(count):
        weights += weight[i] * (free >> i & 1)
    for i in range(count):
        wanted = total * weight[i]
        excess += (max(min(wanted, shares[i] * weights), lower[i] * weights) - wanted) * (free >> i & 1)
    left = total
    for i in range(count):
        wanted = total * weight[i]
        below, above = wanted < lower[i] * weights, wanted > shares[i] * weights
        if free >> i & 1 and (excess == 0 or (below and excess > 0) or (above and excess < 0)):
            if below:
                shares[i] = lower[i]
            elif not above:
                shares[i] = wanted // weights
            left -= shares[i]
            free &= ~(1 << i)
    return left, free


@compiled
def whole_units(total: int, count: int, amounts: Ints, units: Ints) -> None:
    """Round amounts in their place."""
    left, parts = total, 0
    for i in range(count):
        rounded = in_units(amounts[i], units[i])
        left -= rounded
        parts |= (rounded < amounts[i]) << i
    if parts == 0:
        return
    raised = 0
    while parts != raised:
        first, largest = 0, 0.0
        for i in range(count):
            part = (amounts[i] - in_units(amounts[i], units[i])) / units[i]
            if part > largest and not raised >> i & 1:
                first, largest = i, part
        left -= units[first]
        if left < 0:
            break
        raised |= 1 << first
    for i in range(count):
        amounts[i] = in_units(amounts[i], units[i]) + units[i] * (raised >> i & 1)
