"""What histories of the ledger were tried and what was exposed in them, for the end of a test run."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counts:
    """`tried`: how often what happened. `exposed` and `largest`: how often schedulers could promise more than there is
    for which named reason, and the largest amount by which one event raised that, in percent of a node.
    """

    tried: Counter[str] = field(default_factory=Counter)
    exposed: Counter[str] = field(default_factory=Counter)
    largest: dict[str, float] = field(default_factory=dict)

    def expose(self, kind: str, percent: float) -> None:
        """One event raised an exposure."""
        self.exposed[kind] += 1
        self.largest[kind] = max(self.largest.get(kind, 0.0), percent)

    def merge(self, other: "Counts") -> None:
        """Add what was counted elsewhere."""
        self.tried += other.tried
        self.exposed += other.exposed
        for kind, percent in other.largest.items():
            self.largest[kind] = max(self.largest.get(kind, 0.0), percent)

    def lines(self) -> list[str]:
        """For readers: what was tried, then each kind of exposure."""
        tried = [f"{self.tried[what]:>9,} {what}" for what in sorted(self.tried, key=lambda what: (":" in what, what))]
        exposed = [
            f"{number:>9,} × {kind}: by at most {self.largest[kind]:.1f} % of a node"
            for kind, number in sorted(self.exposed.items())
        ]
        return [*tried, "exposures, each bounded by what made it:", *exposed]
