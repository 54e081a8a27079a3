"""Which sizes are due now.

A shrink beyond the band is due at once, a growth after it has held for a while:

- growth goes to the smallest size wanted during the last `growth_hold_seconds`;
- a row is due when that differs from the newest size sent (or, with nothing in flight, from the one in force) by more
  than the band; by any unit while schedulers may promise more than there is, while another account waits, or below its
  floor; in any case when the newest size did not arrive, or when an offer is about to run out;
- what is due while schedulers may promise more than there is, is urgent.
"""

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from fallow_core.ledger.node_ledger import NodeLedger, ResourceLedger, RowEntry
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.policy import PublishingPolicy
from fallow_hookspecs import RESOURCE_NAMES, NodeState, ResourceName, Resources

RENEW_SHARE = 0.8
"""An offer that runs out is renewed when this share of its time has passed."""


@dataclass(slots=True)
class GrowthHold:
    """The smallest size wanted during the last while, for one row and one resource.

    Kept as a deque of (time, size) with growing sizes, so that its head is the smallest; `since` is when it began.
    """

    since: float
    _sizes: deque[tuple[float, int]] = field(default_factory=deque)

    def push(self, now: float, size: int, hold_seconds: float) -> int | None:
        """Add a size; return the smallest of the last `hold_seconds`, or `None` if it was not watched for so long."""
        while self._sizes and self._sizes[-1][1] >= size:
            self._sizes.pop()
        self._sizes.append((now, size))
        while self._sizes[0][0] < now - hold_seconds:
            self._sizes.popleft()
        return self._sizes[0][1] if now - self.since >= hold_seconds else None


Holds = dict[tuple[RowKey, ResourceName], GrowthHold]


@dataclass(frozen=True, slots=True, kw_only=True)
class DueResource:
    """One resource of a row: the size to be sent, and why it is due; an empty `why` means that it is not."""

    wanted: int
    why: str = ""
    urgent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A row that is due: the size to send, and why, in words. `take_back`: the notice of each resource taken back."""

    key: RowKey
    size: Resources
    urgent: bool
    why: str
    take_back: Mapping[ResourceName, int] = field(default_factory=dict)


def due_rows(
    ledger: NodeLedger,
    rows: tuple[Row, ...],
    holds: Holds,
    policy: PublishingPolicy,
    now: float,
    offer_lasts_seconds: Mapping[str, int | None],
) -> list[Due]:
    """The rows that are due, the largest size first. `holds` remembers growth and is brought up to date."""
    by_key = {row.key: row for row in rows}
    due = []
    for entries in zip(ledger.cpu.rows, ledger.memory.rows, strict=True):
        row = by_key[entries[0].key]
        decisions = [
            _decide(entry, ledger.of(name), _held(holds, entry, name, now, policy), policy)
            for entry, name in zip(entries, RESOURCE_NAMES, strict=True)
        ]
        if row.state is NodeState.RUNNING and row.in_force is not None:
            found = _row_due(row, decisions, policy, now, offer_lasts_seconds.get(row.key.cluster))
            due += [] if found is None else [found]
    return sorted(due, key=lambda d: (-d.size.memory_bytes, -d.size.cpu_milli, d.key))


def _held(holds: Holds, entry: RowEntry, resource: ResourceName, now: float, policy: PublishingPolicy) -> int:
    hold = holds.setdefault((entry.key, resource), GrowthHold(since=now))
    return hold.push(now, entry.size, policy.growth_hold_seconds) or 0


def _decide(entry: RowEntry, ledger: ResourceLedger, held: int, policy: PublishingPolicy) -> DueResource:
    wanted = entry.size if entry.size < entry.newest else max(entry.newest, entry.floor, held)
    shrinks = wanted < entry.newest
    if wanted == entry.newest:
        return DueResource(wanted=entry.newest)
    if shrinks and ledger.overcommitted:
        return DueResource(wanted=wanted, why="schedulers may promise more than there is", urgent=True)
    if shrinks and ledger.someone_waits:
        return DueResource(wanted=wanted, why="another account waits for it")
    if entry.newest < entry.floor:
        return DueResource(wanted=wanted, why="it is below the floor")
    if abs(wanted - entry.newest) * 100 > entry.newest * policy.band_percent:
        return DueResource(wanted=wanted, why="it differs by more than the band")
    return DueResource(wanted=entry.newest)


def _row_due(
    row: Row, decisions: list[DueResource], policy: PublishingPolicy, now: float, lasts_seconds: int | None
) -> Due | None:
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
    return Due(key=row.key, size=size, urgent=any(d.urgent for d in decisions), why="; ".join(reasons))


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
