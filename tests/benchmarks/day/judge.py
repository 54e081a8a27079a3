"""What accounts could get, computed apart from the ledger: with the size of their tasks and what they want known.

Each account's tasks rise together, by weight, until a resource that they need is used up; then those that need it stop
and the others go on (progressive filling of dominant shares: each account is stopped by what it wants or by a resource
of which nobody has more, by weight, of its own).
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fallow_hookspecs import RESOURCE_NAMES, Resources


class Want(NamedTuple):
    """An account on a node: its weight, its task, and how many it wants."""

    weight: int
    task: Resources
    tasks: float


def fair_tasks(batch: Resources, wants: Sequence[Want]) -> list[float]:
    """How many tasks of each account run where everybody is treated alike, in the order of the accounts."""
    got = [0.0] * len(wants)
    left = [float(batch.amount(name)) for name in RESOURCE_NAMES]
    rates = [w.weight / _dominant(batch, w.task) for w in wants]
    active = {i for i, w in enumerate(wants) if w.tasks > 0}
    while active:
        speeds = [sum(rates[i] * wants[i].task.amount(name) for i in active) for name in RESOURCE_NAMES]
        until = min(left[r] / speed for r, speed in enumerate(speeds) if speed)
        until = min(until, *((wants[i].tasks - got[i]) / rates[i] for i in active))
        for i in active:
            got[i] += rates[i] * until
        left = [amount - speed * until for amount, speed in zip(left, speeds, strict=True)]
        active = {i for i in active if wants[i].tasks - got[i] > 1e-9 and not _stopped(wants[i].task, batch, left)}
    return got


def _dominant(batch: Resources, task: Resources) -> float:
    """The largest share of batch capacity that one task takes."""
    return max(task.amount(name) / max(batch.amount(name), 1) for name in RESOURCE_NAMES)


def _stopped(task: Resources, batch: Resources, left: Sequence[float]) -> bool:
    return any(task.amount(n) and left[r] <= 1e-6 * max(batch.amount(n), 1) for r, n in enumerate(RESOURCE_NAMES))


@dataclass(slots=True)
class Tally:
    """What is counted over the day. Sums are over moments of equal length."""

    fair: dict[tuple[str, int], float] = field(default_factory=lambda: defaultdict(float))
    got: dict[tuple[str, int], float] = field(default_factory=lambda: defaultdict(float))
    wanted: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    moments: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    looked_at: int = 0
    lent: float = 0.0
    used: float = 0.0
    possible: float = 0.0
    usable: float = 0.0
    sizes_sent: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    causes: Counter[str] = field(default_factory=Counter)
    take_backs: int = 0
    ended: int = 0
    warned: int = 0
    grown_beyond: int = 0
    more_than_believed: int = 0
    exposed: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def starved(self) -> list[tuple[str, int, float]]:
        """The account-hours below half of the fair share: (account, hour, share got)."""
        return [
            (*at, self.got[at] / fair) for at, fair in self.fair.items() if self._says(at) and self.got[at] < fair / 2
        ]

    @property
    def judged_hours(self) -> int:
        """The account-hours that say something."""
        return sum(self._says(at) for at in self.fair)

    def _says(self, at: tuple[str, int]) -> bool:
        """Whether an account wanted something for half of the hour at least, and could have had half a task then."""
        return self.wanted[at] * 2 >= self.moments[at[1]] and self.fair[at] >= 0.5 * self.wanted[at]
