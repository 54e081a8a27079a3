"""Brings the inputs of a node into columns. What does not fit there is computed by the plain version."""

import math
from collections.abc import Iterator

from fallow_core.ledger.entries import NodeInputs
from fallow_core.ledger.fleet.arrays import HEAVIEST, LARGEST, LARGEST_CPU, MOST_PERCENT, NONE, Record, Records
from fallow_core.ledger.fleet.terms import Accounts, AccountTerm, Policies, Work
from fallow_core.ledger.implausible import wrong_workload
from fallow_core.ledger.online_use import Counted, counted, in_zone
from fallow_core.ledger.rows import ZERO, Row
from fallow_core.ledger.task_shapes import TaskShape
from fallow_core.model.policy import AccountPolicy
from fallow_core.model.sample import Usage
from fallow_hookspecs import RESOURCE_NAMES, NodeState, ResourceName, Resources


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


def zones_of(inputs: NodeInputs) -> int:
    """How many zones there has to be room for."""
    return max(
        (len(usage.zones) for name in RESOURCE_NAMES if (usage := inputs.sample.of(name)) is not None), default=0
    )


def _amounts(inputs: NodeInputs, name: ResourceName) -> Iterator[int]:
    usage = inputs.sample.of(name)
    if usage is not None:
        yield from (usage.capacity, usage.used, usage.batch_used, usage.allocatable or 0, *usage.unusable.values())
        yield from (amount for zone in usage.zones for amount in (zone.capacity, zone.used, zone.batch_used))
    for workload in inputs.workloads:
        yield from (workload.used.get(name, 0), workload.request.amount(name))
    for row in inputs.rows:
        sizes = (row.unit, row.floor, row.allocated, row.maximum, row.in_force, *(s.size for s in row.in_flight))
        yield from (size.amount(name) for size in sizes if size is not None)


def write_node(node: Record, zones: Records, policies: Policies, inputs: NodeInputs) -> None:
    """Write all but the rows of a node."""
    right = [each for each in inputs.workloads if not wrong_workload(each)]
    node["policy"] = policies.number(inputs.policy)
    node["rows"] = len(inputs.rows)
    node["daemons"] = sum(row.state is not NodeState.GONE for row in inputs.rows)
    node["unsure"] = bool(inputs.unsure) or len(right) < len(inputs.workloads)
    node["awaited"] = bool(inputs.awaited)
    node["watched_since"] = _time(inputs.watched_since)
    node["workloads_at"] = _time(inputs.workloads_at)
    for r, name in enumerate(RESOURCE_NAMES):
        usage = inputs.sample.of(name) or Usage(measured_at=math.nan, capacity=0, used=0, batch_used=0)
        workloads = counted(right, name, inputs.policy.of(name).rule, inputs.policy.usage_window_seconds)
        node["measured_at"][r] = usage.measured_at
        node["capacity"][r] = usage.capacity
        node["outside"][r] = usage.used - usage.batch_used - sum(each.used for each in workloads)
        node["kept"][r] = usage.capacity - usage.allocatable if usage.allocatable is not None else 0
        node["online"][r] = sum(each.online for each in workloads) + sum(usage.unusable.values())
        node["zones"][r] = len(usage.zones)
        _write_zones(zones, r, usage, workloads)


def _write_zones(zones: Records, r: int, usage: Usage, workloads: tuple[Counted, ...]) -> None:
    names = [zone.name for zone in usage.zones]
    weights = [max(zone.used - zone.batch_used, 0) for zone in usage.zones]
    for z, zone in enumerate(usage.zones):
        parts = [in_zone(each, z, names, weights) for each in workloads]
        zones["capacity"][z, r] = zone.capacity
        zones["outside"][z, r] = zone.used - zone.batch_used - sum(used for used, _ in parts)
        zones["online"][z, r] = sum(online for _, online in parts)


def write_rows(records: Records, accounts: Accounts, inputs: NodeInputs) -> None:
    """Write the rows of a node, sorted by key, into its slots."""
    for record, row in zip(records, sorted(inputs.rows, key=lambda row: row.key), strict=False):
        cluster = row.key.cluster
        accounts.work(cluster, Work(inputs.pending.get(cluster), inputs.shapes.get(cluster, TaskShape())))
        term = AccountTerm(cluster, inputs.accounts.get(cluster, AccountPolicy()), row.unit)
        record["account"] = accounts.number(term)
        _write_row(record, row)


def _write_row(record: Record, row: Row) -> None:
    in_force = row.in_force if row.in_force is not None else ZERO
    belief = [row.belief(r) for r in RESOURCE_NAMES]
    record["allocated"] = _by_resource(row.allocated)
    record["in_force"] = _by_resource(in_force)
    record["newest"] = belief if row.newest_size is None else _by_resource(row.newest_size)
    record["belief"] = belief
    record["floor"] = _by_resource(row.floor)
    record["maximum"] = [NONE if (most := row.most(r)[0]) is None else most for r in RESOURCE_NAMES]
    record["measured_at"] = row.measured_at
    record["refreshed_at"] = _time(row.refreshed_at)
    record["refused_at"] = _time(row.refused_at)
    record["running"] = row.state is NodeState.RUNNING
    record["known"] = row.in_force is not None
    record["astray"] = row.may_be_armed or (row.resend and row.newest_size != row.in_force)


def _by_resource(size: Resources) -> tuple[int, int]:
    return size.cpu_milli, size.memory_bytes


def _time(time: float | None) -> float:
    return math.nan if time is None else time
