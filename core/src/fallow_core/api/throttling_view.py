"""How batch is throttled, as plain values: for `fallow explain` and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fallow_core.errors import CgroupError
from fallow_core.model.control_file import ControlFile, file_name
from fallow_core.node.cgroups import cpu, cpuset

if TYPE_CHECKING:
    from fallow_core.agent.throttling.batch_groups import BatchGroup
    from fallow_core.agent.throttling.batch_limiter import BatchLimiter
    from fallow_core.agent.throttling.host_throttling import HostThrottling
    from fallow_core.agent.throttling.memory_reclaim import ReclaimStep
    from fallow_core.model.qos_policy import OnlinePressurePolicy, QosPolicy
    from fallow_core.node.cgroups.hierarchy import Hierarchy

View = dict[str, Any]
SHOWN_STEPS = 5


def shown(throttling: HostThrottling, now: float) -> View:
    """For `fallow explain`: limits in milli-cores, memory in bytes."""
    throttle, modes = throttling.limiter, throttling.policy
    found: View = {
        "cpu_suppress": modes.cpu_suppress.mode,
        "cgroup_reconcile": modes.cgroup_reconcile.mode,
        "identity": modes.identity.mode,
        "memory_reclaim": modes.memory_reclaim.mode,
        "online_pressure": None if throttle is None else pressure(throttle, modes.online_pressure, now),
        "missing": throttling.missing,
        "problems": throttling.problems(),
        "unavailable": throttling.unavailable(),
    }
    if throttle is None:
        return {
            **found,
            "groups": [],
            "terms": {},
            "why": "",
            "without": {},
            "cpuset": None,
            "waits_below_percent": None,
            "steps": [],
        }
    limits, without = throttle.limits, throttle.cpu.finder.ungrouped
    steps = [] if throttle.reclaimer is None else list(throttle.reclaimer.steps)[-SHOWN_STEPS:]
    return {
        **found,
        "groups": [_group(throttle, group) for _, group in sorted(throttle.groups.items())],
        "terms": dict(limits.terms) if limits is not None else {},
        "why": limits.why if limits is not None else "",
        "without": {"/".join(key): why for key, why in sorted(without.items())},
        "cpuset": _cpuset(throttle),
        "waits_below_percent": _waits_below(throttle, modes, now),
        "steps": [_step(step, now) for step in reversed(steps)],
    }


def pressure(throttle: BatchLimiter, policy: OnlinePressurePolicy, now: float) -> View | None:
    """How long online groups wait for memory, in percent; `None` where none is looked at."""
    state = throttle.pressure.state
    if not state.stalls:
        return None
    return {
        "mode": policy.mode,
        "stalls": {f"/{group}": percent for group, percent in sorted(state.stalls.items())},
        "threshold": policy.threshold_percent,
        "lower_threshold": policy.lower_percent,
        "pressed_seconds": None if state.pressed_at is None else now - state.pressed_at,
    }


def _waits_below(throttle: BatchLimiter, policy: QosPolicy, now: float) -> int | None:
    """Below which use of memory nothing ends at this moment, since pushing out may still bring what is lacking."""
    memory, reclaim = throttle.relief().memory, policy.memory_reclaim
    waits = memory.begun_at is not None and memory.is_pending(reclaim.window_seconds, now)
    return reclaim.critical_percent if waits else None


def in_force_milli(hierarchy: Hierarchy, group: str) -> int | None:
    """The limit that the kernel holds a group to; `None` if there is none, or the group is not there."""
    try:
        text = hierarchy.read(group, file_name(ControlFile.LIMIT, hierarchy.version))
        limit = cpu.limit_of(hierarchy, group, text)
    except (OSError, CgroupError):
        return None
    return None if limit is None else int(limit * 1000)


def _group(throttle: BatchLimiter, group: BatchGroup) -> View:
    limit = throttle.limits.groups.get(group.path) if throttle.limits is not None else None
    return {
        "group": f"/{group.path}",
        "clusters": sorted(group.clusters),
        "tasks": len(group.tasks),
        "to_move": sum(map(len, group.to_move.values())),
        "limit_milli": limit,
        "enforced": throttle.limits_enforced(group),
        "in_force_milli": in_force_milli(throttle.cpu.hierarchy, group.path),
        "throttled_seconds": cpu.throttled_seconds(throttle.cpu.hierarchy, group.path),
    }


def _cpuset(throttle: BatchLimiter) -> View | None:
    if throttle.cpu_sets is None or not throttle.cpu_sets.chosen:
        return None
    groups = {f"/{group}": cpuset.text_of(cpus) for group, cpus in sorted(throttle.cpu_sets.chosen.items())}
    return {
        "placing": throttle.policy.cpu_suppress.cpuset,
        "groups": groups,
        "barred": cpuset.text_of(throttle.cpu_sets.exclusive),
    }


def _step(step: ReclaimStep, now: float) -> View:
    return {
        "ago_seconds": now - step.at,
        "enforced": step.reclaim.enforce,
        "why": step.reclaim.why,
        "terms": dict(step.reclaim.terms),
        "groups": {f"/{group}": amount for group, amount in step.reclaim.groups.items()},
        "brought": {f"/{group}": amount for group, amount in step.reclaimed.items()},
        "over": step.finished,
        "problem": step.problem,
    }
