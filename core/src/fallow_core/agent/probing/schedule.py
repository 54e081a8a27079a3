"""When a node is to be looked at again, and whether at once with everything. Pure.

A quick look reads a few files: memory in use, and the CPU in use that is not that of batch groups. A full look reads
all processes. Between two full looks quick ones are made:

    due   = headroom / (2 × rise)      from 10 ms to 1 s; headroom: up to the memory threshold
    rise  = the fastest one seen, which is forgotten with a half-life, but no less than 1 GiB/s

Half of the time to the threshold at the fastest rise: so the last quick look before the threshold is crossed is close
to it. CPU has no such warning, a load is there at once: where batch is limited and CPUs are contended it is looked at
every 50 ms. But not while batch has used next to nothing for a while: a lower limit would give nobody anything. For a
moment it may do so just because it has used up its limit, which counts for a period of up to a second.

A full look is due at once when memory has crossed the threshold or has moved by a share of the node since the last one;
when CPU besides batch has, the limits of batch are due. Otherwise a full look is due at its interval, which is longer
when nothing changed for a while.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from fallow_hookspecs import ResourceName

SHORTEST_SECONDS, LONGEST_SECONDS = 0.01, 1.0
CPU_SECONDS = 0.05
IDLE_AFTER_SECONDS = 2.0
"""After so long without use batch is idle."""
LEAST_RISE = float(1 << 30)
RISE_HALF_LIFE_SECONDS = 10.0
MOVED_PERCENT: Mapping[ResourceName, int] = {"cpu": 5, "memory": 2}
"""So much of the node is worth a full look."""
CALM_AFTER_SECONDS = 10.0
CALM_INTERVAL_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What the pace goes by: memory in bytes, CPU in milli-cores, `None` where it does not matter.

    `cpu_is_quick`: batch is limited and CPUs may be contended.
    """

    memory_threshold: int | None
    memory_capacity: int
    cpu_capacity: int
    cpu_is_quick: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Quick:
    """What a quick look found. Over a short time: CPU in use by batch groups, and besides them."""

    at: float
    memory_used: int | None = None
    batch_milli: int | None = None
    others_milli: int | None = None


class ProbeDue(Enum):
    """What is due at once."""

    NOTHING = ""
    LOOK = "memory in use has changed"
    CROSSED = "memory in use has crossed the threshold"
    LIMIT = "CPU in use besides batch has changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceState:
    """The last quick look, and the fastest rise of memory in bytes a second.

    `memory_then` and `others_then` are what quick looks had found when the newest decisions were made; `None`: what is
    found next. `memory_decided`: what these were made with, which is counted more exactly.
    `batch_at`: when batch was last seen to use CPU, or might have done so.
    """

    last: Quick
    rise: float = 0.0
    batch_at: float = -math.inf
    memory_then: int | None = None
    memory_decided: int | None = None
    others_then: int | None = None


def decided(state: PaceState, memory_used: int | None) -> PaceState:
    """Decisions are made now, with so much memory in use: from here on what changes counts."""
    return replace(
        state,
        memory_then=state.last.memory_used,
        memory_decided=memory_used,
        others_then=state.last.others_milli,
    )


def after(state: PaceState, quick: Quick, thresholds: Thresholds) -> tuple[PaceState, float, ProbeDue]:
    """The state after a quick look, in how many seconds the next one is due, and what is due at once."""
    now = replace(
        state,
        last=quick,
        rise=_rise(state, quick),
        batch_at=state.batch_at if _is_idle(quick, thresholds) else quick.at,
        memory_then=quick.memory_used if state.memory_then is None else state.memory_then,
        others_then=quick.others_milli if state.others_then is None else state.others_then,
    )
    return now, _pause(now, thresholds), _due(state.last, now, thresholds)


def full_interval(interval_seconds: float, calm_seconds: float) -> float:
    """The time between full looks where nothing calls for one, after nothing has changed for `calm_seconds`."""
    return max(interval_seconds, CALM_INTERVAL_SECONDS) if calm_seconds >= CALM_AFTER_SECONDS else interval_seconds


def moved(now: int, then: int, capacity: int, resource: ResourceName) -> bool:
    """Whether something has changed by so much of the node that it is worth a look."""
    return abs(now - then) * 100 > capacity * MOVED_PERCENT[resource]


def _rise(state: PaceState, quick: Quick) -> float:
    seconds = quick.at - state.last.at
    if seconds <= 0:
        return state.rise
    kept = state.rise * math.pow(0.5, seconds / RISE_HALF_LIFE_SECONDS)
    if quick.memory_used is None or state.last.memory_used is None:
        return kept
    return max(kept, (quick.memory_used - state.last.memory_used) / seconds)


def _is_idle(quick: Quick, thresholds: Thresholds) -> bool:
    batch = quick.batch_milli
    return batch is not None and not moved(batch, 0, thresholds.cpu_capacity, "cpu")


def _pause(state: PaceState, thresholds: Thresholds) -> float:
    used, threshold = state.last.memory_used, thresholds.memory_threshold
    idles = state.last.at - state.batch_at >= IDLE_AFTER_SECONDS
    pause = CPU_SECONDS if thresholds.cpu_is_quick and not idles else LONGEST_SECONDS
    if threshold is not None and used is not None:
        if used < threshold:
            pause = min(pause, (threshold - used) / (2 * max(state.rise, LEAST_RISE)))
        elif _had_less(state, threshold):
            return SHORTEST_SECONDS
    return max(pause, SHORTEST_SECONDS)


def _due(before: Quick, state: PaceState, thresholds: Thresholds) -> ProbeDue:
    used, then, threshold = state.last.memory_used, state.memory_then, thresholds.memory_threshold
    if used is not None and then is not None:
        if threshold is not None and used >= threshold:
            was_below = before.memory_used is None or before.memory_used < threshold
            had_less = _had_less(state, threshold)
            if was_below and had_less:
                return ProbeDue.CROSSED
            # It was below in between, unseen by a full look; or one right at the threshold saw a little less.
            if was_below or had_less:
                return ProbeDue.LOOK
        if moved(used, then, thresholds.memory_capacity, "memory"):
            return ProbeDue.LOOK
    others, then = state.last.others_milli, state.others_then
    if thresholds.cpu_is_quick and others is not None and then is not None:
        return ProbeDue.LIMIT if moved(others, then, thresholds.cpu_capacity, "cpu") else ProbeDue.NOTHING
    return ProbeDue.NOTHING


def _had_less(state: PaceState, threshold: int) -> bool:
    """Whether the newest decisions were made with less than the threshold."""
    return state.memory_decided is not None and state.memory_decided < threshold
