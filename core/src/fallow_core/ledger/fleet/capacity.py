"""`ledger.capacity`: what a node can lend of a resource."""

import math

from fallow_core.ledger.fleet.arrays import Record, Records, compiled


@compiled
def reserved(node: Record, policy: Record, r: int) -> int:
    """What is reserved of a node."""
    percent = -(-node.capacity[r] * policy.reserved_percent[r] // 100)
    per_daemon = policy.reserved_per_daemon[r] * node.daemons
    return int(max(node.kept[r], policy.reserved[r], percent, per_daemon, 0))


@compiled
def batch_real(node: Record, reserved: int, policy: Record, r: int) -> int:
    """What is really there for batch on a node that was measured, without regard to zones."""
    return _lends(node.capacity[r], node.outside[r], reserved, node.online[r], policy, r)


@compiled
def of_zones(node: Record, zones: Records, n: int, reserved: int, policy: Record, r: int) -> int:
    """The same of the zones of node `n`, together."""
    total = found = 0
    for z in range(node.zones[r]):
        total += zones[n, z].capacity[r]
    for z in range(node.zones[r]):
        zone = zones[n, z]
        own = math.ceil(reserved * (zone.capacity[r] / max(total, 1)))
        found += _lends(zone.capacity[r], zone.outside[r], own, zone.online[r], policy, r)
    return found


@compiled
def _lends(capacity: int, outside: int, reserved: int, online: int, policy: Record, r: int) -> int:
    """The formula, for a node or a zone of it."""
    margin = -(-capacity * (100 - policy.watermark_percent[r]) // 100)
    free = capacity - margin - max(outside, reserved) - online
    return int(max(0, min(free, capacity * policy.cap_percent[r] // 100)))
