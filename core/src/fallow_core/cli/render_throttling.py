"""How batch is throttled, as lines for people: a part of `fallow explain`."""

from collections.abc import Iterator

from fallow_core.api.throttling import CpusetStatus, GroupStatus, PressureStatus, ReclaimStep, ThrottlingStatus
from fallow_core.cli.table import amount, paragraph, seconds
from fallow_core.model.qos_policy import StrategyMode

STRATEGIES = {"memory_reclaim": "memoryReclaim", "online_pressure": "onlinePressure", "cpuset": "cpuSuppress.cpuset"}


def throttled(throttle: ThrottlingStatus) -> list[str]:
    """How the limits were calculated, each group, tasks without a limit and why, and memory that was pushed out."""
    modes = f"cpuSuppress {throttle.cpu_suppress}, cgroupReconcile {throttle.cgroup_reconcile}"
    lines = [f"CPU limit of batch ({modes}, identity {throttle.identity})"]
    if throttle.missing:
        return [*lines, *paragraph(f"not available: {throttle.missing}", "  ")]
    lines += [line for text in _cpu(throttle) for line in paragraph(text, "  ")]
    if throttle.steps:
        lines.append(f"Memory of batch (memoryReclaim {throttle.memory_reclaim})")
    return lines + [line for text in (*_memory(throttle), *_problems(throttle)) for line in paragraph(text, "  ")]


def _cpu(throttle: ThrottlingStatus) -> Iterator[str]:
    if throttle.terms:
        shown = {name: amount("cpu", value) for name, value in throttle.terms.items()}
        yield (
            f"allowed {shown['allowed']} = {shown['capacity']} − margin {shown['margin']} − all else "
            f"{shown['others']}, no less than {shown['minimum']}; grows step by step"
        )
        yield f"limit   {shown['limit']} = allowed − batch outside of groups {shown['outside']}"
    if throttle.online_pressure is not None:
        yield _pressure(throttle.online_pressure)
    if throttle.why:
        yield throttle.why
    yield from map(_group, throttle.groups)
    yield from (f"not limited: {task}: {why}" for task, why in throttle.without.items())
    if throttle.cpuset is not None:
        yield from _cpuset(throttle.cpuset, throttle.cpu_suppress)


def _pressure(pressure: PressureStatus) -> str:
    stalls = ", ".join(f"{group} waits for memory {percent:.0f} %" for group, percent in pressure.stalls.items())
    does = f"threshold {pressure.threshold} %"
    if pressure.pressed_seconds is not None:
        verb = "gets" if pressure.mode is StrategyMode.ENFORCE else "would get"
        since, until = seconds(pressure.pressed_seconds), pressure.lower_threshold
        does = f"for {since} batch {verb} a step less CPU than it uses, until below {until} %"
    return f"onlinePressure {pressure.mode}: of the last 10 s {stalls}; {does}"


def _group(group: GroupStatus) -> str:
    would = "" if group.enforced else "would be "
    limit = "" if group.limit_milli is None else f": {would}limited to {amount('cpu', group.limit_milli)}"
    in_force = "none" if group.in_force_milli is None else amount("cpu", group.in_force_milli)
    moves = f", {group.to_move} processes not in it yet" if group.to_move else ""
    waited = "" if group.throttled_seconds is None else f", kept waiting {group.throttled_seconds:.1f} s in all"
    return (
        f"{group.group} ({group.tasks} tasks of {', '.join(group.clusters)}){limit}; in force {in_force}{moves}{waited}"
    )


def _cpuset(cpuset: CpusetStatus, mode: StrategyMode) -> Iterator[str]:
    would = "" if mode is StrategyMode.ENFORCE else "would be "
    alone = f"; others have {cpuset.barred} alone" if cpuset.barred else ""
    for group, cpus in cpuset.groups.items():
        yield f"{group}: {would}kept on CPUs {cpus} ({cpuset.placing}){alone}"


def _memory(throttle: ThrottlingStatus) -> Iterator[str]:
    yield from (f"{seconds(step.ago_seconds)} ago: {_step(step)}" for step in throttle.steps)
    if throttle.steps and throttle.waits_below_percent is not None:
        below = throttle.waits_below_percent
        yield f"below {below} % of memory in use no task is terminated for it now: this may still free enough"


def _step(step: ReclaimStep) -> str:
    terms = {name: amount("memory", value) for name, value in step.terms.items()}
    parts = [
        f"{amount('memory', asked)} GiB of {group}"
        + (f" ({amount('memory', step.brought[group])} came out)" if group in step.brought else "")
        for group, asked in step.groups.items()
    ]
    verb = "pushes out" if step.enforced else "would push out"
    arithmetic = (
        f"used {terms['used']} of {terms['capacity']}, {terms['excess']} above the threshold, {terms['cold']} cold"
    )
    problem = f"; {step.problem}" if step.problem else "" if step.over else "; under way"
    return f"{step.why}: {verb} {', '.join(parts)}; {arithmetic}{problem}"


def _problems(throttle: ThrottlingStatus) -> Iterator[str]:
    for strategy, why in throttle.unavailable.items():
        yield f"{STRATEGIES.get(strategy, strategy)} is not available: {why}"
    yield from (f"! {problem}" for problem in throttle.problems)
