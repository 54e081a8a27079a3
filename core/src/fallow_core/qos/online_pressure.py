"""Memory stalls online services although the node's use is below every line: batch is slowed down. Pure.

stall    = share of the last 10 s in which some task of an online group waited for memory (PSI, `some avg10`)
pressed  = from when a group's stall reaches `threshold` until no group's is `lower_threshold` or more

It is the stall of the online groups alone: batch that is held back stalls as well, and says nothing of the others.
While it is pressed, `cpu_suppress` gives batch a step less each second than it uses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fallow_core.model.qos_policy import OnlinePressurePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlinePressureState:
    """`stalls`: of each online group in percent, as it was read last. `pressed_at`: since when it is, if it is."""

    stalls: Mapping[str, float]
    pressed_at: float | None = None


def decide(
    stalls: Mapping[str, float], policy: OnlinePressurePolicy, state: OnlinePressureState, now: float
) -> OnlinePressureState:
    """Whether it is pressed now. A group that could not be read is left out; without any reading all stays as it is."""
    if not stalls:
        return replace(state, stalls={})
    worst = max(stalls.values())
    least = policy.threshold_percent if state.pressed_at is None else policy.lower_percent
    if worst < least:
        return OnlinePressureState(stalls=stalls)
    return OnlinePressureState(stalls=stalls, pressed_at=now if state.pressed_at is None else state.pressed_at)
