"""Which values cannot be true, and why: of a sample, a row, a task, what is pending, a workload.

What is refused is named, and counts as if it had not come: the last good value of the same thing grows older. Each
function says what is wrong, or nothing. Types are not taken for granted: a NaN is a float that is never too old.
"""

import math
from collections.abc import Mapping

from fallow_core.model.sample import NodeSample, Usage
from fallow_core.model.workload import Workload
from fallow_hookspecs import RESOURCE_NAMES, Pending, ReportRow, ResourceName, Resources, Task

MOST = 1 << 60
"""More than any amount in milli-cores or bytes."""

LEAST_CAPACITY: dict[ResourceName, int] = {"cpu": 100, "memory": 1 << 20}
"""A node has at least so much, or the amount is in another unit."""

_OF_UNIT: dict[ResourceName, str] = {"cpu": "milli-cores", "memory": "bytes"}


def accepted(before: NodeSample, newest: NodeSample, now: float) -> tuple[NodeSample, dict[ResourceName, str]]:
    """The newest good reading of each resource, and why a newer one is refused. One that comes late changes nothing."""
    kept: dict[ResourceName, Usage | None] = {}
    refused: dict[ResourceName, str] = {}
    for name in RESOURCE_NAMES:
        old, new = before.of(name), newest.of(name)
        if new is not None and (why := wrong_usage(name, new, now)):
            refused[name], new = why, None
        late = old is not None and new is not None and new.measured_at < old.measured_at
        kept[name] = old if new is None or late else new
    return NodeSample(cpu=kept["cpu"], memory=kept["memory"]), refused


def wrong_usage(resource: ResourceName, usage: Usage, now: float) -> str:
    """What is wrong with a reading."""
    wrong = _time("its time", usage.measured_at) or _amounts(
        {"capacity": usage.capacity, "used": usage.used, "batch_used": usage.batch_used, **usage.unusable}
    )
    if not wrong and usage.allocatable is not None:
        wrong = _amounts({"allocatable": usage.allocatable})
    for zone in usage.zones if not wrong else ():
        wrong = wrong or _amounts(
            {
                f"capacity of zone {zone.name}": zone.capacity,
                f"used of zone {zone.name}": zone.used,
                f"batch_used of zone {zone.name}": zone.batch_used,
            }
        )
    if wrong:
        return wrong
    if usage.measured_at > now:
        return f"it was measured {usage.measured_at - now:g} s from now"
    if usage.capacity < LEAST_CAPACITY[resource]:
        return f"capacity is {usage.capacity}, which is too little in {_OF_UNIT[resource]}"
    if max(usage.used, usage.batch_used) > 2 * usage.capacity:
        return f"used is {max(usage.used, usage.batch_used)}, more than twice the capacity of {usage.capacity}"
    return ""


def wrong_row(row: ReportRow) -> str:
    """What is wrong with a report of one of a framework's nodes."""
    sizes = {
        "allocated": row.allocated,
        "in_force": row.in_force,
        "unit": row.unit,
        "floor": row.floor,
        "maximum": row.maximum,
    }
    ages = {"age_seconds": row.age_seconds, "started_age_seconds": row.started_age_seconds}
    wrong = next((text for name, size in sizes.items() if size is not None and (text := wrong_size(name, size))), "")
    wrong = wrong or next((text for name, age in ages.items() if age is not None and (text := _time(name, age))), "")
    if not wrong and row.age_seconds < 0:
        wrong = f"age_seconds is {row.age_seconds:g}, a time to come"
    if not wrong and min(row.unit.cpu_milli, row.unit.memory_bytes) < 1:
        wrong = f"unit is {row.unit.cpu_milli} milli-cores and {row.unit.memory_bytes} bytes, and has to be at least 1"
    return wrong


def wrong_partitions(by_partition: Mapping[str, Pending]) -> str:
    """What is wrong with what is pending in partitions."""
    parts = ((name, wrong_pending(pending)) for name, pending in by_partition.items())
    return next((f"partition {name!r}: {why}" for name, why in parts if why), "")


def wrong_pending(pending: Pending) -> str:
    """What is wrong with what is pending."""
    parts = {"total": pending.total, "smallest": pending.smallest, "largest": pending.largest}
    return next((text for name, size in parts.items() if size is not None and (text := wrong_size(name, size))), "")


def wrong_task(task: Task) -> str:
    """What is wrong with a task."""
    return wrong_size("requested", task.requested)


def wrong_workload(workload: Workload) -> str:
    """What is wrong with a pod or a host application."""
    used = {f"used {name}": amount for name, amount in workload.used.items()}
    return wrong_size("request", workload.request) or _amounts(used) or _time("age_seconds", workload.age_seconds)


def wrong_size(name: str, size: Resources) -> str:
    """What is wrong with an amount of each resource."""
    return _amounts({f"{name} {resource}": size.amount(resource) for resource in RESOURCE_NAMES})


def _amounts(amounts: Mapping[str, object]) -> str:
    for name, amount in amounts.items():
        if not isinstance(amount, int) or isinstance(amount, bool):
            return f"{name} is {str(amount)[:40]}, not a whole number"
        if not 0 <= amount <= MOST:
            return f"{name} is {'negative' if amount < 0 else 'larger than anything there is'}"
    return ""


def _time(name: str, seconds: object) -> str:
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not math.isfinite(seconds):
        return f"{name} is {str(seconds)[:40]}, not a number of seconds"
    return ""
