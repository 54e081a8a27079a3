"""How batch is throttled, in the answer to `explain`: limits in milli-cores, memory in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from fallow_core.errors import CgroupError
from fallow_core.model.control_file import ControlFile, file_name
from fallow_core.model.qos_policy import Placing, StrategyMode
from fallow_core.node.cgroups import cpu, cpuset

if TYPE_CHECKING:
    from fallow_core.agent.throttling import memory_reclaim
    from fallow_core.agent.throttling.batch_groups import BatchGroup
    from fallow_core.agent.throttling.batch_limiter import BatchLimiter
    from fallow_core.agent.throttling.host_throttling import HostThrottling
    from fallow_core.model.qos_policy import OnlinePressurePolicy, QosPolicy
    from fallow_core.node.cgroups.hierarchy import Hierarchy

SHOWN_STEPS = 5


class PressureStatus(Struct, frozen=True, kw_only=True):
    """How long online groups wait for memory, in percent, by control group. `pressed_seconds`: since when batch gets
    less CPU for it.
    """

    mode: StrategyMode
    stalls: Mapping[str, float]
    threshold: int
    lower_threshold: int
    pressed_seconds: float | None


class GroupStatus(Struct, frozen=True, kw_only=True):
    """One control group of batch. `to_move`: processes that are not in it yet. `limit_milli`: the limit that was
    decided, `in_force_milli`: the one that the kernel has. `throttled_seconds`: how long the kernel kept it waiting.
    """

    group: str
    clusters: tuple[str, ...]
    tasks: int
    to_move: int
    limit_milli: int | None
    enforced: bool
    in_force_milli: int | None
    throttled_seconds: float | None


class CpusetStatus(Struct, frozen=True, kw_only=True):
    """The CPUs of each control group. `barred`: those that batch does not get."""

    placing: Placing
    groups: Mapping[str, str]
    barred: str


class ReclaimStep(Struct, frozen=True, kw_only=True):
    """One step that pushes out memory of batch. `groups`: the bytes asked of each group, `brought`: those that came.

    `over`: the kernel has finished. `terms`: the arithmetic.
    """

    ago_seconds: float
    enforced: bool
    why: str
    terms: Mapping[str, int]
    groups: Mapping[str, int]
    brought: Mapping[str, int]
    over: bool
    problem: str


class ThrottlingCounts(Struct, frozen=True, kw_only=True):
    """Values written to control groups, values that others had changed since, groups that cannot be changed, and memory
    of batch that was pushed out.
    """

    changes: int
    resets: int
    problems: int
    pushed_out_bytes: int


class ThrottlingStatus(Struct, frozen=True, kw_only=True):
    """Modes, limits, control groups and steps. `missing`: what the host lacks; then there are only modes.

    `terms`: the arithmetic of the CPU limit; `why`: why none was decided. `without`: tasks that are not limited, and
    why. `waits_below_percent`: below this use of memory no task is terminated for it at this moment. `unavailable`:
    strategies that are on and that this host does not support, and why.
    """

    cpu_suppress: StrategyMode
    cgroup_reconcile: StrategyMode
    identity: StrategyMode
    memory_reclaim: StrategyMode
    online_pressure: PressureStatus | None = None
    missing: str
    problems: tuple[str, ...]
    unavailable: Mapping[str, str]
    groups: tuple[GroupStatus, ...] = ()
    terms: Mapping[str, int] = {}
    why: str = ""
    without: Mapping[str, str] = {}
    cpuset: CpusetStatus | None = None
    waits_below_percent: int | None = None
    steps: tuple[ReclaimStep, ...] = ()
    counts: ThrottlingCounts | None = None


def throttling_status(throttling: HostThrottling, now: float) -> ThrottlingStatus:
    """How batch is throttled now."""
    limiter, modes = throttling.limiter, throttling.policy
    found: dict[str, Any] = {
        "cpu_suppress": modes.cpu_suppress.mode,
        "cgroup_reconcile": modes.cgroup_reconcile.mode,
        "identity": modes.identity.mode,
        "memory_reclaim": modes.memory_reclaim.mode,
        "missing": throttling.missing,
        "problems": tuple(throttling.problems()),
        "unavailable": throttling.unavailable(),
    }
    if limiter is None:
        return ThrottlingStatus(**found)
    limits, without = limiter.limits, limiter.cpu.finder.ungrouped
    steps = [] if limiter.reclaimer is None else list(limiter.reclaimer.steps)[-SHOWN_STEPS:]
    return ThrottlingStatus(
        **found,
        online_pressure=pressure(limiter, modes.online_pressure, now),
        groups=tuple(_group(limiter, group) for _, group in sorted(limiter.groups.items())),
        terms=dict(limits.terms) if limits is not None else {},
        why=limits.why if limits is not None else "",
        without={"/".join(key): why for key, why in sorted(without.items())},
        cpuset=_cpuset(limiter),
        waits_below_percent=_waits_below(limiter, modes, now),
        steps=tuple(_step(step, now) for step in reversed(steps)),
        counts=_counts(limiter),
    )


def pressure(limiter: BatchLimiter, policy: OnlinePressurePolicy, now: float) -> PressureStatus | None:
    """How long online groups wait for memory; `None` where none is watched."""
    state = limiter.pressure.state
    if not state.stalls:
        return None
    return PressureStatus(
        mode=policy.mode,
        stalls={f"/{group}": percent for group, percent in sorted(state.stalls.items())},
        threshold=policy.threshold_percent,
        lower_threshold=policy.lower_percent,
        pressed_seconds=None if state.pressed_at is None else now - state.pressed_at,
    )


def in_force_milli(hierarchy: Hierarchy, group: str) -> int | None:
    """The limit that the kernel holds a group to; `None` if there is none, or the group is not there."""
    try:
        text = hierarchy.read(group, file_name(ControlFile.LIMIT, hierarchy.version))
        limit = cpu.limit_of(hierarchy, group, text)
    except (OSError, CgroupError):
        return None
    return None if limit is None else int(limit * 1000)


def _waits_below(limiter: BatchLimiter, policy: QosPolicy, now: float) -> int | None:
    """Below which use of memory no task is terminated now, since pushing out may still free enough."""
    memory, reclaim = limiter.relief().memory, policy.memory_reclaim
    waits = memory.begun_at is not None and memory.is_pending(reclaim.window_seconds, now)
    return reclaim.critical_percent if waits else None


def _group(limiter: BatchLimiter, group: BatchGroup) -> GroupStatus:
    return GroupStatus(
        group=f"/{group.path}",
        clusters=tuple(sorted(group.clusters)),
        tasks=len(group.tasks),
        to_move=sum(map(len, group.to_move.values())),
        limit_milli=limiter.limits.groups.get(group.path) if limiter.limits is not None else None,
        enforced=limiter.limits_enforced(group),
        in_force_milli=in_force_milli(limiter.cpu.hierarchy, group.path),
        throttled_seconds=cpu.throttled_seconds(limiter.cpu.hierarchy, group.path),
    )


def _cpuset(limiter: BatchLimiter) -> CpusetStatus | None:
    if limiter.cpu_sets is None or not limiter.cpu_sets.chosen:
        return None
    return CpusetStatus(
        placing=limiter.policy.cpu_suppress.cpuset,
        groups={f"/{group}": cpuset.text_of(cpus) for group, cpus in sorted(limiter.cpu_sets.chosen.items())},
        barred=cpuset.text_of(limiter.cpu_sets.exclusive),
    )


def _step(step: memory_reclaim.ReclaimStep, now: float) -> ReclaimStep:
    return ReclaimStep(
        ago_seconds=now - step.at,
        enforced=step.reclaim.enforce,
        why=step.reclaim.why,
        terms=dict(step.reclaim.terms),
        groups={f"/{group}": amount for group, amount in step.reclaim.groups.items()},
        brought={f"/{group}": amount for group, amount in step.reclaimed.items()},
        over=step.finished,
        problem=step.problem,
    )


def _counts(limiter: BatchLimiter) -> ThrottlingCounts:
    writers = [tree.writer for tree in limiter.trees]
    return ThrottlingCounts(
        changes=sum(writer.writes for writer in writers),
        resets=sum(writer.resets for writer in writers),
        problems=sum(len(writer.problems) for writer in writers),
        pushed_out_bytes=0 if limiter.reclaimer is None else limiter.reclaimer.reclaimed_bytes,
    )
