"""Which sizes are due now.

A size falls when somebody needs what it leaves, and grows when that has held for a while:

- growth goes to the smallest target of the last `growth_delay_seconds`, and not sooner after the last growth; growth
  that is not much (twice the dead band, a unit, or a drain step; above the fair share less than to double it) has to
  hold `SLOW` times as long, unless its account is far below its fair share: it is what noise brings back, or nobody
  needs;
- an account waits while what held for so long would be due, and what others, or other rows of its own, believe is in
  its way, or while accounts drain for it;
- a row is due when it differs from the newest size sent (or, with nothing in flight, from the one in force) by more
  than the dead band; by half a drain step when an account waits; by anything below its floor; in any case when the
  newest size did not arrive, or when an offer is about to run out;
- while schedulers may promise more than there is, and what was sent does not put that right when it arrives, rows are
  due that shrink by anything: those that leave the most, and no more of them than suffice. That is urgent; they fall
  further than they must, as far as that is not allocated, or the next fluctuation of the load would be due again;
- a shrink that nobody needs is not due: it frees what is not allocated, and what nobody would get. Where capacity is
  shared it is, as others have promised that since.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from fallow_core.ledger.node_ledger import AccountEntry, NodeLedger, ResourceLedger, RowEntry
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.ledger.sharing import beyond_dead_band
from fallow_core.model.policy import PublishingPolicy
from fallow_hookspecs import RESOURCE_NAMES, NodeState, ResourceName, Resources

SLOW = 6
"""Growth that is not much has to hold so many times as long."""
DEPTH = 8
"""How many targets are remembered of a row and resource. Of noise as many count as a sequence has records: about 5."""
IDLE_PERCENT = 99
"""Above the fair share growth by this share of the size is not much, either: less than to double it."""
BEHIND_PERCENT = 60
"""An account with less of its fair share is too far behind to wait that long."""
FURTHER_PERCENT = 60
"""By this share of a drain step sizes fall at least while schedulers may promise more than there is."""
STEP_PERCENT = 50
"""What an account waits for falls by at least this share of a drain step."""
RENEW_SHARE = 0.8
"""An offer that runs out is renewed when this share of its time has passed."""


@dataclass(slots=True)
class GrowthDelay:
    """The targets of the last while, for one row and one resource.

    Kept as (time, target) with growing targets: the first one of a time is the smallest since then. Before there are
    more than `DEPTH` the two that differ least become one: the smaller target, at the time of the larger one. So one
    that has risen for long may count for a little less than it was. `since`: when the size last grew, or watching
    began; `newest` is the size.
    """

    since: float
    newest: int
    targets: list[tuple[float, int]] = field(default_factory=list)

    def push(
        self, now: float, newest: int, target: int, delay_seconds: float, unchanged_until: float = -math.inf
    ) -> None:
        """Add a target; those older than `SLOW` times `delay_seconds` are forgotten.

        :param unchanged_until: until then the last target is known to have been the same, although nobody pushed it.
        """
        if newest > self.newest:
            self.since = now
        self.newest = newest
        if self.targets and unchanged_until > self.targets[-1][0]:
            self.targets[-1] = (unchanged_until, self.targets[-1][1])
        oldest = now - SLOW * delay_seconds
        kept = [(at, smaller) for at, smaller in self.targets if smaller < target and at >= oldest]
        if len(kept) == DEPTH:
            _, i = min((kept[i + 1][1] - kept[i][1], i) for i in range(DEPTH - 1))
            kept[i : i + 2] = [(kept[i + 1][0], kept[i][1])]
        self.targets = [*kept, (now, target)]

    def least(self, now: float, seconds: float) -> int:
        """The smallest target of the last seconds; the newest size if that stood for less long."""
        if now - self.since < seconds:
            return self.newest
        return next(target for at, target in self.targets if at >= now - seconds)


GrowthDelays = dict[tuple[RowKey, ResourceName], GrowthDelay]


@dataclass(frozen=True, slots=True, kw_only=True)
class DueResource:
    """One resource of a row: the size to be sent, and why it is due; an empty `why` means that it is not."""

    wanted: int
    why: str = ""
    urgent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DueOffer:
    """A row that is due: the size to send, and why, in words. `take_back`: the notice of each resource taken back."""

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
    held = [_held(delays, entry, ledger, now, policy, unchanged_until) for entry in ledger.rows]
    waiting = {
        entry.key.cluster
        for entry, much in zip(ledger.rows, held, strict=True)
        if entry.size < much and beyond_dead_band(entry.newest, much, policy.dead_band_percent)
    }
    if any(account.drains_for_others for account in ledger.accounts):
        waiting |= {account.cluster for account in ledger.accounts if not account.drains_for_others}
    too_large = _too_large(ledger)
    return [
        _decide(entry, ledger, much, waiting, too_large, policy) for entry, much in zip(ledger.rows, held, strict=True)
    ]


def _too_large(ledger: ResourceLedger) -> Collection[RowKey]:
    """The rows that have to fall at once, so that schedulers may promise no more than there is when all that was sent
    has arrived: those that leave the most first, and no more of them than suffice.
    """
    falling = [row for row in ledger.rows if row.size < row.newest] if ledger.overcommitted else []
    if ledger.shared:
        return {row.key for row in falling}
    over = ledger.exposure - sum(max(row.belief - max(row.newest, row.allocated), 0) for row in ledger.rows)
    leaves = {
        row.key: max(row.newest, row.allocated) - max(_further(row, ledger, row.size), row.allocated) for row in falling
    }
    chosen = []
    for key in sorted(leaves, key=lambda key: (-leaves[key], key)):
        if over > 0:
            chosen.append(key)
        over -= leaves[key]
    return chosen


def _held(
    delays: GrowthDelays,
    entry: RowEntry,
    ledger: ResourceLedger,
    now: float,
    policy: PublishingPolicy,
    unchanged_until: float,
) -> int:
    """The size that a row may grow to, as far as time is concerned; its newest one if that is larger."""
    delay = delays.setdefault((entry.key, ledger.resource), GrowthDelay(since=now, newest=entry.newest))
    delay.push(now, entry.newest, entry.wanted, policy.growth_delay_seconds, unchanged_until)
    least = delay.least(now, policy.growth_delay_seconds)
    account, own = _account(entry, ledger)
    above_fair = entry.newest * IDLE_PERCENT // 100 if own >= account.fair else 0
    little = least - entry.newest <= max(entry.unit, ledger.drain_step, above_fair)
    little = little or not beyond_dead_band(entry.newest, least, 2 * policy.dead_band_percent)
    if little and own * 100 >= account.fair * BEHIND_PERCENT:
        least = delay.least(now, SLOW * policy.growth_delay_seconds)
    return max(entry.newest, least)


def _account(entry: RowEntry, ledger: ResourceLedger) -> tuple[AccountEntry, int]:
    """The account of a row, and the sum of its newest sizes."""
    account = next(a for a in ledger.accounts if a.cluster == entry.key.cluster)
    return account, sum(row.newest for row in ledger.rows if row.key.cluster == account.cluster)


def _decide(
    entry: RowEntry,
    ledger: ResourceLedger,
    held: int,
    waiting: Collection[str],
    too_large: Collection[RowKey],
    policy: PublishingPolicy,
) -> DueResource:
    wanted = entry.size if entry.size < entry.newest else max(min(entry.size, held), entry.floor)
    shrinks = wanted < entry.newest
    if wanted == entry.newest:
        return DueResource(wanted=entry.newest)
    if shrinks and entry.key in too_large:
        further = _further(entry, ledger, wanted)
        return DueResource(wanted=further, why="schedulers may promise more than there is", urgent=True)
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


def _further(entry: RowEntry, ledger: ResourceLedger, wanted: int) -> int:
    """A size a little smaller than it must be, in whole units, as far as that is neither allocated nor floor."""
    further = (entry.newest - ledger.drain_step * FURTHER_PERCENT // 100) // entry.unit * entry.unit
    kept = max(entry.floor, -(-entry.allocated // entry.unit) * entry.unit)
    return min(wanted, max(further, kept))


def _capped(entry: RowEntry, ledger: ResourceLedger) -> bool:
    """Whether the newest sizes are above what the row may be sized to, or its account's limit."""
    account, own = _account(entry, ledger)
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
    if not reasons and _runs_out(row, now, lasts_seconds):
        taken.add(size)
        reasons = ["the offer is about to run out"]
    if not reasons:
        return None
    size = moved(size, row, taken)
    return DueOffer(key=row.key, size=size, urgent=any(d.urgent for d in decisions), why="; ".join(reasons))


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
