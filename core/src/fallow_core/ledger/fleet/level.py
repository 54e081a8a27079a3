"""`ledger.level` and `whole_units` for many at once: shares on the first axis, problems on the second."""

import numpy as np

from fallow_core.ledger.fleet.arrays import Bools, Ints, in_units


def levels(total: Ints, weight: Ints, lower: Ints, upper: Ints) -> Ints:
    """The shares of each problem, rounded down. A share that is not there has weight and bounds 0.

    Problems where all lower or all upper bounds hold are done at once. In the others shares that break a bound are
    fixed at it, those on the side that breaks the bounds more first; what then is left per weight is the level.
    """
    most = np.maximum(np.minimum(upper, total), lower)
    fits = most.sum(0) <= total
    found = np.where(fits, most, lower)
    rest = np.flatnonzero(~fits & (lower.sum(0) < total))
    if rest.size:
        found[:, rest] = _solved(total.take(rest), weight.take(rest, 1), lower.take(rest, 1), most.take(rest, 1))
    return found


def _solved(total: Ints, weight: Ints, lower: Ints, upper: Ints) -> Ints:
    """The same where bounds of both sides leave room. Amounts are taken × the sum of the weights."""
    weights = weight.sum(0)
    wanted = total * weight
    within = np.minimum(np.maximum(wanted, lower * weights), upper * weights)
    excess = within.sum(0) - total * weights
    found = _rounded(within, weights)
    open_ = np.flatnonzero(excess)
    if open_.size:
        found[:, open_] = _with_fixed(
            total.take(open_),
            weight.take(open_, 1),
            lower.take(open_, 1),
            upper.take(open_, 1),
            (within - wanted).take(open_, 1),
            excess.take(open_),
        )
    return found


def _with_fixed(total: Ints, weight: Ints, lower: Ints, upper: Ints, broken: Ints, excess: Ints) -> Ints:
    """One step nearer: what breaks a bound on the side of the excess is fixed there."""
    fixed = broken * np.sign(excess) > 0
    free = ~fixed
    bound = np.where(excess > 0, lower, upper) * fixed
    found = _solved(total - bound.sum(0), weight * free, lower * free, upper * free)
    found += bound
    return found


def _rounded(a: Ints, b: Ints) -> Ints:
    """a / b rounded down, of any size: the float may be off by one."""
    found = (a.astype(np.float64) / b.astype(np.float64)).astype(np.int64)
    left = found * b
    np.subtract(a, left, out=left)
    found -= left < 0
    found += left >= b
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
