"""How the capacity that a node can lend was calculated, as lines for people."""

from fallow_core.cli.table import amount, paragraph, seconds
from fallow_core.ledger.capacity import BatchCapacity
from fallow_hookspecs import ResourceName

MOST_COUNTED = 20
UNUSABLE = {
    "stolen": "CPU time in which the hypervisor ran something else",
    "behind watermarks": "memory that is free, and that the kernel gives to no process",
}
"""What is not in use and cannot be lent, by the reason in a sample."""


def capacity_lines(name: ResourceName, capacity: BatchCapacity, age_seconds: float | None) -> list[str]:
    """One line for each term; pods, zones and the ratio only where there are any."""

    def shown(value: float) -> str:
        return amount(name, value)

    counted, reservations = capacity.counted, capacity.reservations
    pods = f" − pods and applications {shown(sum(each.used for each in counted))}" if counted else ""
    parts = ", ".join(f"{what} {shown(value)}" for what, value in reservations)
    reserved = f" (largest of: {parts})" if len(reservations) > 1 else ""
    in_use = f"in use {shown(capacity.used)} − its batch {shown(capacity.batch_used)}{pods}"
    free = f"{shown(capacity.capacity)} × (100 − watermark {capacity.watermark_percent}) %"
    texts = [
        f"system  {shown(capacity.system)} = the larger of: {in_use}; reserved {shown(capacity.reserved)}{reserved}",
        f"margin  {shown(capacity.margin)} = {free}",
    ]
    if counted:
        each = ", ".join(f"{one.name} {shown(one.online)} ({one.why})" for one in counted[:MOST_COUNTED])
        more = f", and {len(counted) - MOST_COUNTED} more" if len(counted) > MOST_COUNTED else ""
        texts.append(f"online  {shown(capacity.online)} = {each}{more}")
    texts += [
        f"{reason}  {shown(value)} = {UNUSABLE.get(reason, 'nobody can use it')}" for reason, value in capacity.unusable
    ]
    online = "".join(
        f" − {term}" for term in (["online"] if counted else []) + [reason for reason, _ in capacity.unusable]
    )
    zones = "".join(f"; zone {zone.name} {shown(zone.batch_real)}" for zone in capacity.zones)
    texts.append(
        f"batch   {shown(capacity.batch_real)} = {shown(capacity.capacity)} − margin − system{online}, "
        f"from 0 to {shown(capacity.cap)}{zones}   (measured {seconds(age_seconds)} ago)"
    )
    lines = [line for text in texts for line in paragraph(text, "  ")]
    if capacity.overcommit_percent != 100:
        lines.append(f"  promised {shown(capacity.batch)} = batch × overcommit {capacity.overcommit_percent} %")
    return lines
