"""For how long something has held, by readings that come when they come."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """It held in each of the last `samples` readings, for `seconds` that were watched. `last_at`: the newest reading.

    No policy goes in, so that a changed setting loses nothing of what was seen.
    """

    seconds: float = 0.0
    samples: int = 0
    last_at: float | None = None

    def after(self, measured_at: float, holds: bool, gap_seconds: float, window_seconds: float) -> "Held":
        """With one more reading; one that was counted already changes nothing.

        Time counts only between readings at most `gap_seconds` apart: nobody knows what was in between. What was seen
        before a gap longer than the window is of another time.
        """
        if self.last_at is not None and measured_at <= self.last_at:
            return self
        if not holds:
            return Held(last_at=measured_at)
        passed = measured_at - self.last_at if self.last_at is not None and self.samples else 0.0
        if passed > max(gap_seconds, window_seconds):
            return Held(samples=1, last_at=measured_at)
        watched = passed if passed <= gap_seconds else 0.0
        return Held(seconds=self.seconds + watched, samples=self.samples + 1, last_at=measured_at)
