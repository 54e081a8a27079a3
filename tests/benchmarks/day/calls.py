"""How calls and reports fare on their way."""

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.rows import RowKey
from fallow_hookspecs import Resources

LATEST_SECONDS = 55.0


class Fate(NamedTuple):
    """What becomes of a call: when it ends and whether answered, when it is taken, if ever, and when carried out."""

    ends_at: float
    answered: bool
    taken_at: float | None
    carried_out_at: float = 0.0


class Report(NamedTuple):
    """A report on its way: when it arrives, when it was asked for, and (size in force, allocated) of each row."""

    arrives_at: float
    asked_at: float
    shown: dict[RowKey, tuple[Resources, Resources]]


@dataclass(frozen=True, slots=True)
class Call:
    """A call with offers under way."""

    due: tuple[DueOffer, ...]
    sent_at: float
    ends_at: float
    answered: bool


@dataclass(slots=True)
class Line:
    """The connection to one cluster."""

    rng: Random
    trouble_percent: int
    call: Call | None = None
    reports: list[Report] = field(default_factory=list)
    asks_at: float = 0.0
    published_at: float = -100.0
    down_until: float = 0.0

    def fate(self, now: float) -> Fate:
        """Most calls are fine; the others are slow, carried out late, lost, or lost and carried out late."""
        if now < self.down_until:
            return Fate(now + 1, answered=False, taken_at=None)
        if self.rng.uniform(0, 100) >= self.trouble_percent:
            return Fate(now + 1, answered=True, taken_at=now, carried_out_at=now)
        late = now + 1 + self.rng.uniform(0, LATEST_SECONDS)
        return self.rng.choice(
            (
                Fate(late, answered=True, taken_at=late, carried_out_at=late),
                Fate(now + 1, answered=True, taken_at=now, carried_out_at=late),
                Fate(now + 1, answered=False, taken_at=None),
                Fate(now + 1, answered=False, taken_at=late, carried_out_at=late),
            )
        )

    def report_delay(self, now: float) -> float | None:
        """How long a report takes; `None` if it gets lost."""
        if now < self.down_until:
            return None
        if self.rng.uniform(0, 100) >= self.trouble_percent:
            return 0.5
        return self.rng.choice((None, self.rng.uniform(1, 40)))
