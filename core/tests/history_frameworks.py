"""The other side of the histories: what schedulers work with, and how calls and reports fare on their way."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from fallow_core.ledger.rows import RowKey
from fallow_hookspecs import RESOURCE_NAMES, ReportRow, Resources

NOTHING = Resources(0, 0)
CONFIGURED = Resources(7_500, 4_321_000)
FAR = math.inf


class Update(NamedTuple):
    """A size on its way: when the framework takes the call, and when its scheduler works with the size.

    Every update moves a stored deadline away. `down_to`: before that, so much memory is left of what is allocated.
    """

    taken_at: float
    applied_at: float
    size: Resources
    down_to: int | None = None


@dataclass(slots=True)
class Scheduler:
    """The framework's side of a row: what it works with, what it promised, and updates on their way.

    `ends_at`: when it ends what is allocated above its size, as somebody else said. `ended`: how much memory was
    terminated, whether by others, and how much of the row was left. Until `recovers_at` it says that nothing is
    allocated.
    """

    size: Resources = CONFIGURED
    allocated: Resources = NOTHING
    gone: bool = False
    updates: list[Update] = field(default_factory=list)
    ends_at: float = FAR
    ended: list[tuple[int, bool, int]] = field(default_factory=list)
    recovers_at: float = 0.0

    def take(self, update: Update) -> None:
        """The updates taken before are applied no later than this one, since they keep their order."""
        earlier = [u for u in self.updates if u.taken_at <= update.taken_at]
        later = [u for u in self.updates if u.taken_at > update.taken_at]
        earlier = [u._replace(applied_at=min(u.applied_at, update.applied_at)) for u in earlier]
        soonest = min((u.applied_at for u in later), default=update.applied_at)
        self.updates = [*earlier, update._replace(applied_at=min(update.applied_at, soonest)), *later]

    def carry_out(self, now: float) -> None:
        """Apply what is due by now, and end what is above the size when a deadline is over."""
        while self.updates and self.updates[0].applied_at <= now:
            update = self.updates.pop(0)
            if not self.gone:
                if update.down_to is not None:
                    self._terminate(Resources(self.allocated.cpu_milli, update.down_to), by_others=False)
                self.size, self.ends_at = update.size, FAR
        if now >= self.ends_at:
            self._terminate(self.size, by_others=True)

    def _terminate(self, size: Resources, *, by_others: bool) -> None:
        if self.over(size):
            before, self.allocated = self.allocated, smaller(self.allocated, size)
            amount = before.memory_bytes - self.allocated.memory_bytes
            self.ended.append((amount, by_others, self.allocated.memory_bytes))

    def over(self, size: Resources) -> bool:
        """Whether more is allocated than that."""
        return any(self.allocated.amount(name) > size.amount(name) for name in RESOURCE_NAMES)

    def set_by_others(self, size: Resources, ends_at: float) -> None:
        """Somebody else sets a size, with a deadline for what is above it or none."""
        self.size, self.ends_at = size, ends_at

    def register(self) -> None:
        """Its node starts anew, with the size it is configured with; tasks live on."""
        self.gone = False
        self.size, self.ends_at = CONFIGURED, FAR

    def lose(self, now: float) -> None:
        """The node is gone: what was taken for it comes to nothing, a call that is taken later may not."""
        self.size = self.allocated = NOTHING
        self.gone, self.ends_at = True, FAR
        self.updates = [u for u in self.updates if u.taken_at > now]

    def promise(self, percent: int, now: float) -> None:
        """Start tasks, up to that share of the size."""
        if not self.gone and now >= self.recovers_at:
            self.allocated = larger(self.allocated, percent_of(self.size, percent))

    def end(self, percent: int) -> None:
        """Tasks end; that share goes on."""
        self.allocated = percent_of(self.allocated, percent)

    def most(self) -> Resources:
        """The most that it may promise with what it has and what is on its way: of no use while its node is gone."""
        if self.gone:
            return self.allocated
        sizes = [self.allocated, self.size, *(update.size for update in self.updates)]
        return Resources(max(s.cpu_milli for s in sizes), max(s.memory_bytes for s in sizes))


@dataclass(slots=True)
class Call:
    """A call with offers: it ends at that time, answered or not."""

    sizes: dict[RowKey, Resources]
    sent_at: float
    ends_at: float
    outcome: str


@dataclass(slots=True)
class Network:
    """How the next calls and the next report of one cluster fare, and what is under way.

    `age_is`: what the next report says of its age instead of the truth. `repeats`: the next call is carried out a
    second time, and the next report arrives so many seconds later again.
    """

    next_calls: list[tuple[str, int]] = field(default_factory=list)
    next_report_delay: int = 0
    age_is: float | None = None
    repeats: int | None = None
    reports_get_lost: bool = False
    call: Call | None = None
    reports: list[tuple[float, float, dict[RowKey, ReportRow]]] = field(default_factory=list)
    asks_at: float = 0
    published_at: float = -100


CALLS = ("fine", "slow", "late in the scheduler", "lost", "carried out late", "refused")


class Fate(NamedTuple):
    """What becomes of a call: when it ends and how, and (taken, applied) of each time that it is carried out."""

    ends_at: float
    outcome: str
    carried_out: tuple[tuple[float, float], ...] = ()

    def repeated(self, latest: float) -> "Fate":
        """It is carried out a second time: as late as may be, which with an answer is before that."""
        if not self.carried_out:
            return self
        again = self.ends_at if self.outcome == "answered" else latest
        return self._replace(carried_out=(*self.carried_out, (again, again)))


def fate(calls: str, now: float, delay: int) -> Fate:
    """The fate of a call of that kind which begins now."""
    late = now + 1 + delay
    match calls:
        case "slow":
            taken_at = now + delay if delay % 2 else now
            return Fate(late, "answered", ((taken_at, taken_at),))
        case "late in the scheduler":
            return Fate(now + 1, "answered", ((now, late),))
        case "lost":
            return Fate(now + 1, "unanswered")
        case "carried out late":
            return Fate(now + 1, "unanswered", ((late, late),))
        case "refused":
            return Fate(now + 1, "refused")
        case _:
            return Fate(now + 1, "answered", ((now, now),))


def percent_of(size: Resources, percent: int) -> Resources:
    """A share of a size, rounded down."""
    return Resources(size.cpu_milli * percent // 100, size.memory_bytes * percent // 100)


def larger(one: Resources, other: Resources) -> Resources:
    """The larger amount of each resource."""
    return Resources(max(one.cpu_milli, other.cpu_milli), max(one.memory_bytes, other.memory_bytes))


def smaller(one: Resources, other: Resources) -> Resources:
    """The smaller amount of each resource."""
    return Resources(min(one.cpu_milli, other.cpu_milli), min(one.memory_bytes, other.memory_bytes))
