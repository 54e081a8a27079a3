"""Memory of the node runs short: cold memory of batch is pushed out before anything is terminated. Pure.

    excess = used − capacity × threshold                    once used ≥ capacity × threshold
    step   = min(excess, capacity × step, Σ cold)      shared among the groups by what is cold in each
    cold   = file pages that can be dropped + anonymous pages that can be swapped, both not used lately

Dropping file pages spares the online services' own; it does not lower `used`, which leaves them out. Only what can be
swapped may spare a task its end.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fallow_core.ledger.max_min import Bounds, level
from fallow_core.model.qos_policy import MemoryReclaimPolicy, StrategyMode
from fallow_core.qos.need import NodeView

LEAST_BYTES = 1 << 20
"""Less is not worth a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMemory:
    """The cold memory of one group of batch, in bytes: what can be dropped, and what there is swap for."""

    droppable: int
    swappable: int

    @property
    def cold(self) -> int:
        """All that a step may push out."""
        return self.droppable + self.swappable


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclaim:
    """One step: so many bytes of each group. `terms` is the arithmetic."""

    groups: Mapping[str, int]
    enforce: bool
    why: str
    terms: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReclaimState:
    """`begun_at`: the first step since memory is short. `asked_at`: the newest. `swappable`: what may still come."""

    begun_at: float | None = None
    asked_at: float | None = None
    swappable: int = 0


def decide(
    view: NodeView, groups: Mapping[str, GroupMemory], policy: MemoryReclaimPolicy, state: MemoryReclaimState
) -> tuple[MemoryReclaimState, Reclaim | None]:
    """The step that is due now, if any. Without a good reading there is none."""
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
