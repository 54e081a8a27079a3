"""`GrowthDelay` of all rows and resources of a block: how much of a growth has held for long enough."""

import numpy as np

from fallow_core.ledger.falls import AHEAD_SECONDS, DRAIN_AFTER_SECONDS, STEADY_FALLS, STEADY_SECONDS, Falls
from fallow_core.ledger.fleet.arrays import Record, compiled
from fallow_core.ledger.fleet.columns import RESOURCES
from fallow_core.ledger.fleet.ticks import Ticks
from fallow_core.ledger.growth_delay import DEPTH, GrowthDelay

HOLD = np.dtype(
    [
        ("since", np.float64, RESOURCES),
        ("newest", np.int64, RESOURCES),
        ("targets", np.int64, (RESOURCES, DEPTH)),
        ("ticks", np.uint16, (RESOURCES, DEPTH)),
        ("count", np.int8, RESOURCES),
        ("fell_at", np.float64, RESOURCES),
        ("fell_to", np.int64, RESOURCES),
        ("falls", np.int8, RESOURCES),
        ("over_since", np.float64, RESOURCES),
    ]
)
"""The holds of a row, by resource. `since` is NaN where nothing was watched yet. `ticks`: the numbers of the times of
the first `count` targets. The last four are `Falls`.
"""


def plain(record: Record, r: int, ticks: Ticks) -> GrowthDelay | None:
    """The form for one row; `None` where nothing was watched yet."""
    if np.isnan(record["since"][r]):
        return None
    count = record["count"][r]
    times, targets = ticks.times[record["ticks"][r][:count]].tolist(), record["targets"][r][:count].tolist()
    falls = Falls(
        fell_at=float(record["fell_at"][r]),
        fell_to=int(record["fell_to"][r]),
        count=int(record["falls"][r]),
        over_since=float(record["over_since"][r]),
    )
    since, newest = float(record["since"][r]), int(record["newest"][r])
    return GrowthDelay(since, newest, list(zip(times, targets, strict=True)), falls)


def adopt(record: Record, r: int, hold: GrowthDelay, ticks: Ticks) -> None:
    """Take over the form for one row."""
    record["since"][r], record["newest"][r] = hold.since, hold.newest
    record["count"][r] = len(hold.targets)
    record["fell_at"][r], record["fell_to"][r] = hold.falls.fell_at, hold.falls.fell_to
    record["falls"][r], record["over_since"][r] = hold.falls.count, hold.falls.over_since
    for i, (time, target) in enumerate(hold.targets):
        record["ticks"][r, i], record["targets"][r, i] = ticks.number(time), target


@compiled
def push(hold: Record, r: int, newest: int, target: int, now: float, tick: int, times: Record, oldest: float) -> None:
    """`GrowthDelay.push`. `tick` is the number of `now`; targets from before `oldest` are forgotten."""
    if np.isnan(hold.since[r]):
        hold.since[r] = now
        hold.fell_at[r], hold.fell_to[r], hold.falls[r], hold.over_since[r] = -np.inf, 0, 0, np.inf
    elif newest > hold.newest[r]:
        hold.since[r] = now
    elif newest < hold.newest[r]:
        continues = now - hold.fell_at[r] <= STEADY_SECONDS
        hold.falls[r] = min(hold.falls[r] + 1, STEADY_FALLS) if continues else 1
        hold.fell_at[r], hold.fell_to[r] = now, target
    hold.newest[r] = newest
    if hold.count[r] > 0 and times.times[hold.ticks[r, 0]] < oldest:
        _forget(hold, r, times, oldest)
    count = 0
    for i in range(DEPTH):
        count += (i < hold.count[r]) & (hold.targets[r, i] < target)
    if count == DEPTH:
        least = _closest(hold, r)
        hold.targets[r, least + 1] = hold.targets[r, least]
        count = _remove(hold, r, least, 1, count)
    hold.ticks[r, count], hold.targets[r, count] = tick, target
    hold.count[r] = count + 1


@compiled
def _forget(hold: Record, r: int, times: Record, oldest: float) -> None:
    """Forget targets from before `oldest`."""
    gone = 0
    while gone < hold.count[r] and times.times[hold.ticks[r, gone]] < oldest:
        gone += 1
    hold.count[r] = _remove(hold, r, 0, gone, hold.count[r])


@compiled
def _remove(hold: Record, r: int, first: int, gone: int, count: int) -> int:
    """Remove some entries; how many are left."""
    for i in range(first, count - gone):
        hold.ticks[r, i], hold.targets[r, i] = hold.ticks[r, i + gone], hold.targets[r, i + gone]
    return count - gone


@compiled
def _closest(hold: Record, r: int) -> int:
    """The first of the two targets that differ least."""
    least = 0
    for i in range(1, DEPTH - 1):
        if hold.targets[r, i + 1] - hold.targets[r, i] < hold.targets[r, least + 1] - hold.targets[r, least]:
            least = i
    return least


@compiled
def least_since(hold: Record, r: int, now: float, seconds: float, times: Record) -> int:
    """`GrowthDelay.least`."""
    if now - hold.since[r] < seconds:
        return int(hold.newest[r])
    first = 0
    while times.times[hold.ticks[r, first]] < now - seconds:
        first += 1
    return int(hold.targets[r, first])


@compiled
def drains(hold: Record, r: int, now: float, over: bool) -> bool:
    """`Falls.note`, and `Falls.drains`."""
    hold.over_since[r] = min(hold.over_since[r], now) if over else np.inf
    return bool(now - hold.over_since[r] >= DRAIN_AFTER_SECONDS)


@compiled
def ahead(hold: Record, r: int, now: float, target: int) -> int:
    """`Falls.ahead`."""
    since = now - hold.fell_at[r]
    if hold.falls[r] < STEADY_FALLS or since <= 0 or since > STEADY_SECONDS:
        return 0
    return int(max(hold.fell_to[r] - target, 0) * AHEAD_SECONDS / since)
