"""Which sizes are due now.

A size falls when somebody needs what it leaves, and grows when that has held for a while:

- `growth_delay` says how far it may grow by now, `falls` how far it falls ahead of the load, and when below what is
  allocated;
- an account waits while what held for so long would be due, and what others, or other rows of its own, believe is in
  its way, or while accounts drain for it;
- a row is due when it differs from the newest size sent (or, with nothing in flight, from the one in force) by more
  than the dead band; by half a drain step when an account waits; by anything below its floor; in any case when the
  newest size did not arrive, or when an offer is about to run out;
- while schedulers may promise more than there is, and what was sent does not put that right when it arrives, rows are
  due that shrink by anything: those that leave the most, and no more of them than suffice. That is urgent; they fall
  further than they must, as far as that is not allocated, or the next fluctuation of the load would be due again. One
  that leaves next to nothing, as almost all of it is allocated, is not due for that;
- below what is allocated a row falls by whole drain steps: each such size warns applications. The first fall below it
  is for any overdraft that has lasted, and also goes further than it must. While more is allocated than there is, by
  more than `DRAIN_PERCENT` of a drain step, it falls there at once and further than it must, so that
  nothing starts;
- a row with more allocated than its size when it is first seen is due at once: somebody else's deadline may be running,
  and any size of ours moves it away;
- a shrink that nobody needs is not due: it frees what is not allocated, and what nobody would get. Where capacity is
  shared it is, as others have promised that since.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from fallow_core.ledger.growth_delay import GrowthDelays, account_of, delay_of, may_grow_to
from fallow_core.ledger.node_ledger import NodeLedger, ResourceLedger, RowEntry
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.ledger.sharing import beyond_dead_band
from fallow_core.model.policy import PublishingPolicy
from fallow_hookspecs import RESOURCE_NAMES, NodeState, ResourceName, Resources

FURTHER_PERCENT = 60
"""By this share of a drain step sizes fall at least while schedulers may promise more than there is."""
AHEAD_STEPS = 4
"""By so many drain steps a size falls at most ahead of a load that rises steadily."""
STEP_PERCENT = 50
"""What an account waits for falls by at least this share of a drain step."""
DRAIN_PERCENT = 50
"""An overdraft of this share of a drain step drains at once; a smaller one may be noise."""
RENEW_SHARE = 0.8
"""An offer that runs out is renewed when this share of its time has passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueResource:
    """One resource of a row: the size to be sent, and why it is due; an empty `why` means that it is not."""

    wanted: int
    why: str = ""
    urgent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DueOffer:
    """A row that is due: the size to send, and why, in words. `take_back`: down to what the framework is to terminate
    tasks now, for each resource that is taken back.
    """

    key: RowKey
    size: Resources
    urgent: bool
    why: str
    take_back: Mapping[ResourceName, int] = field(default_factory=dict)


def due_rows(
    ledger: NodeLedger,
    rows: tuple[Row, ...],
    delays: GrowthDelays,
    policy: PublishingPolicy,
    now: float,
    offer_lasts_seconds: Mapping[str, int | None],
    unchanged_until: float = -math.inf,
) -> list[DueOffer]:
    """The rows that are due, the largest size first. `delays` remembers growth and is brought up to date.

    :param unchanged_until: until then the node is known to have been as it was when this was last called.
    """
    by_key = {row.key: row for row in rows}
    decisions = [_decided(ledger.of(name), delays, policy, now, unchanged_until) for name in RESOURCE_NAMES]
    due = []
    for entry, *decided in zip(ledger.cpu.rows, *decisions, strict=True):
        row = by_key[entry.key]
        if row.state is NodeState.RUNNING and row.in_force is not None:
            found = row_due(row, decided, policy, now, offer_lasts_seconds.get(row.key.cluster))
            due += [] if found is None else [found]
    return sorted(due, key=lambda d: (-d.size.memory_bytes, -d.size.cpu_milli, d.key))


