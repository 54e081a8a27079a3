"""Decides when a lane may be called again after failures. Pure: each step returns the next state.

The pause after the first failure is 1 s. It doubles with each further failure in a row, up to 60 s. There is no jitter:
one core calls few clusters, and their failures are not synchronized.
"""

import math
from dataclasses import dataclass, replace

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """State of one lane. Times are monotonic seconds.

    `failures` counts failures in a row. `failing_since` is the end of the first, `reason` the text of the last.
    `next_try_at` is infinite once the instance is broken.
    """

    failures: int = 0
    failing_since: float | None = None
    reason: str = ""
    next_try_at: float = -math.inf
    pause_seconds: float = 0.0

    @property
    def broken(self) -> bool:
        """Whether no further call is allowed."""
        return self.next_try_at == math.inf

    def allows(self, now: float) -> bool:
        """Whether a call may start now."""
        return now >= self.next_try_at

    def after_success(self) -> "Breaker":
        """The state after an answer: the initial state."""
        return Breaker()

    def after_failure(self, reason: str, now: float) -> "Breaker":
        """The state after a failed call: a growing pause."""
        pause = min(max(2 * self.pause_seconds, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
        return replace(self._failed(reason, now), next_try_at=now + pause, pause_seconds=pause)

    def after_try_later(self, reason: str, after_seconds: float, now: float) -> "Breaker":
        """The state after the plugin asked for time: the pause that it asked for. Later pauses do not grow by it."""
        return replace(self._failed(reason, now), next_try_at=now + after_seconds)

    def after_broken(self, reason: str, now: float) -> "Breaker":
        """The state after the plugin said that this configuration cannot work."""
        return replace(self._failed(reason, now), next_try_at=math.inf)

    def _failed(self, reason: str, now: float) -> "Breaker":
        since = now if self.failing_since is None else self.failing_since
        return replace(self, failures=self.failures + 1, failing_since=since, reason=reason)
