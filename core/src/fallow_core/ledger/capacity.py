"""What a node can lend of one resource now.

margin     = capacity × (100 − watermark) / 100                                                  rounded up
reserved   = max(capacity − allocatable, fixed, capacity × percent / 100, per daemon × daemons)
system     = max(used − batch_used − used by pods and host applications, reserved)
online     = what online pods and host applications count with; without them, online use is part of `system`
unusable   = what is not in use, but nobody's to use: CPU time that a hypervisor took, memory behind watermarks
batch_real = clamp(capacity − margin − system − online − unusable, 0, capacity × cap / 100)      rounded down
batch      = batch_real × overcommit / 100                                                       rounded down

Where the node has NUMA zones the same is computed for each, with its part of what is reserved by its capacity, and the
node lends no more than its zones together. What is unusable is known of the whole node only.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fallow_core.ledger.online_use import Counted, in_zone
from fallow_core.model.policy import ResourcePolicy
from fallow_core.model.sample import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneCapacity:
    """What one NUMA zone can lend, with its terms."""

    name: str
    capacity: int
    margin: int
    system: int
    online: int
    cap: int
    batch_real: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCapacity:
    """Batch capacity of one resource with every term that made it, in the unit of the resource.

    `reservations` are what `reserved` is the largest of, by name, without those that are nothing. `counted` are the
    pods and host applications, `unusable` as in `Usage`. `batch_real` is what is really there for batch, `batch`
    what may be promised.
    """

    capacity: int
    watermark_percent: int
    margin: int
    used: int
    batch_used: int
    reserved: int
    system: int
    cap: int
    batch: int
    batch_real: int
    online: int = 0
    overcommit_percent: int = 100
    reservations: tuple[tuple[str, int], ...] = ()
    counted: tuple[Counted, ...] = ()
    unusable: tuple[tuple[str, int], ...] = ()
    zones: tuple[ZoneCapacity, ...] = ()


def batch_capacity(
    usage: Usage, policy: ResourcePolicy, counted: Sequence[Counted] = (), daemons: int = 0
) -> BatchCapacity:
    """What can be lent, from one reading. What is reserved is rounded up, what is lent is rounded down.

    `counted`: pods and host applications. `daemons`: how many of frameworks run on the node.
    """
    reservations = {
        "allocatable": usage.capacity - usage.allocatable if usage.allocatable is not None else 0,
        "fixed": policy.reserved,
        "percent": -(-usage.capacity * policy.reserved_percent // 100),
        "daemons": policy.reserved_per_daemon * daemons,
    }
    reserved = max(0, *reservations.values())
    node = _lends(
        usage.capacity,
        usage.used - usage.batch_used - sum(each.used for each in counted),
        reserved,
        sum(each.online for each in counted),
        policy,
        unusable=sum(usage.unusable.values()),
    )
    zones = _zones(usage, policy, counted, reserved)
    batch_real = min(node.batch_real, sum(zone.batch_real for zone in zones)) if zones else node.batch_real
    return BatchCapacity(
        capacity=usage.capacity,
        watermark_percent=policy.watermark_percent,
        margin=node.margin,
        used=usage.used,
        batch_used=usage.batch_used,
        reserved=reserved,
        system=node.system,
        cap=node.cap,
        batch=batch_real * policy.overcommit_percent // 100,
        batch_real=batch_real,
        online=node.online,
        overcommit_percent=policy.overcommit_percent,
        reservations=tuple((name, amount) for name, amount in reservations.items() if amount > 0),
        counted=tuple(counted),
        unusable=tuple(usage.unusable.items()),
        zones=zones,
    )


def _lends(
    capacity: int, used: int, reserved: int, online: int, policy: ResourcePolicy, name: str = "", unusable: int = 0
) -> ZoneCapacity:
    """The formula, for a node or a zone of it."""
    margin = -(-capacity * (100 - policy.watermark_percent) // 100)
    system = max(used, reserved)
    cap = capacity * policy.cap_percent // 100
    batch_real = max(0, min(capacity - margin - system - online - unusable, cap))
    return ZoneCapacity(
        name=name, capacity=capacity, margin=margin, system=system, online=online, cap=cap, batch_real=batch_real
    )


def _zones(usage: Usage, policy: ResourcePolicy, counted: Sequence[Counted], reserved: int) -> tuple[ZoneCapacity, ...]:
    """Work that may use several zones is where there is use outside batch."""
    names = [zone.name for zone in usage.zones]
    weights = [max(zone.used - zone.batch_used, 0) for zone in usage.zones]
    total = sum(zone.capacity for zone in usage.zones)
    zones = []
    for i, zone in enumerate(usage.zones):
        parts = [in_zone(each, i, names, weights) for each in counted]
        used = zone.used - zone.batch_used - sum(used for used, _ in parts)
        online = sum(online for _, online in parts)
        zones.append(
            _lends(
                zone.capacity, used, math.ceil(reserved * (zone.capacity / max(total, 1))), online, policy, zone.name
            )
        )
    return tuple(zones)
