"""How batch is slowed down, as lines for people."""

from typing import Any

from fallow_core.cli.table import amount, paragraph

Answer = dict[str, Any]


def squeezed(squeeze: Answer) -> list[str]:
    """For `fallow explain`: the arithmetic of the limits, each group, and what is not limited and why."""
    modes = f"cpuSuppress {squeeze['cpu_suppress']}, cgroupReconcile {squeeze['cgroup_reconcile']}"
    lines = [f"CPU limit of batch ({modes})"]
    if squeeze["missing"]:
        return [*lines, *paragraph(f"not available: {squeeze['missing']}", "  ")]
    if terms := squeeze["terms"]:
        shown = {name: amount("cpu", value) for name, value in terms.items()}
        lines += [
            (
                f"  allowed {shown['allowed']} = {shown['capacity']} − margin {shown['margin']} − all else "
                f"{shown['others']}, no less than {shown['minimum']}; grows step by step"
            ),
            f"  limit   {shown['limit']} = allowed − batch outside of groups {shown['outside']}",
        ]
    lines += paragraph(squeeze["why"], "  ") if squeeze["why"] else []
    for group in squeeze["groups"]:
        lines += paragraph(_group(group), "  ")
    lines += [
        line for task, why in squeeze["without"].items() for line in paragraph(f"not limited: {task}: {why}", "  ")
    ]
    lines += [line for problem in squeeze["problems"] for line in paragraph(f"! {problem}", "  ")]
    return lines


def _group(group: Answer) -> str:
    would = "" if group["enforced"] else "would be "
    limit = "" if group["limit_milli"] is None else f": {would}limited to {amount('cpu', group['limit_milli'])}"
    in_force = "none" if group["in_force_milli"] is None else amount("cpu", group["in_force_milli"])
    moves = f", {group['to_move']} processes not in it yet" if group["to_move"] else ""
    throttled = group["throttled_seconds"]
    waited = "" if throttled is None else f", kept waiting {throttled:.1f} s in all"
    clusters = ", ".join(group["clusters"])
    return f"{group['group']} ({group['tasks']} tasks of {clusters}){limit}; in force {in_force}{moves}{waited}"
