"""`ledger.node_ledger` for many nodes at once: from what is known of them to the size that each row should have."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fallow_core.ledger.fleet.arrays import LARGEST, NONE, Bools, Ints, product_quotient, up_to_units
from fallow_core.ledger.fleet.capacity import batch_capacities
from fallow_core.ledger.fleet.columns import RESOURCES, NodeColumns, RowColumns
from fallow_core.ledger.fleet.level import whole_units
from fallow_core.ledger.fleet.sharing import targets
from fallow_core.ledger.fleet.terms import ALL, NOTHING, AccountTable, NodeTerms
from fallow_core.ledger.fleet.together import Claims, cut
from fallow_core.ledger.shapes import MIB
from fallow_core.ledger.sharing import FULL_PERCENT
from fallow_core.model.policy import PublishingPolicy, Sharing

Lookup: TypeAlias = Callable[[Ints], Ints]


@dataclass(slots=True)
class Sizes:
    """What was computed. By slot, resource and node: as in `RowEntry`, `fair` and `limit` as in `AccountEntry`. By
    resource and node: as in `ResourceLedger`; `batch` is what is believed where nothing was measured.
    """

    target: Ints
    wanted: Ints
    size: Ints
    most: Ints
    fair: Ints
    limit: Ints
    unit: Ints
    batch: Ints
    drain_step: Ints
    overcommitted: Bools
    drains: Bools
    shared: bool


def sizes(
    nodes: NodeColumns,
    rows: RowColumns,
    node_terms: NodeTerms,
    table: AccountTable,
    policy: PublishingPolicy,
    now: float,
) -> Sizes:
    """Compute the ledgers of nodes."""
    measured = ~np.isnan(nodes.measured_at)
    believed = rows.belief.sum(0)
    batch = np.where(measured, batch_capacities(nodes, node_terms.table), believed)
    drain_step = batch * policy.drain_step_percent // 100
    of_terms = _lookup(table, rows)
    most = _most(nodes, rows, table, of_terms(table.maximum), policy, now)
    claims = _claims(nodes, rows, table, of_terms, policy, batch, most)
    demand, fair = cut(claims)
    shared = policy.sharing is Sharing.SHARED
    of_accounts, drains = targets(claims, demand, fair, drain_step, shared=shared)
    target = np.where(measured, _of_rows(of_accounts, claims, most), rows.newest)
    wanted = np.minimum(target, most)
    return Sizes(
        target=target,
        wanted=wanted,
        size=np.maximum(_grown(nodes, rows, claims, wanted, shared=shared), rows.floor),
        fair=fair,
        most=most,
        limit=claims.limit,
        unit=claims.unit,
        batch=batch,
        drain_step=drain_step,
        overcommitted=(rows.allocated.sum(0) if shared else believed) > batch,
        shared=shared,
        drains=drains,
    )


def _most(
    nodes: NodeColumns, rows: RowColumns, table: AccountTable, most: Ints, policy: PublishingPolicy, now: float
) -> Ints:
    """What rows may be sized to: nothing, what they have, or what the framework can use."""
    age, late = now - nodes.measured_at, policy.withdraw_after_seconds
    unmeasured = np.isnan(age)
    missing = np.where(np.isnan(nodes.watched_since), 0.0, now - nodes.watched_since) >= late
    withdrawn = (unmeasured & missing) | (age <= -late) | (age >= late)
    workloads_age = now - nodes.workloads_at
    limit = policy.degrade_after_seconds
    old = unmeasured | (age < 0) | (age >= limit) | (workloads_age < 0) | (workloads_age >= limit) | nodes.unsure
    row_age = now - rows.measured_at
    old_rows = (row_age < 0) | (row_age >= limit)
    switch = table.switch.take(rows.terms)
    keeps = (old_rows | (switch != ALL))[:, None] | old
    nothing = (switch == NOTHING)[:, None] | withdrawn
    np.copyto(most, rows.newest, where=keeps)
    np.copyto(most, 0, where=nothing)
    return most


def _claims(
    nodes: NodeColumns,
    rows: RowColumns,
    table: AccountTable,
    of_terms: Lookup,
    policy: PublishingPolicy,
    batch: Ints,
    most: Ints,
) -> Claims:
    unit, pending = of_terms(table.unit), of_terms(table.pending)
    largest = of_terms(table.largest)
    room = np.maximum(nodes.capacity * policy.drain_step_percent // 100, np.maximum(rows.floor, largest))
    unknown = pending < 0
    return Claims(
        batch=batch,
        weight=of_terms(table.weight),
        allocated=rows.allocated,
        wants=_wants(rows, pending, unknown, room, unit),
        limit=_limits(table, rows, of_terms, batch, most, unit),
        floor=rows.floor,
        unit=unit,
        next_up=np.where(unknown, rows.allocated, pending),
        spare=np.where(unknown, room, largest),
    )


def _lookup(table: AccountTable, rows: RowColumns) -> Lookup:
    """Looks columns of the account table up, by slot, resource and node."""
    count = len(table.clusters)
    at = rows.terms[:, None] + np.arange(0, RESOURCES * count, count)[:, None]
    return lambda column: column.reshape(-1).take(at)


def _wants(rows: RowColumns, pending: Ints, unknown: Bools, room: Ints, unit: Ints) -> Ints:
    """`sharing.demand`. Whether a size is a whole unit matters to accounts alone that are not full."""
    wants = rows.allocated + pending
    roomy = np.maximum(rows.allocated + room, rows.allocated * 100 // FULL_PERCENT + 1)
    np.copyto(wants, NONE, where=unknown)
    slots, resources, at = np.nonzero(unknown & (rows.in_force >= roomy))
    units = unit[slots, resources, at]
    roomy = -(-roomy[slots, resources, at] // units) * units
    wants[slots, resources, at] = np.where(rows.in_force[slots, resources, at] < roomy, NONE, roomy)
    return wants


def _limits(table: AccountTable, rows: RowColumns, of_terms: Lookup, batch: Ints, most: Ints, unit: Ints) -> Ints:
    """The least of the operator's limit and of what rows may be sized to, in whole units; most are whole already."""
    limits = of_terms(table.limit_amount)
    if (table.limit_percent >= 0).any():
        percent = of_terms(table.limit_percent)
        limits = np.where(percent >= 0, batch * percent // 100, limits)
    if (table.mib_per_core >= 0).any():
        mib = table.mib_per_core.take(rows.terms)
        of_tasks = np.minimum(batch[0] * mib // 1000, LARGEST) * MIB
        np.minimum(limits[:, 1], np.where(mib < 0, NONE, of_tasks), out=limits[:, 1])
    np.minimum(limits, most, out=limits)
    slots, resources, at = np.nonzero((limits != of_terms(table.maximum)) & (limits > 0) & (limits != NONE))
    units = unit[slots, resources, at]
    limits[slots, resources, at] = limits[slots, resources, at] // units * units
    return limits


def _of_rows(of_accounts: Ints, claims: Claims, most: Ints) -> Ints:
    """`sharing.divided` for accounts of one row. A target is in whole units already, unless it is what is allocated."""
    falls = of_accounts < claims.allocated
    bounded = np.where(
        falls, np.maximum(of_accounts, claims.floor), np.maximum(np.minimum(of_accounts, most), claims.allocated)
    )
    slots, resources, at = np.nonzero((bounded != of_accounts) | (bounded == claims.allocated))
    amounts, units = bounded[slots, resources, at], claims.unit[slots, resources, at]
    whole = amounts // units * units
    whole += units * ((whole < amounts) & (units <= of_accounts[slots, resources, at] - whole))
    bounded[slots, resources, at] = whole
    return bounded


def _grown(nodes: NodeColumns, rows: RowColumns, claims: Claims, wanted: Ints, *, shared: bool) -> Ints:
    """`sharing.grown`; nothing to grow out of where a row of before is awaited, or a size in force is not known."""
    unknown = nodes.awaited | (rows.running & ~rows.known).any(0)
    kept = up_to_units(np.maximum(rows.belief, rows.floor), claims.unit)
    free = np.where(unknown, 0, claims.batch) - kept.sum(0)
    growth = np.maximum(wanted - kept, 0)
    grown = np.where(free < 0, np.minimum(wanted, rows.newest), wanted)
    bound = np.broadcast_to(unknown, free.shape) if shared else np.ones(free.shape, np.bool_)
    if shared:
        grown = np.where(bound, grown, wanted)
    short = np.flatnonzero((bound & (free >= 0) & (growth.sum(0) > 0)).reshape(-1))
    if short.size:
        flat = [a.reshape(len(wanted), -1).take(short, 1) for a in (growth, claims.unit)]
        whole = _allowed(free.reshape(-1).take(short), *flat)
        out = grown.reshape(len(wanted), -1)
        out[:, short] += whole - flat[0]
        grown = out.reshape(wanted.shape)
    return grown


def _allowed(free: Ints, growth: Ints, units: Ints) -> Ints:
    """Growth within what is free, in whole units: each gets the same part of it."""
    together = growth.sum(0)
    parts = growth.copy()
    short = np.flatnonzero(together > free)
    if short.size:
        of_short = (free.take(short), growth.take(short, 1), together.take(short))
        parts[:, short] = product_quotient(*np.broadcast_arrays(*of_short))
    return whole_units(free, parts, units)
