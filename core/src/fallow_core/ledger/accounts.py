"""The accounts of a node: what each one's rows have together, what it wants and can use, and its share."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from fallow_core.ledger.cross_resource import Need, cut
from fallow_core.ledger.entries import AccountEntry, NodeInputs, RowEntry
from fallow_core.ledger.rows import ZERO
from fallow_core.ledger.sharing import Claim, demand, promised_to_all, shares
from fallow_core.ledger.task_shapes import TaskShape
from fallow_core.model.policy import AccountPolicy, Sharing
from fallow_hookspecs import RESOURCE_NAMES, ResourceName


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One resource of a node before it is shared. `rows` are sorted by their keys."""

    resource: ResourceName
    batch: int
    drain_step: int
    rows: tuple[RowEntry, ...]


def accounts_of(inputs: NodeInputs, sides: Sequence[Side]) -> list[tuple[AccountEntry, ...]]:
    """The accounts with their shares of each resource, in the order of `RESOURCE_NAMES`."""
    cpu_batch = sides[0].batch
    found = [_accounts(inputs, side, cpu_batch) for side in sides]
    needs = [[need_of(account) for account in of] for of in found]
    share = promised_to_all if inputs.publishing.sharing is Sharing.SHARED else shares
    claims, first = cut([side.batch for side in sides], needs)
    for of, claimed, side in zip(found, claims, sides, strict=True):
        got_by_account = share(side.batch, claimed, side.drain_step)
        for account, claim, got, r in zip(of, claimed, got_by_account, first, strict=True):
            account.demand, account.fair, account.target = claim.demand, got.fair, got.target
            account.drains_for_others = got.drains_for_others
            account.cut_by = RESOURCE_NAMES[r] if r is not None and claim.demand != account.wants else None
    return [tuple(of) for of in found]


def need_of(account: AccountEntry) -> Need:
    """What an account wants of one resource, and what it would start next."""
    claim = Claim(
        weight=account.weight,
        allocated=account.allocated,
        demand=account.wants,
        limit=account.limit,
        floor=account.floor,
        unit=account.unit,
    )
    next_up = account.allocated if account.pending is None else account.pending
    return Need(claim=claim, next_up=next_up, spare=account.spare)


def _accounts(inputs: NodeInputs, side: Side, cpu_batch: int) -> list[AccountEntry]:
    usage = inputs.sample.of(side.resource)
    room = usage.capacity * inputs.publishing.drain_step_percent // 100 if usage is not None else 0
    by_cluster = groupby(side.rows, key=lambda row: row.key.cluster)
    return [_account(inputs, name, tuple(own), side, room, cpu_batch) for name, own in by_cluster]


def _account(
    inputs: NodeInputs, cluster: str, rows: Sequence[RowEntry], side: Side, room: int, cpu_batch: int
) -> AccountEntry:
    """What an account brings to the sharing; what it can use, its fair share and its target are not known yet."""
    policy = inputs.accounts.get(cluster, AccountPolicy())
    pending, shape = inputs.pending.get(cluster), inputs.shapes.get(cluster, TaskShape())
    waiting = pending.total.amount(side.resource) if pending is not None else None
    largest = (pending.largest or ZERO) if pending is not None else shape.largest
    of_tasks = shape.memory_bytes_for(cpu_batch) if side.resource == "memory" else None
    unit = max(row.unit for row in rows)
    allocated = sum(row.allocated for row in rows)
    in_force = sum(row.in_force or 0 for row in rows)
    floor = sum(row.floor for row in rows)
    room = max(room, floor, largest.amount(side.resource))
    most = [row.most for row in rows if row.most is not None]
    limits = [policy.limit(side.resource).of(side.batch), sum(most) if len(most) == len(rows) else None, of_tasks]
    wants = demand(allocated, in_force, waiting, room, unit)
    return AccountEntry(
        cluster=cluster,
        weight=policy.weight,
        unit=unit,
        allocated=allocated,
        in_force=in_force,
        pending=waiting,
        room=room,
        spare=room if waiting is None else largest.amount(side.resource),
        wants=wants,
        demand=wants,
        limit=min((limit // unit * unit for limit in limits if limit is not None), default=None),
        floor=floor,
        honoured=shape.honours_cpu or side.resource != "cpu",
        of_tasks=of_tasks,
    )