def _decided(
    ledger: ResourceLedger, delays: GrowthDelays, policy: PublishingPolicy, now: float, unchanged_until: float
) -> list[DueResource]:
    """What to do about one resource of each row."""
    rows = [_in_time(delays, entry, ledger, now, policy, unchanged_until) for entry in ledger.rows]
    waiting = {
        row.entry.key.cluster
        for row in rows
        if row.entry.size < row.held and beyond_dead_band(row.entry.newest, row.held, policy.dead_band_percent)
    }
    if any(account.drains_for_others for account in ledger.accounts):
        waiting |= {account.cluster for account in ledger.accounts if not account.drains_for_others}
    too_large = _too_large(ledger, rows)
    return [_decide(row, ledger, waiting, too_large, policy) for row in rows]


class _InTime(NamedTuple):
    """A row and what time allows it now: `held`, the size that it may grow to, `lowest`, the one that it may fall to,
    and `further`, a size a little smaller than that, as far as nobody has it. `overdrawn`: it has so much of what there
    is not that nothing may start; then `further` may be smaller than what it has.
    """

    entry: RowEntry
    held: int
    lowest: int
    further: int
    overdrawn: bool


def _in_time(
    delays: GrowthDelays,
    entry: RowEntry,
    ledger: ResourceLedger,
    now: float,
    policy: PublishingPolicy,
    unchanged_until: float,
) -> _InTime:
    delay = delay_of(delays, entry, ledger.resource, now, policy.growth_delay_seconds, unchanged_until)
    over = min(entry.allocated - max(entry.target, entry.floor), ledger.to_take_back)
    overdrawn = over * 100 > ledger.drain_step * DRAIN_PERCENT
    drains = overdrawn or delay.falls.drains(now) or (entry.most is not None and entry.most < entry.allocated)
    lowest = entry.size if drains else max(entry.size, min(entry.newest, _in_units(entry.allocated, entry)))
    return _InTime(
        entry=entry,
        held=may_grow_to(delay, entry, ledger, now, policy),
        lowest=lowest,
        further=_further(entry, ledger, lowest, delay.falls.ahead(now, entry.wanted), overdrawn=overdrawn),
        overdrawn=overdrawn,
    )


