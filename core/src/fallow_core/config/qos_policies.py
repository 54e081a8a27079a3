"""From the `qos` section of a file to the policy that the agent decides by."""

from fallow_core.config.qos_models import Qos, reclaim_threshold
from fallow_core.model.qos_policy import (
    CgroupReconcilePolicy,
    CpuEvictPolicy,
    CpuSuppressPolicy,
    IdentityPolicy,
    MemoryEvictPolicy,
    MemoryReclaimPolicy,
    OnlinePressurePolicy,
    OverdraftEvictPolicy,
    QosPolicy,
    TerminationPolicy,
)


def qos_of(model: Qos) -> QosPolicy:
    """The policy that a file means."""
    reclaim, memory, cpu, overdraft, termination = (
        model.memory_reclaim,
        model.memory_evict,
        model.cpu_evict,
        model.overdraft_evict,
        model.termination,
    )
    pressure = model.online_pressure
    return QosPolicy(
        release_on_exit=model.on_exit == "release",
        cpu_suppress=CpuSuppressPolicy(
            mode=model.cpu_suppress.mode,
            minimum_percent=model.cpu_suppress.minimum,
            step_percent=model.cpu_suppress.step,
            cpuset=model.cpu_suppress.cpuset,
        ),
        cgroup_reconcile=CgroupReconcilePolicy(
            mode=model.cgroup_reconcile.mode, memory_limit_percent=model.cgroup_reconcile.memory_limit
        ),
        identity=IdentityPolicy(mode=model.identity.mode),
        online_pressure=OnlinePressurePolicy(
            mode=pressure.mode,
            groups=tuple(group.strip("/") for group in pressure.groups),
            threshold_percent=pressure.threshold,
            lower_percent=pressure.lower_threshold,
        ),
        memory_reclaim=MemoryReclaimPolicy(
            mode=reclaim.mode,
            threshold_percent=reclaim_threshold(model),
            step_percent=reclaim.step,
            cool_down_seconds=reclaim.cool_down,
            window_seconds=reclaim.window,
            critical_percent=reclaim.critical_threshold,
        ),
        memory_evict=MemoryEvictPolicy(
            mode=memory.mode,
            threshold_percent=memory.threshold,
            lower_percent=memory.lower_threshold,
            cool_down_seconds=memory.cool_down,
        ),
        cpu_evict=CpuEvictPolicy(
            mode=cpu.mode,
            satisfaction_percent=cpu.satisfaction,
            until_percent=cpu.until,
            usage_percent=cpu.usage,
            window_seconds=cpu.window,
            samples=cpu.samples,
            cool_down_seconds=cpu.cool_down,
            slow_is_fine=cpu.slow_is_fine,
        ),
        overdraft_evict=OverdraftEvictPolicy(
            mode=overdraft.mode, after_seconds=overdraft.after, cool_down_seconds=overdraft.cool_down
        ),
        termination=TerminationPolicy(
            grace_seconds=termination.grace,
            margin_seconds=termination.margin,
            back_off_seconds=termination.back_off,
            budget=termination.budget,
            budget_seconds=termination.budget_window,
        ),
    )
