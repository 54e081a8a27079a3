"""The deadline of a call and of all its steps: name look-up, connection, request and answer."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time on a monotonic clock, in seconds. `clock` returns the current time; tests can pass their own."""

    at: float
    clock: Clock = field(default=time.monotonic, repr=False, compare=False)

    @classmethod
    def after(cls, seconds: float, clock: Clock = time.monotonic) -> "Deadline":
        """The deadline a number of seconds from now."""
        return cls(clock() + seconds, clock)

    def within(self, seconds: float) -> "Deadline":
        """The deadline a number of seconds from now, or this one if it is earlier."""
        return Deadline(min(self.at, self.clock() + seconds), self.clock)

    def left_seconds(self) -> float:
        """The remaining time; zero or negative after the deadline."""
        return self.at - self.clock()
