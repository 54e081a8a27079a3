"""`ledger.capacity` for many nodes at once: what each can lend of each resource."""

import numpy as np

from fallow_core.ledger.fleet.arrays import Ints, product_quotient
from fallow_core.ledger.fleet.columns import NodeColumns


def batch_capacities(nodes: NodeColumns, table: dict[str, Ints]) -> Ints:
    """By resource and node; 0 where it was never measured. `table` is that of `NodeTerms`."""
    policy = {name: column.take(nodes.terms, 1) for name, column in table.items()}
    reserved = np.maximum(nodes.kept, policy["reserved"])
    np.maximum(reserved, -(-nodes.capacity * policy["reserved_percent"] // 100), out=reserved)
    np.maximum(reserved, policy["reserved_per_daemon"] * nodes.daemons, out=reserved)
    np.maximum(reserved, 0, out=reserved)
    real = _lends(nodes.capacity, nodes.outside, reserved, nodes.online, policy)
    if len(nodes.zone_capacity):
        total = np.maximum(nodes.zone_capacity.sum(0), 1)
        parts = product_quotient(*np.broadcast_arrays(reserved, nodes.zone_capacity, total))
        parts += reserved * nodes.zone_capacity - parts * total > 0  # what was rounded off is small, whatever wraps
        of_zones = _lends(nodes.zone_capacity, nodes.zone_outside, parts, nodes.zone_online, policy).sum(0)
        real = np.where(nodes.zones > 0, np.minimum(real, of_zones), real)
    return real * policy["overcommit_percent"] // 100


def _lends(capacity: Ints, outside: Ints, reserved: Ints, online: Ints, policy: dict[str, Ints]) -> Ints:
    """The formula, for nodes or zones of them."""
    margin = -(-capacity * (100 - policy["watermark_percent"]) // 100)
    free = capacity - margin - np.maximum(outside, reserved) - online
    found: Ints = np.maximum(np.minimum(free, capacity * policy["cap_percent"] // 100), 0)
    return found
