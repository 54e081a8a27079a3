"""When the online load of the demo rises and falls. Pure; times are seconds since the demo began."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """From `begins_at` on the load keeps each CPU so busy; `text` is shown. `lends`: Fallow runs."""

    begins_at: float
    load_percent: int
    text: str
    lends: bool = True


PHASES: Final = (
    Phase(begins_at=0, load_percent=25, text="Online services alone: the rest of this host is idle", lends=False),
    Phase(begins_at=6, load_percent=25, text="Fallow lends what is idle, and the queue begins to run"),
    Phase(begins_at=19, load_percent=75, text="Online load rises: the offer shrinks before online services feel it"),
    Phase(begins_at=29, load_percent=25, text="Online load falls: batch grows back"),
    Phase(begins_at=37, load_percent=75, text="And once more"),
    Phase(begins_at=45, load_percent=25, text="Online load falls: what was interrupted is run again"),
)
END_SECONDS: Final = 52.0


def phase_at(seconds: float) -> Phase:
    """The phase of a moment."""
    return next(phase for phase in reversed(PHASES) if phase.begins_at <= max(seconds, 0.0))


def rises() -> tuple[float, ...]:
    """When the load rises while Fallow lends."""
    return tuple(after.begins_at for before, after in pairwise(PHASES) if after.load_percent > before.load_percent)
