"""`ledger.node_ledger` for many nodes at once: from what is known of them to the size that each row should have."""

from dataclasses import dataclass

import numpy as np

from fallow_core.ledger.fleet.arrays import (
    NONE,
    AnyArray,
    Bools,
    Floats,
    in_units,
    percent_of,
    up_to_units,
)
from fallow_core.ledger.fleet.capacity import batch_capacities
from fallow_core.ledger.fleet.columns import NodeColumns, RowColumns
from fallow_core.ledger.fleet.level import levels, whole_units
from fallow_core.ledger.fleet.sharing import targets
from fallow_core.ledger.fleet.terms import ALL, NOTHING, AccountTable, NodeTerms
from fallow_core.ledger.fleet.together import Claims, cut
from fallow_core.ledger.shapes import MIB
from fallow_core.ledger.sharing import FULL_PERCENT
from fallow_core.ledger.together import ROUNDS
from fallow_core.model.policy import PublishingPolicy, Sharing

GUESSES = ROUNDS + 3
"""How many levels are found of each resource and node."""


@dataclass(slots=True)
class Sizes:
    """What was computed. By slot, resource and node: as in `RowEntry`, `fair` and `limit` as in `AccountEntry`. By
    resource and node: as in `ResourceLedger`; `batch` is what is believed where nothing was measured.
    """

    target: Floats
    wanted: Floats
    size: Floats
    most: Floats
    fair: Floats
    limit: Floats
    unit: Floats
    batch: Floats
    drain_step: Floats
    overcommitted: Bools
    drains: Bools
    shared: bool


def sizes(
    nodes: NodeColumns,
    rows: RowColumns,
    node_terms: NodeTerms,
    table: AccountTable,
    guesses: AnyArray,
    policy: PublishingPolicy,
    now: float,
) -> Sizes:
    """Compute the ledgers of nodes. `guesses`: the levels of the round before, which are brought up to date."""
    unmeasured = np.isnan(nodes.measured_at)
    batch, believed = batch_capacities(nodes, node_terms.table), rows.belief.sum(0)
    np.copyto(batch, believed, where=unmeasured)
    drain_step = percent_of(batch, policy.drain_step_percent)
    most = _most(nodes, rows, table, policy, now)
    claims = _claims(nodes, rows, table, policy, batch, most)
    demand, fair = cut(claims, guesses)
    shared = policy.sharing is Sharing.SHARED
    of_accounts, drains = targets(claims, demand, fair, drain_step, guesses[-1], shared=shared)
    target = _of_rows(of_accounts, claims, most)
    np.copyto(target, rows.newest, where=unmeasured)
    wanted = np.minimum(target, most)
    return Sizes(
        target=target,
        wanted=wanted,
        size=np.maximum(_grown(nodes, rows, claims, wanted, guesses[-2], shared=shared), rows.floor),
        fair=fair,
        most=most,
        limit=claims.limit,
        unit=np.broadcast_to(claims.unit, fair.shape),
        batch=batch,
        drain_step=drain_step,
        overcommitted=(rows.allocated.sum(0) if shared else believed) > batch,
        shared=shared,
        drains=drains,
    )


def _most(nodes: NodeColumns, rows: RowColumns, table: AccountTable, policy: PublishingPolicy, now: float) -> Floats:
    """What rows may be sized to: nothing, what they have, or what the framework can use."""
    age, late = now - nodes.measured_at, policy.withdraw_after_seconds
    unmeasured = np.isnan(age)
    missing = now - nodes.watched_since >= late
    withdrawn = (unmeasured & missing) | (age <= -late) | (age >= late)
    workloads_age = now - nodes.workloads_at
    limit = policy.degrade_after_seconds
    old = unmeasured | (age < 0) | (age >= limit) | (workloads_age < 0) | (workloads_age >= limit) | nodes.unsure
    row_age = now - rows.measured_at
    switch = table.switch.take(rows.terms)
    keeps = ((row_age < 0) | (row_age >= limit) | (switch != ALL))[:, None] | old
    nothing = (switch == NOTHING)[:, None] | withdrawn
    most = rows.maximum.copy()
    np.copyto(most, rows.newest, where=keeps)
    np.copyto(most, 0, where=nothing)
    return most


