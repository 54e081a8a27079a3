"""Terminates tasks when the node runs out of memory, until its use would be at the lower threshold.

    need = used − capacity × lower threshold − measured use of terminating tasks      once used ≥ capacity × threshold

`used` excludes page cache that can be dropped. The gap between both thresholds avoids a series of small needs. Only
this strategy may terminate application masters: when memory is exhausted the kernel may kill any process. Below the
critical threshold it does so only if that brings the use down to the lower threshold.
"""

from dataclasses import dataclass

from fallow_core.model.qos_policy import MemoryEvictPolicy, StrategyMode
from fallow_core.model.sample import Usage
from fallow_core.qos.need import Need, NodeView


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEvictState:
    """`asked_at`: the time of the newest need."""

    asked_at: float | None = None


def decide(
    view: NodeView, policy: MemoryEvictPolicy, state: MemoryEvictState, *, critical_percent: int
) -> tuple[MemoryEvictState, Need | None]:
    """The need that is due now, if any. `critical_percent`: the critical threshold."""
    usage, amount = view.measured("memory"), lacking(view, policy)
    if usage is None or amount <= 0 or not view.cooled_down(state.asked_at, policy.cool_down_seconds):
        return state, None
    lower, freeing = _lower(usage, policy), view.being_freed("memory")
    need = Need(
        strategy="memory_evict",
        resource="memory",
        amount=amount,
        counted_by="usage",
        enforce=policy.mode is StrategyMode.ENFORCE,
        why=f"{usage.used * 100 // usage.capacity} % of memory is used, the threshold is {policy.threshold_percent} %",
        masters=True,
        critical=usage.used * 100 >= usage.capacity * critical_percent,
        terms={"used": usage.used, "capacity": usage.capacity, "lower": lower, "being_freed": freeing},
    )
    return MemoryEvictState(asked_at=view.now), need


def lacking(view: NodeView, policy: MemoryEvictPolicy) -> int:
    """The bytes that no task frees yet; 0 below the threshold, and without a recent reading."""
    usage = view.measured("memory")
    if usage is None or usage.used * 100 < usage.capacity * policy.threshold_percent:
        return 0
    return max(usage.used - _lower(usage, policy) - view.being_freed("memory"), 0)


def _lower(usage: Usage, policy: MemoryEvictPolicy) -> int:
    return usage.capacity * policy.lower_percent // 100
