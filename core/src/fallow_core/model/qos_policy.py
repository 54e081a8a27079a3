"""What the operator decided about protecting a node. Every strategy is off, observes, or enforces."""

from dataclasses import dataclass, field
from enum import StrEnum


class StrategyMode(StrEnum):
    """`OBSERVE`: it says exactly what it would do, and does nothing."""

    OFF = "off"
    OBSERVE = "observe"
    ENFORCE = "enforce"


class Placing(StrEnum):
    """Whether batch runs on some CPUs alone: on cores of all NUMA zones in turn, or of as few zones as will do."""

    OFF = "off"
    SPREAD = "spread"
    PACKED = "packed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSuppressPolicy:
    """Batch gets a CPU limit: what online services and the system leave of the node below its watermark.

    `minimum_percent`: what it always gets, of the node. `step_percent`: by how much of the node a limit grows in a
    second; it shrinks at once. `cpuset`: on which CPUs batch is kept besides.
    """

    mode: StrategyMode = StrategyMode.OBSERVE
    minimum_percent: int = 2
    step_percent: int = 10
    cpuset: Placing = Placing.OFF


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupReconcilePolicy:
    """Batch groups get the smallest weight, and processes of tasks that have no group of their own are put into one.

    `memory_limit_percent`: the memory limit of groups and of tasks in groups that were made, in what tasks requested;
    `None`: no limit.
    """

    mode: StrategyMode = StrategyMode.OBSERVE
    memory_limit_percent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityPolicy:
    """Batch groups get the scheduling class that runs when nobody else wants to."""

    mode: StrategyMode = StrategyMode.OBSERVE


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlinePressurePolicy:
    """Some task of an online group waits for memory `threshold_percent` of the time: batch gets less CPU than it uses,
    by a step more each second, until all of these groups wait less than `lower_percent`.

    `groups`: the control groups of online services.
    """

    mode: StrategyMode = StrategyMode.OBSERVE
    groups: tuple[str, ...] = ()
    threshold_percent: int = 10
    lower_percent: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReclaimPolicy:
    """Once `threshold_percent` of the node's memory is in use, cold memory of batch is pushed out: a step each
    `cool_down_seconds`, of at most `step_percent` of the node.

    `window_seconds`: how long that gets before tasks are terminated for memory, unless use is at `critical_percent`.
    """

    mode: StrategyMode = StrategyMode.OBSERVE
    threshold_percent: int = 85
    step_percent: int = 1
    cool_down_seconds: float = 1.0
    window_seconds: float = 5.0
    critical_percent: int = 95


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEvictPolicy:
    """When memory in use reaches `threshold_percent` of the node, tasks are terminated until it would be
    `lower_percent`.

    `cool_down_seconds`: before it asks again, beyond what is terminating by then.
    """

    mode: StrategyMode = StrategyMode.OBSERVE
    threshold_percent: int = 90
    lower_percent: int = 85
    cool_down_seconds: float = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuEvictPolicy:
    """When batch may use less than `satisfaction_percent` of the CPU it requested while it uses more than
    `usage_percent` of what it may, for `window_seconds` and in at least `samples` readings, tasks are terminated until
    the rest would have `until_percent` of its requests.

    `slow_is_fine`: batch may be slow for as long as it takes.
    """

    mode: StrategyMode = StrategyMode.OBSERVE
    satisfaction_percent: int = 60
    until_percent: int = 70
    usage_percent: int = 80
    window_seconds: float = 60.0
    samples: int = 6
    cool_down_seconds: float = 20.0
    slow_is_fine: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OverdraftEvictPolicy:
    """When memory allocations are above batch capacity for `after_seconds`, and the framework cannot take back or did
    not, tasks are terminated by request until the rest fits.

    `cool_down_seconds`: between two needs of one account; for as long a termination that is over still counts as being
    freed, since the framework's next report may not show it yet.
    """

    mode: StrategyMode = StrategyMode.OBSERVE
    after_seconds: float = 120.0
    cool_down_seconds: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationPolicy:
    """How tasks are terminated.

    `grace_seconds`: for a task that wants none of its own. `margin_seconds`: how long after force a release may take to
    be seen. `repeat_seconds`: after which an order without an answer is given again. `back_off_seconds`: for how long a
    task that could not be terminated is left alone; it doubles with each failure.

    `charge_core_seconds`: what a signal costs the application beyond lost work, since it counts as a failure; as much
    again for each of its terminations in the last `budget_seconds`. `budget`: how many of those it gets before it is
    spared as long as others suffice.
    """

    grace_seconds: float = 30.0
    margin_seconds: float = 10.0
    repeat_seconds: float = 5.0
    back_off_seconds: float = 60.0
    charge_core_seconds: int = 60
    budget: int = 2
    budget_seconds: float = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QosPolicy:
    """The policy of a node. A reading older than `stale_seconds` is as good as none.

    `release_on_exit`: an orderly stop lifts the limits of batch groups; otherwise they stay.
    """

    stale_seconds: float = 10.0
    release_on_exit: bool = False
    cpu_suppress: CpuSuppressPolicy = field(default_factory=CpuSuppressPolicy)
    cgroup_reconcile: CgroupReconcilePolicy = field(default_factory=CgroupReconcilePolicy)
    identity: IdentityPolicy = field(default_factory=IdentityPolicy)
    online_pressure: OnlinePressurePolicy = field(default_factory=OnlinePressurePolicy)
    memory_reclaim: MemoryReclaimPolicy = field(default_factory=MemoryReclaimPolicy)
    memory_evict: MemoryEvictPolicy = field(default_factory=MemoryEvictPolicy)
    cpu_evict: CpuEvictPolicy = field(default_factory=CpuEvictPolicy)
    overdraft_evict: OverdraftEvictPolicy = field(default_factory=OverdraftEvictPolicy)
    termination: TerminationPolicy = field(default_factory=TerminationPolicy)
