"""Memory of the node runs out: end tasks until use would be at the lower mark.

    need = used − capacity × lower mark − measured use of the tasks that are ending        once used ≥ capacity × mark

`used` is without page cache that can be dropped. The lower mark below the mark keeps it from asking for a little again
and again. This is the only strategy that may end application masters: without memory the kernel would end anything.
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
    if usage is None or usage.used * 100 < usage.capacity * policy.mark_percent:
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
        why=f"{usage.used * 100 // usage.capacity} % of the node's memory is used, the mark is {policy.mark_percent} %",
        masters=True,
        terms={"used": usage.used, "capacity": usage.capacity, "lower": lower, "being_freed": freeing},
    )
    return MemoryEvictState(asked_at=view.now), need
