"""Memory of the node runs out: terminate tasks until use would be at the lower threshold.

    need = used − capacity × lower threshold − measured use of terminating tasks      once used ≥ capacity × threshold

`used` is without page cache that can be dropped. The lower threshold below the threshold keeps it from asking for a
little again and again. This is the only strategy that may end application masters: without memory the kernel would end
anything.
"""

from dataclasses import dataclass

from fallow_core.model.qos_policy import MemoryEvictPolicy, StrategyMode
from fallow_core.qos.need import Need, NodeView


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEvictState:
    """`asked_at`: when it last said that something has to be freed."""

    asked_at: float | None = None


def decide(view: NodeView, policy: MemoryEvictPolicy, state: MemoryEvictState) -> tuple[MemoryEvictState, Need | None]:
    """What has to be freed now, if anything."""
    usage = view.measured("memory")
    if usage is None or usage.used * 100 < usage.capacity * policy.threshold_percent:
        return state, None
    lower = usage.capacity * policy.lower_percent // 100
    freeing = view.being_freed("memory")
    amount = usage.used - lower - freeing
    if amount <= 0 or not view.cooled_down(state.asked_at, policy.cool_down_seconds):
        return state, None
    need = Need(
        strategy="memory_evict",
        resource="memory",
        amount=amount,
        counted_by="usage",
        enforce=policy.mode is StrategyMode.ENFORCE,
        why=f"{usage.used * 100 // usage.capacity} % of memory is used, the threshold is {policy.threshold_percent} %",
        masters=True,
        terms={"used": usage.used, "capacity": usage.capacity, "lower": lower, "being_freed": freeing},
    )
    return MemoryEvictState(asked_at=view.now), need