def _claims(
    nodes: NodeColumns, rows: RowColumns, table: AccountTable, policy: PublishingPolicy, batch: Floats, most: Floats
) -> Claims:
    terms = rows.terms
    if (terms == terms[:, :1]).all():
        terms = terms[:, :1]
    unit, pending, unknown, largest = (
        _looked_up(column, terms) for column in (table.unit, table.pending, table.unknown, table.largest)
    )
    room = percent_of(nodes.capacity, policy.drain_step_percent)
    room = np.maximum(np.maximum(room, rows.floor), largest)
    return Claims(
        batch=batch,
        weight=_looked_up(table.weight, terms),
        allocated=rows.allocated,
        wants=_wants(rows, pending, unknown, room, unit),
        limit=_limits(table, terms, batch, most, unit),
        floor=rows.floor,
        unit=unit,
        next_up=rows.allocated * unknown + pending,
        spare=room * unknown + largest * (1 - unknown),
    )


def _looked_up(column: Floats, terms: AnyArray) -> Floats:
    """A column of the account table by slot, resource and node."""
    count = column.shape[1]
    return column.reshape(-1).take(terms[:, None] + np.arange(0, 2 * count, count)[:, None])


def _wants(rows: RowColumns, pending: Floats, unknown: Floats, room: Floats, unit: Floats) -> Floats:
    """`sharing.demand`: what is pending on top, or all where it is not known and the account is full."""
    roomy = percent_of(rows.allocated, 100 * 100 // FULL_PERCENT)
    roomy += 1
    np.maximum(roomy, rows.allocated + room, out=roomy)
    roomy = up_to_units(roomy, unit)
    np.maximum(roomy, NONE * (rows.in_force < roomy), out=roomy)
    roomy += 2 * NONE * (1 - unknown)
    known: Floats = rows.allocated + (pending + 2 * NONE * unknown)
    np.minimum(known, roomy, out=known)
    return known


def _limits(table: AccountTable, terms: AnyArray, batch: Floats, most: Floats, unit: Floats) -> Floats:
    """The least of the operator's limit, of what rows may be sized to, and of tasks' memory, in whole units."""
    limits = np.minimum(most, _looked_up(table.limit_amount, terms))
    if (table.limit_percent < NONE).any():
        percent = _looked_up(table.limit_percent, terms)
        np.minimum(limits, percent_of(batch, percent) + NONE * (percent == NONE), out=limits)
    if (table.mib_per_core < NONE).any():
        mib = table.mib_per_core.take(terms)
        of_tasks = np.floor(batch[0] * mib / 1000) * MIB
        of_tasks += NONE * (mib == NONE)
        np.minimum(limits[:, 1], of_tasks, out=limits[:, 1])
    return in_units(limits, unit)


def _of_rows(of_accounts: Floats, claims: Claims, most: Floats) -> Floats:
    """`sharing.divided` for accounts of one row. A target is in whole units already, unless it is what is allocated."""
    bounded = np.maximum(most, claims.allocated)
    np.minimum(bounded, of_accounts, out=bounded)
    np.maximum(bounded, claims.floor * (of_accounts < claims.allocated), out=bounded)
    found = in_units(bounded, claims.unit)
    bounded -= found
    more = claims.unit * (bounded > 0)
    more *= found + more <= of_accounts
    found += more
    return found


def _grown(
    nodes: NodeColumns, rows: RowColumns, claims: Claims, wanted: Floats, guess: AnyArray, *, shared: bool
) -> Floats:
    """`sharing.grown`; nothing to grow out of where a row of before is awaited, or a size in force is not known."""
    unknown = nodes.awaited | (rows.running & ~rows.known).any(0)
    kept = up_to_units(np.maximum(rows.belief, rows.floor), claims.unit)
    free = claims.batch * ~unknown - kept.sum(0)
    if shared:
        free += NONE * ~unknown
    fits = free >= 0
    grown: Floats = rows.newest + NONE * fits
    np.minimum(grown, wanted, out=grown)
    growth = wanted - kept
    np.maximum(growth, 0, out=growth)
    growth *= fits
    equal = np.ones((len(growth), 1, 1))
    whole = whole_units(free, levels(free, equal, 0 * equal, growth, guess), claims.unit)
    growth -= np.minimum(whole, growth)
    grown -= growth
    return grown
