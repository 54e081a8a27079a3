"""Decides how much CPU batch may use, so that online services get theirs. Limits fall at once and grow in steps. Pure.

others   = max(used − batch_used, reserved)                  online services and the system, as measured
allowed  = capacity − margin − others, from minimum × capacity to cap             all batch together;
           grows by at most `step` × capacity in a second;
           while online services wait for memory, falls by a step a second, from what batch uses
outside  = batch_used − used by the tasks in groups          daemons, and tasks without a group
limit    = allowed − outside, at least minimum × capacity

Groups share the limit in proportion to the requests of their tasks; a group without any request counts as if each of
its tasks had requested the mean of all others. While the limit is short, none gets much more than twice its use. The
formula depends only on use that throttling of batch does not change, so it does not oscillate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fallow_core.ledger.capacity import BatchCapacity
from fallow_core.ledger.max_min import Bounds, level
from fallow_core.model.qos_policy import CpuSuppressPolicy
from fallow_core.qos.need import NodeView

LEAST_MILLI = 10
"""The smallest limit that the kernel accepts with its usual period of 100 ms."""
STEP_SECONDS = 1.0
"""The interval of a whole step; a reading after less time allows a part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupUse:
    """The use and the requests of the tasks in one batch group, in milli-cores, and how many tasks there are."""

    used: int
    requested: int
    tasks: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuLimits:
    """The limit of each group in milli-cores. `why`: the reason if limits stay. `terms`: inputs of the calculation."""

    groups: Mapping[str, int]
    terms: Mapping[str, int]
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSuppressState:
    """What all batch was allowed with the newest reading, and the resulting limits."""

    allowed: int | None = None
    measured_at: float | None = None
    limits: CpuLimits = field(default_factory=lambda: CpuLimits(groups={}, terms={}))


def decide(
    view: NodeView,
    groups: Mapping[str, GroupUse],
    policy: CpuSuppressPolicy,
    state: CpuSuppressState,
    *,
    pressed: bool = False,
) -> tuple[CpuSuppressState, CpuLimits]:
    """The limits of the groups now. Without a recent reading they stay, and a new group has none.

    :param pressed: online services wait for memory (see `online_pressure`).
    """
    usage, capacity = view.measured("cpu"), view.ledger.cpu.capacity
    why = ""
    if usage is None or capacity is None:
        why = "CPU use is not known: limits stay"
    elif not view.tasks_complete:
        why = "it is not known what on this host is batch: limits stay"
    if why or usage is None or capacity is None:
        kept = {name: limit for name, limit in state.limits.groups.items() if name in groups}
        limits = replace(state.limits, groups=kept, why=why)
        return replace(state, limits=limits), limits
    if usage.measured_at == state.measured_at and groups.keys() == state.limits.groups.keys():
        return state, state.limits
    others = max(capacity.used - capacity.batch_used, capacity.reserved)
    minimum = max(capacity.capacity * policy.minimum_percent // 100, LEAST_MILLI)
    allowed = max(minimum, min(capacity.capacity - capacity.margin - others, capacity.cap))
    step = _step(usage.measured_at, capacity, policy, state)
    if state.allowed is not None:
        allowed = min(allowed, state.allowed + step)
    if pressed:
        before = capacity.batch_used if state.allowed is None else min(state.allowed, capacity.batch_used)
        allowed = max(minimum, min(allowed, before - step))
    outside = max(capacity.batch_used - sum(group.used for group in groups.values()), 0)
    limit = max(allowed - outside, minimum)
    terms = {
        "capacity": capacity.capacity,
        "margin": capacity.margin,
        "others": others,
        "minimum": minimum,
        "allowed": allowed,
        "pressed": int(pressed),
        "outside": outside,
        "limit": limit,
    }
    limits = CpuLimits(groups=_shared(limit, groups), terms=terms)
    return CpuSuppressState(allowed=allowed, measured_at=usage.measured_at, limits=limits), limits


def _step(measured_at: float, capacity: BatchCapacity, policy: CpuSuppressPolicy, state: CpuSuppressState) -> int:
    """By how much `allowed` may grow: nothing without a new reading."""
    if measured_at == state.measured_at or state.measured_at is None:
        return 0
    part = min(measured_at - state.measured_at, STEP_SECONDS) / STEP_SECONDS
    return max(int(capacity.capacity * policy.step_percent * part) // 100, 1)


def _shared(limit: int, groups: Mapping[str, GroupUse]) -> dict[str, int]:
    names = sorted(groups)
    weights = _weights([groups[name] for name in names])
    wanted = [max(2 * groups[name].used, LEAST_MILLI) for name in names]
    first = level(limit, [Bounds(weight=w, lower=LEAST_MILLI, upper=u) for w, u in zip(weights, wanted, strict=True)])
    shares = level(limit, [Bounds(weight=w, lower=s) for w, s in zip(weights, first, strict=True)])
    return dict(zip(names, shares, strict=True))


def _weights(groups: Sequence[GroupUse]) -> list[int]:
    """A missing request is not zero: a framework that says none of CPU would get nothing beside one that does."""
    known = [group for group in groups if group.requested > 0]
    tasks = max(sum(group.tasks for group in known), 1)
    mean = max(sum(group.requested for group in known) // tasks, 1)
    return [group.requested if group.requested > 0 else mean * max(group.tasks, 1) for group in groups]
