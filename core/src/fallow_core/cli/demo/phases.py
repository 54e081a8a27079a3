"""When the online load of the demo rises and falls. Pure; times are seconds since Fallow began to lend."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """From `begins_at` on the load uses `load_percent` of each CPU; the demo shows `text`."""

    begins_at: float
    load_percent: int
    text: str


ALONE_SECONDS: Final = 5.0
ALONE: Final = Phase(begins_at=0, load_percent=25, text="Online services alone: the rest of this host is idle")
PHASES: Final = (
    Phase(begins_at=0, load_percent=25, text="Fallow lends what is idle, and the queue begins to run"),
    Phase(begins_at=12, load_percent=75, text="Online load rises: Fallow takes back before online services feel it"),
    Phase(begins_at=20, load_percent=25, text="Online load falls: batch grows back"),
    Phase(begins_at=28, load_percent=75, text="Online load rises once more"),
    Phase(begins_at=36, load_percent=25, text="Online load falls: what was interrupted is run again"),
)
END_SECONDS: Final = 42.0


def phase_at(seconds: float) -> Phase:
    """The phase of a moment."""
    return next(phase for phase in reversed(PHASES) if phase.begins_at <= max(seconds, 0.0))