def _in_units(amount: int, entry: RowEntry) -> int:
    return -(-amount // entry.unit) * entry.unit


def _too_large(ledger: ResourceLedger, rows: Sequence[_InTime]) -> Collection[RowKey]:
    """The rows that have to fall at once, so that schedulers may promise no more than there is when all that was sent
    has arrived: those that leave the most first, and no more of them than suffice. Where everything is allocated a fall
    leaves nothing.
    """
    leaves = {
        entry.key: entry.newest - max(further, entry.allocated)
        for entry, _, lowest, further, _ in rows
        if ledger.overcommitted and entry.newest > max(lowest, entry.allocated)
    }
    leaves = {key: amount for key, amount in leaves.items() if amount * 100 >= ledger.drain_step * STEP_PERCENT}
    if ledger.shared:
        return leaves.keys()
    over = ledger.exposure - sum(max(row.belief - max(row.newest, row.allocated), 0) for row in ledger.rows)
    chosen = []
    for key in sorted(leaves, key=lambda key: (-leaves[key], key)):
        if over > 0:
            chosen.append(key)
        over -= leaves[key]
    return chosen


def _decide(
    row: _InTime,
    ledger: ResourceLedger,
    waiting: Collection[str],
    too_large: Collection[RowKey],
    policy: PublishingPolicy,
) -> DueResource:
    entry = row.entry
    wanted = row.lowest if entry.size < entry.newest else max(min(entry.size, row.held), entry.floor)
    shrinks = wanted < entry.newest
    if wanted == entry.newest:
        return DueResource(wanted=entry.newest)
    if entry.key in too_large:
        return DueResource(wanted=row.further, why="schedulers may promise more than there is", urgent=True)
    if row.overdrawn and shrinks:
        return DueResource(wanted=row.further, why="more is allocated than there is", urgent=True)
    if wanted < min(entry.newest, entry.allocated):
        step = entry.newest - max(entry.unit, ledger.drain_step)
        if entry.newest < entry.allocated and wanted > step:
            return DueResource(wanted=entry.newest)
        return DueResource(wanted=min(wanted, max(_ahead_of(entry, ledger), entry.floor)), why="it drains")
    least = max(entry.unit, ledger.drain_step * STEP_PERCENT // 100)
    if shrinks and waiting and entry.newest - wanted >= least:
        others = any(cluster != entry.key.cluster for cluster in waiting)
        why = "another account waits for it" if others else "another node of the same account waits for it"
        return DueResource(wanted=wanted, why=why)
    if entry.newest < entry.floor:
        return DueResource(wanted=wanted, why="it is below the floor")
    if shrinks and entry.allocated <= wanted and not ledger.shared and not _capped(entry, ledger):
        return DueResource(wanted=entry.newest)
    if beyond_dead_band(entry.newest, wanted, policy.dead_band_percent):
        return DueResource(wanted=wanted, why="it differs by more than the dead band")
    return DueResource(wanted=entry.newest)


def _further(entry: RowEntry, ledger: ResourceLedger, lowest: int, ahead: int, *, overdrawn: bool) -> int:
    """A size a little smaller than it must be, in whole units, as far as that is neither allocated nor floor."""
    ahead = min(ahead, AHEAD_STEPS * ledger.drain_step)
    further = min(_ahead_of(entry, ledger), (lowest - ahead) // entry.unit * entry.unit)
    kept = entry.floor if overdrawn else max(entry.floor, _in_units(entry.allocated, entry))
    return min(lowest, max(further, kept))


def _ahead_of(entry: RowEntry, ledger: ResourceLedger) -> int:
    """The size from which the next fluctuation of the load will not be due again."""
    return max(entry.newest - ledger.drain_step * FURTHER_PERCENT // 100, 0) // entry.unit * entry.unit


def _capped(entry: RowEntry, ledger: ResourceLedger) -> bool:
    """Whether the newest sizes are above what the row may be sized to, or its account's limit."""
    account, own = account_of(entry, ledger)
    above_most = entry.most is not None and entry.most < entry.newest
    return above_most or (account.limit is not None and account.limit < own)


def row_due(
    row: Row, decisions: list[DueResource], policy: PublishingPolicy, now: float, lasts_seconds: int | None
) -> DueOffer | None:
    """A row that is due, from what was decided about its resources; `None` if it is not."""
    if row.refused_at is not None and now - row.refused_at < policy.in_flight_seconds:
        return None
    reasons = [f"{name}: {d.why}" for name, d in zip(RESOURCE_NAMES, decisions, strict=True) if d.why]
    size = Resources(*(d.wanted for d in decisions))
    if not reasons and row.resend and size != row.in_force:
        reasons = ["the newest size did not arrive, or somebody else changed it"]
    taken: set[Resources | None] = set()
    if row.in_flight:
        # A report of an older size, or of the one in force before, must not be taken for a confirmation of this one.
        taken = {row.in_force, *(sent.size for sent in row.in_flight[:-1])}
    if row.may_be_armed:
        taken.add(row.in_force)
        reasons = reasons or ["more is allocated than its size: a deadline of somebody else may be running"]
    if not reasons and _runs_out(row, now, lasts_seconds):
        taken.add(size)
        reasons = ["the offer is about to run out"]
    if not reasons:
        return None
    size = moved(size, row, taken)
    urgent = row.may_be_armed or any(d.urgent for d in decisions)
    return DueOffer(key=row.key, size=size, urgent=urgent, why="; ".join(reasons))


def _runs_out(row: Row, now: float, lasts_seconds: int | None) -> bool:
    if lasts_seconds is None or row.refreshed_at is None:
        return False
    return now - row.refreshed_at >= lasts_seconds * RENEW_SHARE


def moved(size: Resources, row: Row, taken: Collection[Resources | None]) -> Resources:
    """The next smaller size in units of memory that is not taken; the next larger one where that is below the floor."""
    step = -row.unit.memory_bytes
    while size in taken:
        if size.memory_bytes + step < row.floor.memory_bytes:
            step = row.unit.memory_bytes
        size = replace(size, memory_bytes=size.memory_bytes + step)
    return size
