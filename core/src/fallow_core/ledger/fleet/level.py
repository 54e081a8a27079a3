"""`ledger.level` and `whole_units` for many at once: shares on the first axis, problems on the others."""

import numpy as np

from fallow_core.ledger.fleet.arrays import AnyArray, Bools, Floats


def levels(total: Floats, weight: Floats, lower: Floats, upper: Floats, guess: AnyArray) -> Floats:
    """The shares of each problem, rounded down. A share that is not there has weight and bounds 0.

    `guess` is a level that may be right, such as that of a moment ago; it is brought up to date. All that counts of it
    is which shares it puts at a bound: the level of the others follows from that, and is right if all shares together
    are the total. The few problems where they are not are solved.
    """
    most = np.minimum(upper, total)
    np.maximum(most, lower, out=most)
    goal = np.minimum(most.sum(0), total)
    np.maximum(goal, lower.sum(0), out=goal)
    share = weight * guess
    shares = np.maximum(share, lower)
    np.minimum(shares, most, out=shares)
    free = shares == share
    of_free = weight * free
    weights = of_free.sum(0)
    shares -= shares * free
    left = goal - shares.sum(0)
    bound = weights == 0  # the guess itself is the level, if it is right
    left *= ~bound
    left += guess * bound
    weights += bound
    within = _within(left, weights, weight, lower, most)
    wrong = np.flatnonzero(within.sum(0) != goal * weights)
    guess[...] = left / weights
    within /= weights
    np.floor(within, out=within)
    if wrong.size:
        _solve(wrong, goal, weight, lower, most, within, guess)
    return within


def _within(left: Floats, weights: Floats, weight: Floats, lower: Floats, upper: Floats) -> Floats:
    """The shares × `weights` at the level `left` / `weights`."""
    within = weight * left
    np.maximum(within, lower * weights, out=within)
    np.minimum(within, upper * weights, out=within)
    return within


def picked(values: Floats, like: Floats, some: AnyArray) -> Floats:
    """Some problems of an array that may lack the axes that are all the same in it."""
    return np.broadcast_to(values, like.shape).reshape(len(like), -1).take(some, 1)


def _solve(
    some: AnyArray, goal: Floats, weight: Floats, lower: Floats, upper: Floats, shares: Floats, guess: AnyArray
) -> None:
    """Solve some of the problems, as `ledger.level` does: shares that break a bound are fixed at it, those on the side
    that breaks the bounds more first, until none is broken. That is done after as many rounds as there are shares.
    """
    weight, low, high = (picked(a, shares, some) for a in (weight, lower, upper))
    left, free, found = goal.reshape(-1).take(some), weight, np.zeros_like(weight)
    for _ in range(len(weight)):
        weights = free.sum(0)
        wanted = left * free
        within = _within(left, weights, free, low, high)
        broken = within - wanted
        broken *= broken.sum(0)
        fixed: Bools = broken > 0
        if not fixed.any():
            break
        within *= fixed
        within /= np.maximum(weights, 1)
        found += within
        left = left - within.sum(0)
        keep = ~fixed
        free, low, high = free * keep, low * keep, high * keep
    weights = np.maximum(free.sum(0), 1)
    within = np.floor(left * free / weights)
    np.maximum(within, low, out=within)
    np.minimum(within, high, out=within)
    found += within
    shares.reshape(len(shares), -1)[:, some] = found
    lowest = picked(lower, shares, some)
    guess.reshape(-1)[some] = ((found > lowest) * found / np.maximum(weight, 1)).max(0)


def whole_units(total: Floats, amounts: Floats, units: Floats) -> Floats:
    """Amounts rounded down to their units; as long as the total has room, those with the largest fractions are rounded
    up instead, ties in order.
    """
    rounded = amounts / units
    np.floor(rounded, out=rounded)
    rounded *= units
    parts = amounts - rounded
    added = units * (parts > 0)
    parts /= units
    left = total - rounded.sum(0)
    room = [added[i].copy() for i in range(len(added))]
    for i in range(len(added)):
        for j in range(i):
            earlier = parts[j] >= parts[i]
            room[i] += added[j] * earlier
            room[j] += added[i] * ~earlier
    for i, needed in enumerate(room):
        added[i] *= needed <= left
    rounded += added
    return rounded
