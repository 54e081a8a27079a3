"""`ledger.capacity` for many nodes at once: what each can lend of each resource."""

import numpy as np

from fallow_core.ledger.fleet.arrays import Floats, percent_of
from fallow_core.ledger.fleet.columns import NodeColumns


def batch_capacities(nodes: NodeColumns, table: dict[str, Floats]) -> Floats:
    """By resource and node; 0 where it was never measured. `table` is that of `NodeTerms`."""
    several = len(table["reserved"][0]) > 1
    policy = {name: column.take(nodes.terms, 1) if several else column for name, column in table.items()}
    reserved = np.maximum(nodes.kept, policy["reserved"])
    np.maximum(reserved, np.ceil(nodes.capacity * policy["reserved_percent"] / 100), out=reserved)
    np.maximum(reserved, policy["reserved_per_daemon"] * nodes.daemons, out=reserved)
    np.maximum(reserved, 0, out=reserved)
    real = _lends(nodes.capacity, nodes.outside, reserved, nodes.online, policy)
    if len(nodes.zone_capacity):
        of_node = nodes.zone_capacity / np.maximum(nodes.zone_capacity.sum(0), 1)
        of_zones = _lends(
            nodes.zone_capacity, nodes.zone_outside, np.ceil(reserved * of_node), nodes.zone_online, policy
        ).sum(0)
        real = np.where(nodes.zones > 0, np.minimum(real, of_zones), real)
    return percent_of(real, policy["overcommit_percent"])


def _lends(capacity: Floats, outside: Floats, reserved: Floats, online: Floats, policy: dict[str, Floats]) -> Floats:
    """The formula, for nodes or zones of them."""
    margin = np.ceil(capacity * (100 - policy["watermark_percent"]) / 100)
    free = capacity - margin - np.maximum(outside, reserved) - online
    found: Floats = np.maximum(np.minimum(free, percent_of(capacity, policy["cap_percent"])), 0)
    return found
