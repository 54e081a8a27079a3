"""The end of the time that a caller gives to a call and everything it needs (name, connection, request, answer)."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point on a monotonic clock, in seconds. `clock` is asked for the present, so tests can bring their own."""

    at: float
    clock: Clock = field(default=time.monotonic, repr=False, compare=False)

    @classmethod
    def after(cls, seconds: float, clock: Clock = time.monotonic) -> "Deadline":
        """The deadline that many seconds from now."""
        return cls(clock() + seconds, clock)

    def within(self, seconds: float) -> "Deadline":
        """The deadline that many seconds from now, or this one if it is earlier."""
        return Deadline(min(self.at, self.clock() + seconds), self.clock)

    def left_seconds(self) -> float:
        """The time that is left; zero or negative when it is over."""
        return self.at - self.clock()
