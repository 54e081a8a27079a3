"""From the `qos` section of a file to the policy that the agent decides by."""

from fallow_core.config.qos_models import Qos, reclaim_mark
from fallow_core.model.qos_policy import (
    CgroupReconcilePolicy,
    CpuEvictPolicy,
    CpuSuppressPolicy,
    EndingPolicy,
    IdentityPolicy,
    MemoryEvictPolicy,
    MemoryReclaimPolicy,
    OnlinePressurePolicy,
    OverdraftEvictPolicy,
    QosPolicy,
)


def qos_of(model: Qos) -> QosPolicy:
    """The policy that a file means."""
    reclaim, memory, cpu, overdraft, ending = (
        model.memory_reclaim,
        model.memory_evict,
        model.cpu_evict,
        model.overdraft_evict,
        model.ending,
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
            mark_percent=pressure.mark,
            lower_percent=pressure.lower_mark,
        ),
        memory_reclaim=MemoryReclaimPolicy(
            mode=reclaim.mode,
            mark_percent=reclaim_mark(model),
            step_percent=reclaim.step,
            cool_down_seconds=reclaim.cool_down,
            window_seconds=reclaim.window,
            critical_percent=reclaim.critical_mark,
        ),
        memory_evict=MemoryEvictPolicy(
            mode=memory.mode,
            mark_percent=memory.mark,
            lower_percent=memory.lower_mark,
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
        ending=EndingPolicy(
            grace_seconds=ending.grace,
            margin_seconds=ending.margin,
            back_off_seconds=ending.back_off,
            budget=ending.budget,
            budget_seconds=ending.budget_window,
        ),
    )
