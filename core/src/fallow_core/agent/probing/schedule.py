"""Decides when the next probe of a node is due, and whether a full probe is due at once. Pure.

A quick probe reads a few files: memory in use, and the CPU in use outside of batch groups. A full probe reads all
processes. Quick probes run between two full probes:

    due   = headroom / (2 × rise)      from 10 ms to 1 s; headroom: up to the memory threshold
    rise  = the fastest rise measured, which decays with a half-life, but at least 1 GiB/s

This is half of the time to the threshold at the fastest rise, so the last quick probe before the threshold is close to
it. A CPU load rises without such a warning: where batch is limited and CPUs are contended, the interval is 50 ms.
It is longer while batch has used almost no CPU for some time, since a lower limit would free nothing. A short time does
not suffice: batch may use none because its limit is exhausted, for a period of up to a second.

A full probe is due at once when memory crosses the threshold, or has changed by a share of the node since the last
decision. When the CPU in use outside of batch has changed, new limits of batch are due. Otherwise a full probe is due
at its interval, which is longer when nothing has changed for some time.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from fallow_hookspecs import ResourceName

SHORTEST_SECONDS, LONGEST_SECONDS = 0.01, 1.0
CPU_SECONDS = 0.05
IDLE_AFTER_SECONDS = 2.0
"""After this time without use batch is idle."""
LEAST_RISE = float(1 << 30)
RISE_HALF_LIFE_SECONDS = 10.0
MOVED_PERCENT: Mapping[ResourceName, int] = {"cpu": 5, "memory": 2}
"""The change, in percent of the node, after which a full probe is due."""
CALM_AFTER_SECONDS = 10.0
CALM_INTERVAL_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The inputs of the schedule: memory in bytes, CPU in milli-cores; `None` if it does not matter.

    `cpu_is_quick`: batch is limited, and CPUs may be contended.
    """

    memory_threshold: int | None
    memory_capacity: int
    cpu_capacity: int
    cpu_is_quick: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReading:
    """The result of a quick probe. CPU is measured over a short time: in batch groups, and outside of them."""

    at: float
    memory_used: int | None = None
    batch_milli: int | None = None
    others_milli: int | None = None


class ProbeDue(Enum):
    """The action that is due at once."""

    NOTHING = ""
    FULL_PROBE = "memory in use has changed"
    THRESHOLD_CROSSED = "memory in use has crossed the threshold"
    CPU_LIMIT = "CPU in use besides batch has changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeState:
    """The last quick probe, and the fastest rise of memory in bytes a second.

    `memory_then` and `others_then`: the readings of quick probes at the newest decisions; `None`: the next reading is
    used. `memory_decided`: the memory in use with which the decisions were made, from the more exact full probe.
    `batch_at`: when batch last used CPU, or may have used it.
    """

    last: ProbeReading
    rise: float = 0.0
    batch_at: float = -math.inf
    memory_then: int | None = None
    memory_decided: int | None = None
    others_then: int | None = None


def decided(state: ProbeState, memory_used: int | None) -> ProbeState:
    """Decisions are made now, with this memory in use: later readings are compared with the present ones."""
    return replace(
        state,
        memory_then=state.last.memory_used,
        memory_decided=memory_used,
        others_then=state.last.others_milli,
    )


def after(state: ProbeState, reading: ProbeReading, thresholds: Thresholds) -> tuple[ProbeState, float, ProbeDue]:
    """The state after a quick probe, the seconds until the next one, and what is due at once."""
    now = replace(
        state,
        last=reading,
        rise=_rise(state, reading),
        batch_at=state.batch_at if _is_idle(reading, thresholds) else reading.at,
        memory_then=reading.memory_used if state.memory_then is None else state.memory_then,
        others_then=reading.others_milli if state.others_then is None else state.others_then,
    )
    return now, _pause(now, thresholds), _due(state.last, now, thresholds)


def full_interval(interval_seconds: float, calm_seconds: float) -> float:
    """The time between two full probes after nothing has changed for `calm_seconds`."""
    return max(interval_seconds, CALM_INTERVAL_SECONDS) if calm_seconds >= CALM_AFTER_SECONDS else interval_seconds


def moved(now: int, then: int, capacity: int, resource: ResourceName) -> bool:
    """Whether a reading has changed by the share of the node after which a full probe is due."""
    return abs(now - then) * 100 > capacity * MOVED_PERCENT[resource]


def _rise(state: ProbeState, reading: ProbeReading) -> float:
    seconds = reading.at - state.last.at
    if seconds <= 0:
        return state.rise
    decayed = state.rise * math.pow(0.5, seconds / RISE_HALF_LIFE_SECONDS)
    if reading.memory_used is None or state.last.memory_used is None:
        return decayed
    return max(decayed, (reading.memory_used - state.last.memory_used) / seconds)


def _is_idle(reading: ProbeReading, thresholds: Thresholds) -> bool:
    batch = reading.batch_milli
    return batch is not None and not moved(batch, 0, thresholds.cpu_capacity, "cpu")


def _pause(state: ProbeState, thresholds: Thresholds) -> float:
    used, threshold = state.last.memory_used, thresholds.memory_threshold
    idles = state.last.at - state.batch_at >= IDLE_AFTER_SECONDS
    pause = CPU_SECONDS if thresholds.cpu_is_quick and not idles else LONGEST_SECONDS
    if threshold is not None and used is not None:
        if used < threshold:
            pause = min(pause, (threshold - used) / (2 * max(state.rise, LEAST_RISE)))
        elif _decided_below(state, threshold):
            return SHORTEST_SECONDS
    return max(pause, SHORTEST_SECONDS)


def _due(before: ProbeReading, state: ProbeState, thresholds: Thresholds) -> ProbeDue:
    used, then, threshold = state.last.memory_used, state.memory_then, thresholds.memory_threshold
    if used is not None and then is not None:
        if threshold is not None and used >= threshold:
            was_below = before.memory_used is None or before.memory_used < threshold
            decided_below = _decided_below(state, threshold)
            if was_below and decided_below:
                return ProbeDue.THRESHOLD_CROSSED
            # It was below in between, unnoticed by a full probe; or a full probe at the threshold read a little less.
            if was_below or decided_below:
                return ProbeDue.FULL_PROBE
        if moved(used, then, thresholds.memory_capacity, "memory"):
            return ProbeDue.FULL_PROBE
    others, then = state.last.others_milli, state.others_then
    if thresholds.cpu_is_quick and others is not None and then is not None:
        return ProbeDue.CPU_LIMIT if moved(others, then, thresholds.cpu_capacity, "cpu") else ProbeDue.NOTHING
    return ProbeDue.NOTHING


def _decided_below(state: ProbeState, threshold: int) -> bool:
    """Whether the newest decisions were made with less memory in use than the threshold."""
    return state.memory_decided is not None and state.memory_decided < threshold
