"""What throttling may still free on a node, and how eviction waits for it."""

from dataclasses import dataclass, field, replace

from fallow_core.model.qos_policy import QosPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Relief:
    """What throttling may free of one resource. `possible`: it can free some. `begun_at`: when it began to."""

    possible: bool = False
    begun_at: float | None = None

    def is_pending(self, window_seconds: float, now: float) -> bool:
        """Whether terminations have to wait for it."""
        return self.possible and (self.begun_at is None or now - self.begun_at < window_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRelief:
    """What throttling may still free on a node before any task is terminated.

    `enforced_since`: since when this process has throttled batch, with all tasks known; `None`: not yet. It does not
    survive a restart.
    """

    memory: Relief = field(default_factory=Relief)
    cpu: Relief = field(default_factory=Relief)
    enforced_since: float | None = None


def defer_eviction(policy: QosPolicy, relief: NodeRelief, now: float) -> QosPolicy:
    """The policy for terminations at this moment.

    While memory may still be reclaimed, tasks are terminated only at the critical threshold. The same applies after a
    start, until throttling had the same time: a host that is under pressure when Fallow starts may recover. While a CPU
    limit is younger than the window of `cpu_evict`, no task is terminated for CPU.
    """
    memory, reclaim = policy.memory_evict, policy.memory_reclaim
    started = Relief(possible=True, begun_at=relief.enforced_since)
    if any(each.is_pending(reclaim.window_seconds, now) for each in (started, relief.memory)):
        memory = replace(memory, threshold_percent=max(memory.threshold_percent, reclaim.critical_percent))
    cpu = policy.cpu_evict
    if relief.cpu.is_pending(cpu.window_seconds, now):
        cpu = replace(cpu, slow_is_fine=True)
    return replace(policy, memory_evict=memory, cpu_evict=cpu)
