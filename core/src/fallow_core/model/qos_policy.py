"""The policies of the strategies that protect a node. Every strategy is off, observes, or enforces."""

from dataclasses import dataclass, field
from enum import StrEnum


class StrategyMode(StrEnum):
    """`OBSERVE`: it reports what it would do, and does nothing."""

    OFF = "off"
    OBSERVE = "observe"
    ENFORCE = "enforce"


class Placing(StrEnum):
    """Whether batch is bound to some CPUs: to cores of all NUMA zones in turn, or of as few zones as possible."""

    OFF = "off"
    SPREAD = "spread"
    PACKED = "packed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSuppressPolicy:
    """Batch gets a CPU limit: the node's capacity up to its watermark, minus the use of online services and the system.

    `minimum_percent`: the least limit, in percent of the node. `step_percent`: by how much of the node a limit grows in
    a second; it falls at once. `cpuset`: whether batch is also bound to CPUs.
    """

    mode: StrategyMode = StrategyMode.OBSERVE
    minimum_percent: int = 2
    step_percent: int = 10
    cpuset: Placing = Placing.OFF


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupReconcilePolicy:
    """Batch groups get the smallest weight, and tasks without a group of their own get one.

    `memory_limit_percent`: the memory limit of batch groups, and of tasks in groups that Fallow created, in percent of
    the requests; `None`: no limit.
    """

    mode: StrategyMode = StrategyMode.OBSERVE
    memory_limit_percent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityPolicy:
    """Batch groups get the scheduling class that runs only on idle CPUs."""

    mode: StrategyMode = StrategyMode.OBSERVE


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlinePressurePolicy:
    """When tasks of an online group wait for memory `threshold_percent` of the time, the CPU of batch is lowered by a
    step each second, until all of these groups wait less than `lower_percent`.

    `groups`: the control groups of online services.
    """

    mode: StrategyMode = StrategyMode.OBSERVE
    groups: tuple[str, ...] = ()
    threshold_percent: int = 10
    lower_percent: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReclaimPolicy:
    """When `threshold_percent` of the node's memory is in use, cold memory of batch is reclaimed: a step each
    `cool_down_seconds`, of at most `step_percent` of the node.

    `window_seconds`: how long tasks are not terminated for memory meanwhile, unless the use is at `critical_percent`.
    Both apply in every mode to the time after a start (see `relief`), and masters may be terminated at
    `critical_percent` even if that does not free enough.
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

    `cool_down_seconds`: the least time between two needs; tasks that are terminating are deducted from a need.
    """

    mode: StrategyMode = StrategyMode.OBSERVE
    threshold_percent: int = 90
    lower_percent: int = 85
    cool_down_seconds: float = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuEvictPolicy:
    """When batch may use less than `satisfaction_percent` of the CPU that it requested, and uses more than
    `usage_percent` of the CPU that it may use, for `window_seconds` and in at least `samples` readings, tasks are
    terminated until the others would have `until_percent` of their requests.

    `slow_is_fine`: no task is terminated for CPU.
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
    """When memory allocations are above batch capacity for `after_seconds`, and the framework does not take them back,
    tasks are terminated by their requests until the others fit.

    `cool_down_seconds`: the least time between two needs of one account.
    """

    mode: StrategyMode = StrategyMode.OBSERVE
    after_seconds: float = 120.0
    cool_down_seconds: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationPolicy:
    """How tasks are terminated.

    `grace_seconds`: the grace of a task without its own. `margin_seconds`: the time after force until the task must be
    gone. `repeat_seconds`: when an order without an answer is repeated. `back_off_seconds`: how long a task that could
    not be terminated is not tried again; it doubles with each failure.

    `charge_core_seconds`: the harm of a signal to the application beyond lost work, since it counts as a failure; the
    same again for each of its terminations in the last `budget_seconds`. `budget`: after this number of terminations
    an application is spared while others suffice.
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
    """The policy of a node. A reading older than `stale_seconds` is ignored.

    `release_on_exit`: an orderly stop restores all groups; otherwise their limits stay. `exempt`: paths of control
    groups in which nothing is changed.
    """

    stale_seconds: float = 10.0
    release_on_exit: bool = False
    exempt: tuple[str, ...] = ()
    cpu_suppress: CpuSuppressPolicy = field(default_factory=CpuSuppressPolicy)
    cgroup_reconcile: CgroupReconcilePolicy = field(default_factory=CgroupReconcilePolicy)
    identity: IdentityPolicy = field(default_factory=IdentityPolicy)
    online_pressure: OnlinePressurePolicy = field(default_factory=OnlinePressurePolicy)
    memory_reclaim: MemoryReclaimPolicy = field(default_factory=MemoryReclaimPolicy)
    memory_evict: MemoryEvictPolicy = field(default_factory=MemoryEvictPolicy)
    cpu_evict: CpuEvictPolicy = field(default_factory=CpuEvictPolicy)
    overdraft_evict: OverdraftEvictPolicy = field(default_factory=OverdraftEvictPolicy)
    termination: TerminationPolicy = field(default_factory=TerminationPolicy)
