"""`ledger.node_ledger` for a node in columns: from what is known of it to the size that each row should have."""

import numpy as np

from fallow_core.ledger.fleet.amounts import in_units, up_to_units
from fallow_core.ledger.fleet.arrays import NONE, Record, Records, compiled
from fallow_core.ledger.fleet.capacity import batch_capacity
from fallow_core.ledger.fleet.columns import RESOURCES
from fallow_core.ledger.fleet.computed import Rules
from fallow_core.ledger.fleet.sharing import grown, of_row, promised_to_all, shares
from fallow_core.ledger.fleet.terms import ALL, NOTHING
from fallow_core.ledger.fleet.together import cut
from fallow_core.ledger.shapes import MIB
from fallow_core.ledger.sharing import FULL_PERCENT


@compiled
def compute(
    node: Record, zones: Records, rows: Records, policy: Record, accounts: Records, rules: Rules, found: Record
) -> None:
    """Compute the ledger of a node; `rows` are those that it has."""
    for r in range(RESOURCES):
        _bring(node, zones, rows, policy, accounts, rules, r, found)
    cut(rows, found)
    for r in range(RESOURCES):
        if rules.shared:
            promised_to_all(rows, r, found)
        else:
            shares(rows, r, found)
        _size(node, rows, rules, r, found)


@compiled
def _bring(
    node: Record,
    zones: Records,
    rows: Records,
    policy: Record,
    accounts: Records,
    rules: Rules,
    r: int,
    found: Record,
) -> None:
    """What comes into the sharing of one resource."""
    believed = allocated = 0
    for s in range(len(rows)):
        believed += rows[s].belief[r]
        allocated += rows[s].allocated[r]
    batch = believed if np.isnan(node.measured_at[r]) else batch_capacity(node, zones, policy, r)
    found.batch[r] = batch
    found.drain_step[r] = batch * rules.drain_step_percent // 100
    found.overcommitted[r] = (allocated if rules.shared else believed) > batch
    room = node.capacity[r] * rules.drain_step_percent // 100
    for s in range(len(rows)):
        row = rows[s]
        account = accounts[row.account]
        found.most[r, s] = _most(node, row, account, rules, r)
        found.unit[r, s] = account.unit[r]
        found.weight[r, s] = account.weight
        found.limit[r, s] = _limit(account, found.most[r, s], r, found)
        found.wants[r, s], found.next_up[r, s], found.spare[r, s] = _demand(row, account, room, r)


@compiled
def _most(node: Record, row: Record, account: Record, rules: Rules, r: int) -> int:
    """What a row may be sized to: nothing, what it has, or what the framework can use."""
    age = rules.now - node.measured_at[r]
    late = rules.withdraw_after_seconds
    withdrawn = rules.now - node.watched_since >= late if np.isnan(age) else abs(age) >= late
    if account.switch == NOTHING or withdrawn:
        return 0
    limit = rules.degrade_after_seconds
    fresh = 0 <= age < limit and 0 <= rules.now - row.measured_at < limit and not node.unsure
    if not np.isnan(node.workloads_at):
        fresh &= 0 <= rules.now - node.workloads_at < limit
    return int(row.maximum[r] if fresh and account.switch == ALL else row.newest[r])


@compiled
def _limit(account: Record, most: int, r: int, found: Record) -> int:
    """The least of the operator's limit, of what the row may be sized to, and of tasks' memory, in whole units."""
    limit = min(most, account.limit_amount[r])
    if account.limit_percent[r] < NONE:
        limit = min(most, found.batch[r] * account.limit_percent[r] // 100)
    if r == 1 and account.mib_per_core < NONE:
        of_tasks = found.batch[0] * account.mib_per_core // 1000
        limit = min(limit, min(of_tasks, NONE // MIB) * MIB)
    return NONE if limit >= NONE else in_units(limit, account.unit[r])


@compiled
def _demand(row: Record, account: Record, room: int, r: int) -> tuple[int, int, int]:
    """What an account wants of one resource, what it would start next, and what it gets on top of that."""
    allocated, unit = row.allocated[r], account.unit[r]
    if not account.unknown:
        return allocated + account.pending[r], account.pending[r], account.largest[r]
    room = max(room, row.floor[r], account.largest[r])
    roomy = max(allocated + room, allocated * 100 // FULL_PERCENT + 1)
    roomy = up_to_units(roomy, unit)
    return NONE if row.in_force[r] < roomy else roomy, allocated, room


@compiled
def _size(node: Record, rows: Records, rules: Rules, r: int, found: Record) -> None:
    """From targets to sizes."""
    unmeasured, unknown = np.isnan(node.measured_at[r]), node.awaited
    for s in range(len(rows)):
        unknown |= rows[s].running and not rows[s].known
        found.target[r, s] = rows[s].newest[r] if unmeasured else of_row(rows[s], r, s, found)
        found.wanted[r, s] = min(found.target[r, s], found.most[r, s])
        found.size[r, s] = found.wanted[r, s]
    if unknown or not rules.shared:
        grown(0 if unknown else found.batch[r], rows, r, found)
    for s in range(len(rows)):
        found.size[r, s] = max(found.size[r, s], rows[s].floor[r])
