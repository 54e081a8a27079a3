"""The arithmetic of what a node can lend, as lines for people."""

from typing import Any

from fallow_core.cli.table import amount, paragraph, seconds
from fallow_hookspecs import ResourceName

Answer = dict[str, Any]

MOST_COUNTED = 20


def capacity_lines(name: ResourceName, capacity: Answer, age_seconds: float) -> list[str]:
    """One line for each term; pods, zones and the ratio only where there are any."""

    def shown(value: float | None) -> str:
        return amount(name, value)

    used_by_pods = sum(each["used"] for each in capacity["counted"])
    pods = f" − pods and applications {shown(used_by_pods)}" if capacity["counted"] else ""
    parts = ", ".join(f"{what} {shown(value)}" for what, value in capacity["reservations"])
    reserved = f" (largest of: {parts})" if len(capacity["reservations"]) > 1 else ""
    lines = paragraph(
        f"system  {shown(capacity['system'])} = the larger of: in use {shown(capacity['used'])} − its batch "
        f"{shown(capacity['batch_used'])}{pods}; reserved {shown(capacity['reserved'])}{reserved}",
        "  ",
    )
    lines += paragraph(
        f"margin  {shown(capacity['margin'])} = {shown(capacity['capacity'])} × (100 − watermark "
        f"{capacity['watermark_percent']}) %",
        "  ",
    )
    if capacity["counted"]:
        most = capacity["counted"][:MOST_COUNTED]
        each = ", ".join(f"{one['name']} {shown(one['online'])} ({one['why']})" for one in most)
        more = f", and {len(capacity['counted']) - len(most)} more" if len(capacity["counted"]) > len(most) else ""
        lines += paragraph(f"online  {shown(capacity['online'])} = {each}{more}", "  ")
    online = " − online" if capacity["counted"] else ""
    zones = "".join(f"; zone {zone['name']} {shown(zone['batch_real'])}" for zone in capacity["zones"])
    lines += paragraph(
        f"batch   {shown(capacity['batch_real'])} = {shown(capacity['capacity'])} − margin − system{online}, "
        f"from 0 to {shown(capacity['cap'])}{zones}   (measured {seconds(age_seconds)} ago)",
        "  ",
    )
    if capacity["overcommit_percent"] != 100:
        lines.append(f"  promised {shown(capacity['batch'])} = batch × overcommit {capacity['overcommit_percent']} %")
    return lines
