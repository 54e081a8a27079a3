"""Terminates tasks when batch gets too little CPU, so that the other tasks make progress.

    allowed      = batch capacity of the ledger = (watermark × capacity − online − system) × overcommit
    satisfaction = allowed / requests of the tasks that are not terminating
    need         = their measured use × (1 − satisfaction / until)        rounded up

once satisfaction is low and use is close to the allowed amount, both for the whole window. Use below a hundredth of the
node never counts as close: terminating it would help no task.

The need is measured use, not requests: batch that is throttled shares what it uses, so when the share
1 − satisfaction / until of that use is freed, the remaining tasks get what they lack. If all tasks are equally busy,
this is the same share of the requests. An idle task lowers satisfaction by its request, but its termination would free
no CPU, so it is not counted.

Tasks of restored clusters are not throttled: what they use is not allowed to others, and their requests do not count.

Tasks of accounts above their fair share come first. A slow task loses no work. Therefore nothing is decided with an
incomplete list of tasks, and application masters are never terminated.
"""

from dataclasses import dataclass, field, replace

from fallow_core.model.qos_policy import CpuEvictPolicy, StrategyMode
from fallow_core.qos.duration import ConditionDuration
from fallow_core.qos.need import Need, NodeView


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuEvictState:
    """`low`: for how long batch has lacked CPU. `asked_at`: the time of the newest need."""

    low: ConditionDuration = field(default_factory=ConditionDuration)
    asked_at: float | None = None


def decide(view: NodeView, policy: CpuEvictPolicy, state: CpuEvictState) -> tuple[CpuEvictState, Need | None]:
    """The need that is due now, if any."""
    usage, capacity = view.measured("cpu"), view.ledger.cpu.capacity
    if policy.slow_is_fine or usage is None or capacity is None or not view.tasks_complete:
        return state, None
    living = view.living()
    left_alone = sum(view.use(task, "cpu") or 0 for task in living if task.cluster in view.restored)
    allowed = max(capacity.batch - left_alone, 0)
    requested = sum(task.requested.cpu_milli for task in living if task.cluster not in view.restored)
    used = max(usage.batch_used - view.being_freed("cpu") - left_alone, 0)
    near = max((capacity.batch_real - left_alone) * policy.usage_percent, usage.capacity)
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
        first=frozenset(a.cluster for a in view.ledger.cpu.accounts if a.allocated > a.fair),
        terms={"allowed": allowed, "requested": requested, "used": used, "until_percent": policy.until_percent},
    )
    return replace(state, asked_at=view.now), need
