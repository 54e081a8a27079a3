"""`ledger.capacity`: what a node can lend of a resource."""

import math

from fallow_core.ledger.fleet.arrays import Record, Records, compiled


@compiled
def batch_capacity(node: Record, zones: Records, policy: Record, r: int) -> int:
    """Batch capacity of a node that was measured."""
    capacity = node.capacity[r]
    reserved = max(
        node.kept[r],
        policy.reserved[r],
        -(-capacity * policy.reserved_percent[r] // 100),
        policy.reserved_per_daemon[r] * node.daemons,
        0,
    )
    real = _lends(capacity, node.outside[r], reserved, node.online[r], policy, r)
    if node.zones[r] > 0:
        total = of_zones = 0
        for z in range(node.zones[r]):
            total += zones[z].capacity[r]
        for z in range(node.zones[r]):
            zone = zones[z]
            own = math.ceil(reserved * (zone.capacity[r] / max(total, 1)))
            of_zones += _lends(zone.capacity[r], zone.outside[r], own, zone.online[r], policy, r)
        real = min(real, of_zones)
    return int(real * policy.overcommit_percent[r] // 100)


@compiled
def _lends(capacity: int, outside: int, reserved: int, online: int, policy: Record, r: int) -> int:
    """The formula, for a node or a zone of it."""
    margin = -(-capacity * (100 - policy.watermark_percent[r]) // 100)
    free = capacity - margin - max(outside, reserved) - online
    return int(max(0, min(free, capacity * policy.cap_percent[r] // 100)))
