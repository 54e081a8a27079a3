"""How batch is slowed down, as lines for people."""

from typing import Any

from fallow_core.cli.table import amount, paragraph, seconds

Answer = dict[str, Any]


def throttled(throttle: Answer) -> list[str]:
    """For `fallow explain`: the arithmetic of the limits, each group, what is not limited and why, and what memory was
    pushed out.
    """
    modes = f"cpuSuppress {throttle['cpu_suppress']}, cgroupReconcile {throttle['cgroup_reconcile']}"
    modes += f", identity {throttle['identity']}"
    lines = [f"CPU limit of batch ({modes})"]
    if throttle["missing"]:
        return [*lines, *paragraph(f"not available: {throttle['missing']}", "  ")]
    if terms := throttle["terms"]:
        shown = {name: amount("cpu", value) for name, value in terms.items()}
        lines += [
            (
                f"  allowed {shown['allowed']} = {shown['capacity']} − margin {shown['margin']} − all else "
                f"{shown['others']}, no less than {shown['minimum']}; grows step by step"
            ),
            f"  limit   {shown['limit']} = allowed − batch outside of groups {shown['outside']}",
        ]
    lines += paragraph(_pressure(throttle["online_pressure"]), "  ") if throttle["online_pressure"] else []
    lines += paragraph(throttle["why"], "  ") if throttle["why"] else []
    for group in throttle["groups"]:
        lines += paragraph(_group(group), "  ")
    lines += [
        line for task, why in throttle["without"].items() for line in paragraph(f"not limited: {task}: {why}", "  ")
    ]
    if (chosen := throttle["cpuset"]) is not None:
        would = "" if throttle["cpu_suppress"] == "enforce" else "would be "
        alone = f"; others have {chosen['barred']} alone" if chosen["barred"] else ""
        for group, cpus in chosen["groups"].items():
            lines += paragraph(f"{group}: {would}kept on CPUs {cpus} ({chosen['placing']}){alone}", "  ")
    lines += _memory(throttle)
    names = {"memory_reclaim": "memoryReclaim", "online_pressure": "onlinePressure", "cpuset": "cpuSuppress.cpuset"}
    for strategy, why in throttle["unavailable"].items():
        lines += paragraph(f"{names.get(strategy, strategy)} is not available: {why}", "  ")
    return lines + [line for problem in throttle["problems"] for line in paragraph(f"! {problem}", "  ")]


def _pressure(pressure: Answer) -> str:
    stalls = ", ".join(f"{group} waits for memory {percent:.0f} %" for group, percent in pressure["stalls"].items())
    held = f"threshold {pressure['threshold']} %"
    if (pressed := pressure["pressed_seconds"]) is not None:
        verb = "gets" if pressure["mode"] == "enforce" else "would get"
        until = f"until below {pressure['lower_threshold']} %"
        held = f"for {seconds(pressed)} batch {verb} a step less CPU than it uses, {until}"
    return f"onlinePressure {pressure['mode']}: of the last 10 s {stalls}; {held}"


def _memory(throttle: Answer) -> list[str]:
    if not throttle["steps"]:
        return []
    lines = [f"Memory of batch (memoryReclaim {throttle['memory_reclaim']})"]
    for step in throttle["steps"]:
        lines += paragraph(f"{seconds(step['ago_seconds'])} ago: {_step(step)}", "  ")
    if (below := throttle["waits_below_percent"]) is not None:
        lines += [f"  below {below} % of memory in use nothing ends for it at this moment: this may still bring it"]
    return lines


def _step(step: Answer) -> str:
    terms = {name: amount("memory", value) for name, value in step["terms"].items()}
    parts = [
        f"{amount('memory', asked)} GiB of {group}"
        + (f" ({amount('memory', step['brought'][group])} came out)" if group in step["brought"] else "")
        for group, asked in step["groups"].items()
    ]
    verb = "pushes out" if step["enforced"] else "would push out"
    arithmetic = (
        f"used {terms['used']} of {terms['capacity']}, {terms['excess']} above the threshold, {terms['cold']} cold"
    )
    problem = f"; {step['problem']}" if step["problem"] else "" if step["over"] else "; under way"
    return f"{step['why']}: {verb} {', '.join(parts)}; {arithmetic}{problem}"


def _group(group: Answer) -> str:
    would = "" if group["enforced"] else "would be "
    limit = "" if group["limit_milli"] is None else f": {would}limited to {amount('cpu', group['limit_milli'])}"
    in_force = "none" if group["in_force_milli"] is None else amount("cpu", group["in_force_milli"])
    moves = f", {group['to_move']} processes not in it yet" if group["to_move"] else ""
    throttled = group["throttled_seconds"]
    waited = "" if throttled is None else f", kept waiting {throttled:.1f} s in all"
    clusters = ", ".join(group["clusters"])
    return f"{group['group']} ({group['tasks']} tasks of {clusters}){limit}; in force {in_force}{moves}{waited}"
