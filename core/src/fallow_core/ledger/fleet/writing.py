"""Brings the inputs of a node into columns. What does not fit there is computed by the plain version."""

import math
from collections.abc import Iterator

from fallow_core.ledger.fleet.arrays import HEAVIEST, LARGEST, LARGEST_CPU, MOST_PERCENT, NONE
from fallow_core.ledger.fleet.columns import RESOURCES, NodeColumns, RowColumns
from fallow_core.ledger.fleet.terms import AccountTerm, AccountTerms, NodeTerms, Work
from fallow_core.ledger.node_ledger import NodeInputs
from fallow_core.ledger.online import Counted, counted, in_zone
from fallow_core.ledger.rows import Row
from fallow_core.ledger.shapes import TaskShape
from fallow_core.model.policy import AccountPolicy
from fallow_core.model.sample import Usage
from fallow_hookspecs import RESOURCE_NAMES, NodeState, ResourceName


def fits(inputs: NodeInputs, slots: int) -> bool:
    """Whether columns can hold the node: each row an account of its own, no more of them than slots, and amounts of
    which products fit 64 bits.
    """
    clusters = {row.key.cluster for row in inputs.rows}
    if len(inputs.rows) > slots or len(clusters) < len(inputs.rows):
        return False
    policies = [inputs.accounts.get(cluster, AccountPolicy()) for cluster in clusters]
    return (
        all(0 <= amount < LARGEST_CPU for amount in _amounts(inputs, "cpu"))
        and all(0 <= amount < LARGEST for amount in _amounts(inputs, "memory"))
        and all(1 <= policy.weight <= HEAVIEST for policy in policies)
        and all(inputs.policy.of(name).overcommit_percent <= MOST_PERCENT for name in RESOURCE_NAMES)
        and all(row.unit.amount(r) >= 1 for row in inputs.rows for r in RESOURCE_NAMES)
    )


def _amounts(inputs: NodeInputs, name: ResourceName) -> Iterator[int]:
    usage = inputs.sample.of(name)
    if usage is not None:
        yield from (usage.capacity, usage.used, usage.batch_used, usage.allocatable or 0)
        yield from (amount for zone in usage.zones for amount in (zone.capacity, zone.used, zone.batch_used))
    for workload in inputs.workloads:
        yield from (workload.used.get(name, 0), workload.request.amount(name))
    for row in inputs.rows:
        sizes = (row.unit, row.floor, row.allocated, row.maximum, row.in_force, *(s.size for s in row.in_flight))
        yield from (size.amount(name) for size in sizes if size is not None)


def write_node(columns: NodeColumns, terms: NodeTerms, at: int, inputs: NodeInputs) -> None:
    """Write all but the rows of a node."""
    columns.terms[at] = terms.number(inputs.policy)
    columns.daemons[at] = sum(row.state is not NodeState.GONE for row in inputs.rows)
    columns.unsure[at] = bool(inputs.unsure)
    columns.awaited[at] = bool(inputs.awaited)
    columns.watched_since[at] = _time(inputs.watched_since)
    columns.workloads_at[at] = _time(inputs.workloads_at)
    for r, name in enumerate(RESOURCE_NAMES):
        usage = inputs.sample.of(name)
        if usage is None:
            columns.measured_at[r, at] = math.nan
            usage = Usage(measured_at=math.nan, capacity=0, used=0, batch_used=0)
        rule = inputs.policy.of(name).rule
        workloads = counted(inputs.workloads, name, rule, inputs.policy.usage_window_seconds)
        _write_usage(columns, r, at, usage, workloads)


def _write_usage(columns: NodeColumns, r: int, at: int, usage: Usage, workloads: tuple[Counted, ...]) -> None:
    columns.measured_at[r, at] = usage.measured_at
    columns.capacity[r, at] = usage.capacity
    columns.outside[r, at] = usage.used - usage.batch_used - sum(each.used for each in workloads)
    columns.kept[r, at] = usage.capacity - usage.allocatable if usage.allocatable is not None else 0
    columns.online[r, at] = sum(each.online for each in workloads)
    columns.zones[r, at] = len(usage.zones)
    if len(usage.zones) > len(columns.zone_capacity):
        columns.with_zones(len(usage.zones))
    columns.zone_capacity[:, r, at] = columns.zone_outside[:, r, at] = columns.zone_online[:, r, at] = 0
    names = [zone.name for zone in usage.zones]
    weights = [max(zone.used - zone.batch_used, 0) for zone in usage.zones]
    for z, zone in enumerate(usage.zones):
        parts = [in_zone(each, z, names, weights) for each in workloads]
        columns.zone_capacity[z, r, at] = zone.capacity
        columns.zone_outside[z, r, at] = zone.used - zone.batch_used - sum(used for used, _ in parts)
        columns.zone_online[z, r, at] = sum(online for _, online in parts)


def write_rows(columns: RowColumns, terms: AccountTerms, at: int, inputs: NodeInputs) -> None:
    """Write the rows of a node, sorted by key, into its slots."""
    rows = sorted(inputs.rows, key=lambda row: row.key)
    for slot in range(len(columns.terms)):
        if slot < len(rows):
            policy = inputs.accounts.get(rows[slot].key.cluster, AccountPolicy())
            cluster = rows[slot].key.cluster
            terms.work(cluster, Work(inputs.pending.get(cluster), inputs.shapes.get(cluster, TaskShape())))
            term = AccountTerm(cluster, policy, rows[slot].unit)
            columns.terms[slot, at] = terms.number(term)
            _write_row(columns, slot, at, rows[slot])
        else:
            columns.clear(slot, at)


def _write_row(columns: RowColumns, slot: int, at: int, row: Row) -> None:
    columns.running[slot, at] = row.state is NodeState.RUNNING
    columns.known[slot, at] = row.in_force is not None
    columns.astray[slot, at] = row.resend and row.newest_size != row.in_force
    columns.measured_at[slot, at] = row.measured_at
    columns.refreshed_at[slot, at] = _time(row.refreshed_at)
    columns.refused_at[slot, at] = _time(row.refused_at)
    for r in range(RESOURCES):
        name: ResourceName = RESOURCE_NAMES[r]
        newest, belief = row.newest(name), row.belief(name)
        columns.allocated[slot, r, at] = row.allocated.amount(name)
        columns.in_force[slot, r, at] = row.in_force.amount(name) if row.in_force is not None else 0
        columns.newest[slot, r, at] = belief if newest is None else newest
        columns.belief[slot, r, at] = belief
        columns.floor[slot, r, at] = row.floor.amount(name)
        unit, most = row.unit.amount(name), row.maximum
        columns.maximum[slot, r, at] = NONE if most is None else most.amount(name) // unit * unit


def _time(time: float | None) -> float:
    return math.nan if time is None else time
