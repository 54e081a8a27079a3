"""Detects online services that wait for memory although the node's use is below all thresholds. Pure.

stall    = share of the last 10 s in which some task of an online group waited for memory (PSI, `some avg10`)
pressed  = from when the stall of a group reaches `threshold` until the stalls of all groups are below `lower_threshold`

Only online groups count: batch that is throttled stalls too. While online services are pressed, `cpu_suppress` lowers
the CPU of batch by a step each second.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fallow_core.model.qos_policy import OnlinePressurePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlinePressureState:
    """`stalls`: the newest stall of each online group in percent. `pressed_at`: when the pressure began, if any."""

    stalls: Mapping[str, float]
    pressed_at: float | None = None


def decide(
    stalls: Mapping[str, float], policy: OnlinePressurePolicy, state: OnlinePressureState, now: float
) -> OnlinePressureState:
    """Whether online services are pressed now, by the groups that could be read; without any the state stays."""
    if not stalls:
        return replace(state, stalls={})
    worst = max(stalls.values())
    least = policy.threshold_percent if state.pressed_at is None else policy.lower_percent
    if worst < least:
        return OnlinePressureState(stalls=stalls)
    return OnlinePressureState(stalls=stalls, pressed_at=now if state.pressed_at is None else state.pressed_at)
