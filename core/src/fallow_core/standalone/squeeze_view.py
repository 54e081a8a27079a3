"""How batch is squeezed, as plain values: for `fallow explain` and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fallow_core.errors import CgroupError
from fallow_core.node.cgroups import cpu, cpuset
from fallow_core.node.cgroups.knob import Knob, file_of

if TYPE_CHECKING:
    from fallow_core.agent.batch_groups import BatchGroup
    from fallow_core.agent.reclaiming import Step
    from fallow_core.agent.squeeze import Squeeze
    from fallow_core.config.settings import Config
    from fallow_core.model.qos_policy import OnlinePressurePolicy, QosPolicy
    from fallow_core.node.cgroups.hierarchy import Hierarchy
    from fallow_core.standalone.squeezing import Squeezing

View = dict[str, Any]
SHOWN_STEPS = 5


def shown(squeezing: Squeezing, config: Config, now: float) -> View:
    """For `fallow explain`: limits in milli-cores, memory in bytes."""
    squeeze, modes = squeezing.squeeze, config.qos
    found: View = {
        "cpu_suppress": modes.cpu_suppress.mode,
        "cgroup_reconcile": modes.cgroup_reconcile.mode,
        "identity": modes.identity.mode,
        "memory_reclaim": modes.memory_reclaim.mode,
        "online_pressure": None if squeeze is None else pressure(squeeze, modes.online_pressure, now),
        "missing": squeezing.missing,
        "problems": squeezing.problems(config),
        "unavailable": squeezing.unavailable(config),
    }
    if squeeze is None:
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
    limits, without = squeeze.limits, squeeze.cpu.found.without
    steps = [] if squeeze.reclaiming is None else list(squeeze.reclaiming.steps)[-SHOWN_STEPS:]
    return {
        **found,
        "groups": [_group(squeeze, group) for _, group in sorted(squeeze.groups.items())],
        "terms": dict(limits.terms) if limits is not None else {},
        "why": limits.why if limits is not None else "",
        "without": {"/".join(key): why for key, why in sorted(without.items())},
        "cpuset": _cpuset(squeeze),
        "waits_below_percent": _waits_below(squeeze, modes, now),
        "steps": [_step(step, now) for step in reversed(steps)],
    }


def pressure(squeeze: Squeeze, policy: OnlinePressurePolicy, now: float) -> View | None:
    """How long online groups wait for memory, in percent; `None` where none is looked at."""
    state = squeeze.pressure.state
    if not state.stalls:
        return None
    return {
        "mode": policy.mode,
        "stalls": {f"/{group}": percent for group, percent in sorted(state.stalls.items())},
        "mark": policy.mark_percent,
        "lower_mark": policy.lower_percent,
        "pressed_seconds": None if state.pressed_at is None else now - state.pressed_at,
    }


def _waits_below(squeeze: Squeeze, policy: QosPolicy, now: float) -> int | None:
    """Below which use of memory nothing ends at this moment, since pushing out may still bring what is lacking."""
    memory, reclaim = squeeze.squeezes().memory, policy.memory_reclaim
    waits = memory.begun_at is not None and memory.may_still_bring(reclaim.window_seconds, now)
    return reclaim.critical_percent if waits else None


def in_force_milli(hierarchy: Hierarchy, group: str) -> int | None:
    """The limit that the kernel holds a group to; `None` if there is none, or the group is not there."""
    try:
        text = hierarchy.read(group, file_of(Knob.LIMIT, hierarchy.version))
        limit = cpu.limit_of(hierarchy, group, text)
    except (OSError, CgroupError):
        return None
    return None if limit is None else int(limit * 1000)


def _group(squeeze: Squeeze, group: BatchGroup) -> View:
    limit = squeeze.limits.groups.get(group.path) if squeeze.limits is not None else None
    return {
        "group": f"/{group.path}",
        "clusters": sorted(group.clusters),
        "tasks": len(group.tasks),
        "to_move": sum(map(len, group.to_move.values())),
        "limit_milli": limit,
        "enforced": squeeze.limits_enforced(group),
        "in_force_milli": in_force_milli(squeeze.cpu.hierarchy, group.path),
        "throttled_seconds": cpu.throttled_seconds(squeeze.cpu.hierarchy, group.path),
    }


def _cpuset(squeeze: Squeeze) -> View | None:
    if squeeze.cpu_sets is None or not squeeze.cpu_sets.chosen:
        return None
    groups = {f"/{group}": cpuset.text_of(cpus) for group, cpus in sorted(squeeze.cpu_sets.chosen.items())}
    return {
        "placing": squeeze.policy.cpu_suppress.cpuset,
        "groups": groups,
        "barred": cpuset.text_of(squeeze.cpu_sets.barred),
    }


def _step(step: Step, now: float) -> View:
    return {
        "ago_seconds": now - step.at,
        "enforced": step.reclaim.enforce,
        "why": step.reclaim.why,
        "terms": dict(step.reclaim.terms),
        "groups": {f"/{group}": amount for group, amount in step.reclaim.groups.items()},
        "brought": {f"/{group}": amount for group, amount in step.brought.items()},
        "over": step.over,
        "problem": step.problem,
    }
