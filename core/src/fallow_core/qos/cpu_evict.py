"""Batch gets too little CPU for what runs: terminate tasks so that the others get on.

    allowed      = batch capacity of the ledger = (watermark × capacity − online − system) × overcommit
    satisfaction = allowed / requests of the tasks that nobody ends
    need         = their measured use × (1 − satisfaction / until)        rounded up

once satisfaction is low and use is near what is allowed, both for the whole window. Less use than a hundredth of the
node is never near: its end would give nobody anything.

The need is in measured use, not in requests: where batch is throttled its use is what there is to share, and if the
share 1 − satisfaction / until of it comes free, the rest has as much more as it lacked. Where every task is equally
busy that is the same share of the requests. A task that idles lowers satisfaction by its request, but its end would
give nobody a cycle; so it does not count.

Slow is not lost, so nothing is decided on a list of tasks that may be old, and application masters are never
terminated.
"""

from dataclasses import dataclass, field, replace

from fallow_core.model.qos_policy import CpuEvictPolicy, StrategyMode
from fallow_core.qos.duration import Held
from fallow_core.qos.need import Need, NodeView


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuEvictState:
    """`low`: for how long batch has been short of CPU. `asked_at`: when it last said that something has to be freed."""

    low: Held = field(default_factory=Held)
    asked_at: float | None = None


def decide(view: NodeView, policy: CpuEvictPolicy, state: CpuEvictState) -> tuple[CpuEvictState, Need | None]:
    """What has to be freed now, if anything."""
    usage, capacity = view.measured("cpu"), view.ledger.cpu.capacity
    if policy.slow_is_fine or usage is None or capacity is None or not view.tasks_complete:
        return state, None
    allowed = capacity.batch
    requested = sum(task.requested.cpu_milli for task in view.living())
    used = max(usage.batch_used - view.being_freed("cpu"), 0)
    near = max(capacity.batch_real * policy.usage_percent, usage.capacity)
    is_low = allowed * 100 < requested * policy.satisfaction_percent and used * 100 > near
    low = state.low.after(usage.measured_at, is_low, view.stale_seconds, policy.window_seconds)
    state = replace(state, low=low)
    lacking = policy.until_percent * requested - 100 * allowed
    if not is_low or lacking <= 0 or low.seconds < policy.window_seconds or low.samples < policy.samples:
        return state, None
    if not view.cooled_down(state.asked_at, policy.cool_down_seconds):
        return state, None
    need = Need(
        strategy="cpu_evict",
        resource="cpu",
        amount=-(-used * lacking // (policy.until_percent * requested)),
        counted_by="usage",
        enforce=policy.mode is StrategyMode.ENFORCE,
        why=f"for {low.seconds:.0f} s batch may use only {allowed * 100 // requested} % of the CPU that it requested",
        terms={"allowed": allowed, "requested": requested, "used": used, "until_percent": policy.until_percent},
    )
    return replace(state, asked_at=view.now), need
