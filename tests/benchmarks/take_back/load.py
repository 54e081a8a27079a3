"""Online memory that follows a profile: bytes by seconds since it began."""

import itertools
import mmap
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

LENT_MB = 4096  # while the load holds nothing
STEP_BYTES = 10_000_000
EVERY_SECONDS = 0.05
RATE = 100_000_000  # bytes a second

Profile = Callable[[float], int]


def oscillating(bytes_held: int, period_seconds: float) -> Profile:
    """All of it for the first 60 % of each period, nothing for the rest."""
    return lambda seconds: bytes_held if seconds % period_seconds < 0.6 * period_seconds else 0


def ramps(peak_bytes: int, plateaus: Sequence[tuple[float, float]]) -> Profile:
    """Rise to the peak and fall to nothing at RATE. For each pair the seconds at the peak, and then at the bottom."""
    ramp = peak_bytes / RATE
    points = [(0.0, 0.0)]
    for top, bottom in plateaus:
        for seconds, held in ((ramp, peak_bytes), (top, peak_bytes), (ramp, 0), (bottom, 0)):
            points.append((points[-1][0] + seconds, held))

    def held_at(seconds: float) -> int:
        at = seconds % points[-1][0]
        (since, low), (until, high) = next(pair for pair in itertools.pairwise(points) if at < pair[1][0])
        return int(low + (high - low) * (at - since) / (until - since))

    return held_at


class Load:
    """Holds as much memory as the profile says while it is open; a context manager."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _follow(self) -> None:
        began, held = time.monotonic(), list[mmap.mmap]()
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE  # in use at once, and free when it is closed
        while not self._over.wait(EVERY_SECONDS):
            wanted = self._profile(time.monotonic() - began) // STEP_BYTES
            while len(held) < wanted:
                held.append(mmap.mmap(-1, STEP_BYTES, flags=flags))
            while len(held) > wanted:
                held.pop().close()
        for each in held:
            each.close()
