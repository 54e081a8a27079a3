"""`ledger.level` and `whole_units` for many at once: shares on the first axis, problems on the second."""

import numpy as np

from fallow_core.ledger.fleet.arrays import Bools, Ints, in_units, quotient


def levels(total: Ints, weight: Ints, lower: Ints, upper: Ints) -> Ints:
    """The shares of each problem, rounded down. A share that is not there has weight and bounds 0.

    Problems where all lower or all upper bounds hold are done at once. In the others shares that break a bound are
    fixed at it, those on the side that breaks the bounds more first; what then is left per weight is the level.
    """
    most = np.minimum(upper, total)
    np.maximum(most, lower, out=most)
    fits = most.sum(0) <= total
    full = lower.sum(0) >= total
    if full.any():
        np.copyto(most, lower, where=full & ~fits)
    rest = np.flatnonzero(~(fits | full))
    if rest.size == total.size:
        return _solved(total, weight, lower, most)
    if rest.size:
        most[:, rest] = _solved(total.take(rest), weight.take(rest, 1), lower.take(rest, 1), most.take(rest, 1))
    return most


def _solved(total: Ints, weight: Ints, lower: Ints, upper: Ints) -> Ints:
    """The same where bounds of both sides leave room.

    Amounts are taken × the sum of the weights. `left` is what is not fixed yet, `free` the weights of the others.
    """
    free, low, high, left = weight, lower, upper, total
    at, levels_, weights = np.arange(total.size), total.copy(), np.ones_like(total)
    while True:
        sum_ = free.sum(0)
        wanted = left * free
        broken = low * sum_
        np.maximum(broken, wanted, out=broken)
        np.minimum(broken, high * sum_, out=broken)
        broken -= wanted
        excess = broken.sum(0)
        levels_[at], weights[at] = left, sum_
        open_ = np.flatnonzero(excess)
        if not open_.size:
            break
        if open_.size < 0.7 * excess.size:
            at, left, excess = at.take(open_), left.take(open_), excess.take(open_)
            free, low, high, broken = (a.take(open_, 1) for a in (free, low, high, broken))
        broken *= np.sign(excess)
        keep = (broken <= 0).astype(np.int64)
        bound = np.where(excess > 0, low, high)
        bound *= 1 - keep
        left = left - bound.sum(0)
        free, low, high = free * keep, low * keep, high * keep
    found = _rounded(levels_ * weight, weights)
    np.maximum(found, lower, out=found)
    np.minimum(found, upper, out=found)
    return found


def _rounded(a: Ints, b: Ints) -> Ints:
    """a / b rounded down: for a from 2⁵³ the float may be off by one."""
    found = quotient(a, b)
    if a.size and a.max() >= 1 << 53:
        left = a - found * b
        found += left >> 63
        found -= (b - 1 - left) >> 63
    return found


def whole_units(total: Ints, amounts: Ints, units: Ints) -> Ints:
    """Amounts rounded down to their units; as long as the total has room, those with the largest fractions are rounded
    up instead, ties in order.
    """
    rounded = in_units(amounts, units)
    parts = amounts - rounded
    left = total - rounded.sum(0)
    rest = np.flatnonzero(((parts > 0) & (units <= left)).any(0))
    if rest.size:
        rounded[:, rest] += _rounded_up(left.take(rest), parts.take(rest, 1), units.take(rest, 1))
    return rounded


def _rounded_up(left: Ints, parts: Ints, units: Ints) -> Ints:
    """What is added to each amount: its unit or nothing. The largest fractions come first."""
    fractions = parts.astype(np.float64) / units.astype(np.float64)
    count = len(fractions)
    before = [
        sum(
            ((fractions[j] >= fractions[i]) if j < i else (fractions[j] > fractions[i])).view(np.int8)
            for j in range(count)
            if j != i
        )
        for i in range(count)
    ]
    more = np.zeros_like(parts)
    for turn in range(count):
        for i in range(count):
            fits: Bools = (before[i] == turn) & (parts[i] > 0) & (units[i] <= left)
            added = units[i] * fits
            more[i] += added
            left = left - added
    return more
