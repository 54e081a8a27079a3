"""Reclaims cold memory of batch when the node's memory runs short, before any task is terminated. Pure.

    excess = used − capacity × threshold                    once used ≥ capacity × threshold
    step   = min(excess, capacity × step, Σ cold)      shared among the groups in proportion to `cold`
    cold   = inactive file pages that can be dropped + inactive anonymous pages that can be swapped

Dropping file pages of batch protects those of online services; it does not lower `used`, which excludes them. Only
swapping may make a termination unnecessary.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fallow_core.ledger.max_min import Bounds, level
from fallow_core.model.qos_policy import MemoryReclaimPolicy, StrategyMode
from fallow_core.qos.need import NodeView

LEAST_BYTES = 1 << 20
"""The smallest step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMemory:
    """The cold memory of one batch group, in bytes: droppable file pages, and anonymous pages that fit into swap."""

    droppable: int
    swappable: int

    @property
    def cold(self) -> int:
        """The most that a step may reclaim."""
        return self.droppable + self.swappable


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclaim:
    """One step: the bytes to reclaim from each group. `terms`: the inputs of the calculation."""

    groups: Mapping[str, int]
    enforce: bool
    why: str
    terms: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReclaimState:
    """`begun_at`: the first step since memory is short. `asked_at`: the newest one. `swappable`: what may be freed."""

    begun_at: float | None = None
    asked_at: float | None = None
    swappable: int = 0


def decide(
    view: NodeView, groups: Mapping[str, GroupMemory], policy: MemoryReclaimPolicy, state: MemoryReclaimState
) -> tuple[MemoryReclaimState, Reclaim | None]:
    """The step that is due now, if any; none without a recent reading."""
    state = replace(state, swappable=sum(group.swappable for group in groups.values()))
    usage = view.measured("memory")
    if usage is None:
        return state, None
    excess = usage.used - usage.capacity * policy.threshold_percent // 100
    if excess < 0:
        return replace(state, begun_at=None), None
    cold = sum(group.cold for group in groups.values())
    step = usage.capacity * policy.step_percent // 100
    amount = min(max(excess, LEAST_BYTES), step, cold)
    if amount < LEAST_BYTES or not view.cooled_down(state.asked_at, policy.cool_down_seconds):
        return state, None
    names = sorted(groups)
    bounds = [Bounds(weight=max(groups[name].cold, 1), lower=0, upper=groups[name].cold) for name in names]
    shares = {name: share for name, share in zip(names, level(amount, bounds), strict=True) if share > 0}
    reclaim = Reclaim(
        groups=shares,
        enforce=policy.mode is StrategyMode.ENFORCE,
        why=f"{usage.used * 100 // usage.capacity} % of memory is used, the threshold is {policy.threshold_percent} %",
        terms={"used": usage.used, "capacity": usage.capacity, "excess": excess, "cold": cold, "step": amount},
    )
    begun_at = view.now if state.begun_at is None else state.begun_at
    return replace(state, begun_at=begun_at, asked_at=view.now), reclaim
