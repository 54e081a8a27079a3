"""How far and how soon a size falls, as far as time is concerned.

- At once to what is allocated: so nothing more starts. Below it, so that what ends is not replaced, when the target has
  been below for `DRAIN_AFTER_SECONDS`: a size below the allocation makes a framework warn applications of preemption.
- While one fall follows another the load rises steadily. Then a size falls to where the target will be
  `AHEAD_SECONDS` later, or the next second it would have to fall again.
"""

import math
from dataclasses import dataclass

DRAIN_AFTER_SECONDS = 30.0
"""For so long a target lies below the allocation before the size does, too."""
AHEAD_SECONDS = 10.0
"""For so long a size lasts that falls while the load rises steadily."""
STEADY_SECONDS = 2 * AHEAD_SECONDS
"""A fall within this time after another one continues it."""
STEADY_FALLS = 2
"""After so many falls, each of which continues another one, the load rises steadily."""


@dataclass(slots=True)
class Falls:
    """What is remembered of one row and resource.

    `fell_at`: when its size last fell; `fell_to`: its target at that time; `count`: how many falls have continued each
    other, up to `STEADY_FALLS`. `over_since`: since when its target lies below what is allocated; infinity where it
    does not.
    """

    fell_at: float = -math.inf
    fell_to: int = 0
    count: int = 0
    over_since: float = math.inf

    def fell(self, now: float, target: int) -> None:
        """The size has fallen; `target` is the present one."""
        self.count = min(self.count + 1, STEADY_FALLS) if now - self.fell_at <= STEADY_SECONDS else 1
        self.fell_at, self.fell_to = now, target

    def note(self, now: float, over: bool) -> None:
        """Say whether the target lies below what is allocated."""
        self.over_since = min(self.over_since, now) if over else math.inf

    def drains(self, now: float) -> bool:
        """Whether the target has been below the allocation for so long that the size goes there, too."""
        return now - self.over_since >= DRAIN_AFTER_SECONDS

    def ahead(self, now: float, target: int) -> int:
        """By how much the target will fall in the next while, if the load goes on rising as since the last fall."""
        if self.count < STEADY_FALLS or not 0 < now - self.fell_at <= STEADY_SECONDS:
            return 0
        return int(max(self.fell_to - target, 0) * AHEAD_SECONDS / (now - self.fell_at))
