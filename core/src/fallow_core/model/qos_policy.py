"""What the operator decided about protecting a node. Every strategy is off, observes, or enforces."""

from dataclasses import dataclass, field
from enum import StrEnum


class StrategyMode(StrEnum):
    """`OBSERVE`: it says exactly what it would do, and does nothing."""

    OFF = "off"
    OBSERVE = "observe"
    ENFORCE = "enforce"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEvictPolicy:
    """When memory in use reaches `mark_percent` of the node, tasks are ended until it would be `lower_percent`."""

    mode: StrategyMode = StrategyMode.OBSERVE
    mark_percent: int = 90
    lower_percent: int = 85
    cool_down_seconds: float = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuEvictPolicy:
    """When batch gets less than `satisfaction_percent` of the CPU it requested while it uses more than
    `usage_percent` of what it is allowed, for `window_seconds`, tasks are ended until the rest is satisfied.

    `slow_is_fine`: batch may be slow for as long as it takes.
    """

    mode: StrategyMode = StrategyMode.OBSERVE
    satisfaction_percent: int = 60
    usage_percent: int = 80
    window_seconds: float = 60.0
    cool_down_seconds: float = 20.0
    slow_is_fine: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OverdraftEvictPolicy:
    """When allocations are above batch capacity for `after_seconds`, and the framework cannot take back or did not,
    tasks are ended by request until the rest fits.
    """

    mode: StrategyMode = StrategyMode.OBSERVE
    after_seconds: float = 120.0
    cool_down_seconds: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingPolicy:
    """How tasks are ended. `grace_seconds`: for a task that wants none of its own. `margin_seconds`: how long after
    the grace a release may take to be seen. `budget`: endings that an application gets in `budget_seconds` before it
    is spared as long as others suffice.
    """

    grace_seconds: float = 30.0
    margin_seconds: float = 10.0
    budget: int = 2
    budget_seconds: float = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QosPolicy:
    """The policy of a node."""

    memory_evict: MemoryEvictPolicy = field(default_factory=MemoryEvictPolicy)
    cpu_evict: CpuEvictPolicy = field(default_factory=CpuEvictPolicy)
    overdraft_evict: OverdraftEvictPolicy = field(default_factory=OverdraftEvictPolicy)
    ending: EndingPolicy = field(default_factory=EndingPolicy)
