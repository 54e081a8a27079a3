"""Brings what is known of nodes, and what is computed for each by itself, from columns to lanes."""

import numpy as np

from fallow_core.ledger.fleet.amounts import in_units, up_to_units
from fallow_core.ledger.fleet.arrays import NONE, Record, Records, compiled
from fallow_core.ledger.fleet.capacity import batch_real, of_zones, reserved
from fallow_core.ledger.fleet.lanes import Rules
from fallow_core.ledger.fleet.terms import ALL, NOTHING
from fallow_core.ledger.sharing import FULL_PERCENT
from fallow_core.ledger.task_shapes import MIB


@compiled
def bring(
    nodes: Records,
    zones: Records,
    rows: Records,
    policies: Records,
    accounts: Records,
    rules: Rules,
    first: int,
    lanes: int,
    sides: Records,
) -> None:
    """Bring so many nodes from number `first` on to their lanes."""
    for i in range(lanes):
        n = first + i
        node = nodes[n]
        for r in range(len(sides)):
            side, policy = sides[r], policies[node.policy]
            kept = reserved(node, policy, r)
            lends = batch_real(node, kept, policy, r)
            if node.zones[r] > 0:
                lends = min(lends, of_zones(node, zones, n, kept, policy, r))
            believed = allocated = 0
            for s in range(len(side.share)):
                believed += rows[n, s].belief[r]
                allocated += rows[n, s].allocated[r]
            unmeasured = np.isnan(node.measured_at[r])
            batch = believed if unmeasured else lends * policy.overcommit_percent[r] // 100
            side.batch[i], side.unallocated[i] = batch, batch - allocated
            side.drain_step[i] = batch * rules.drain_step_percent // 100
            side.overcommitted[i] = (allocated if rules.shared else believed) > batch
            side.unmeasured[i], side.unknown[i] = unmeasured, node.awaited
            for s in range(len(side.share)):
                row = rows[n, s]
                side.is_row[s, i] = s < node.rows
                _bring_row(node, row, accounts[row.account], rules, r, s, i, side, sides[0].batch[i])


@compiled
def _bring_row(
    node: Record, row: Record, account: Record, rules: Rules, r: int, s: int, i: int, side: Record, cpu_batch: int
) -> None:
    """What a row and its account bring to the sharing of one resource."""
    side.allocated[s, i], side.newest[s, i] = row.allocated[r], row.newest[r]
    side.belief[s, i], side.floor[s, i] = row.belief[r], row.floor[r]
    side.unit[s, i], side.weight[s, i] = account.unit[r], account.weight * side.is_row[s, i]
    side.unknown[i] |= row.running and not row.known
    most = side.most[s, i] = _most(node, row, account, rules, r)
    side.limit[s, i] = _limit(account, most, side.batch[i], cpu_batch, r)
    room = node.capacity[r] * rules.drain_step_percent // 100
    side.wants[s, i], side.next_up[s, i], side.spare[s, i] = _demand(row, account, room, r)


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
def _limit(account: Record, most: int, batch: int, cpu_batch: int, r: int) -> int:
    """The least of the operator's limit, of what the row may be sized to, and of tasks' memory, in whole units."""
    limit = min(most, account.limit_amount[r])
    if account.limit_percent[r] < NONE:
        limit = min(most, batch * account.limit_percent[r] // 100)
    if r == 1 and account.mib_per_core < NONE:
        of_tasks = cpu_batch * account.mib_per_core // 1000
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
