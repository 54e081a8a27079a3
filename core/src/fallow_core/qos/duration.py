"""For how long a condition has been true, measured by readings at irregular times."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionDuration:
    """The condition was true in each of the last `samples` readings, for `seconds`. `last_at`: the newest reading.

    It stores no policy, so a changed setting loses no history.
    """

    seconds: float = 0.0
    samples: int = 0
    last_at: float | None = None

    def after(
        self, measured_at: float, is_true: bool, gap_seconds: float, window_seconds: float
    ) -> "ConditionDuration":
        """The duration after one more reading; a reading that was counted already changes nothing.

        Time counts only between readings at most `gap_seconds` apart, since longer gaps may hide a change. After a gap
        longer than the window the duration starts anew.
        """
        if self.last_at is not None and measured_at <= self.last_at:
            return self
        if not is_true:
            return ConditionDuration(last_at=measured_at)
        passed = measured_at - self.last_at if self.last_at is not None and self.samples else 0.0
        if passed > max(gap_seconds, window_seconds):
            return ConditionDuration(samples=1, last_at=measured_at)
        counted = passed if passed <= gap_seconds else 0.0
        return ConditionDuration(seconds=self.seconds + counted, samples=self.samples + 1, last_at=measured_at)
