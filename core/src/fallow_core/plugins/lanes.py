"""A lane: one thread that makes one call of plugin code at a time, and the breaker that spaces its calls.

The core loop starts a call, polls it, and never waits for it. Nothing queues up: a busy lane takes no call. A thread
cannot be stopped, so a call that never ends keeps its (daemon) thread, and nothing else.

What went wrong in plugin code is a value, `Failure`, and no exception: whoever reads an outcome has to look. The
breaker learns of it in the lane's thread before the call is done, so nobody can forget to tell it.
"""

import logging
import math
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from fallow_core.errors import FallowError
from fallow_core.plugins.breaker import Breaker
from fallow_hookspecs import Broken, PluginError, TryLater

LONGEST_REASON = 500

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class FailureKind(StrEnum):
    """What a failed call means: called again after a pause, after the plugin's own time, or never."""

    FAILED = "failed"
    TRY_LATER = "try later"
    BROKEN = "broken"
    NOT_IMPLEMENTED = "not implemented"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The outcome of a call that gave no answer; `reason` is for the operator, in one line."""

    kind: FailureKind
    reason: str
    retry_after_seconds: float | None = None


_UNDER_WAY: Any = object()


@dataclass(slots=True, eq=False)
class Call(Generic[_T]):
    """A call under way, or ended. Times are monotonic seconds; `deadline` is when the lane counts as stalled.

    It is no future, because nobody waits for it: the lane sets its outcome, once, and whoever started it looks.
    """

    started_at: float
    deadline: float
    _outcome: "_T | Failure" = _UNDER_WAY

    @property
    def done(self) -> bool:
        """Whether the call has ended; an end after the deadline is an end like any other."""
        return self._outcome is not _UNDER_WAY

    @property
    def outcome(self) -> "_T | Failure":
        """The answer, or why there is none. Asking before the call is done is a mistake in core, and raises."""
        if self._outcome is _UNDER_WAY:
            raise RuntimeError("the call has not ended: its outcome is there when it is done")
        return self._outcome

    def end(self, outcome: "_T | Failure") -> None:
        """For the lane: this is what came of it."""
        self._outcome = outcome

    def overdue(self, now: float) -> bool:
        """Whether it should have ended and has not."""
        return now >= self.deadline and not self.done


class LaneState(StrEnum):
    """`BACKING_OFF`: the last call failed, the next one waits or is due. `BROKEN`: no call before a new config."""

    OK = "ok"
    BACKING_OFF = "backing off"
    BROKEN = "broken"
    STALLED = "stalled"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneHealth:
    """What an operator should know of a lane. Times are monotonic seconds; `next_try_at` only while backing off."""

    state: LaneState
    reason: str = ""
    failures: int = 0
    failing_since: float | None = None
    next_try_at: float | None = None


class Lane:
    """One daemon thread, started with the first call. `submit`, `health` and `close` belong to one caller's thread."""

    def __init__(self, name: str, clock: Callable[[], float], wake: Callable[[], None] | None = None) -> None:
        """`wake` is called in the lane's thread after each call; it must be quick and safe from any thread."""
        self._clock = clock
        self._wake = wake
        self._breaker = Breaker()
        self._call: Call[Any] | None = None
        self._jobs: queue.SimpleQueue[tuple[Call[Any], Callable[[], Any], bool] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._closed = False

    def submit(
        self, function: Callable[[], _T], timeout_seconds: float, *, use_breaker: bool = True
    ) -> "Call[_T] | None":
        """Start a call; `None` if the lane is busy, or its breaker says to wait.

        :param use_breaker: false for a call that an operator asks for: it runs while the breaker is open, and what
            becomes of it opens and closes nothing.
        """
        if self._closed:
            raise RuntimeError(f"lane {self._thread.name} is closed")
        now = self._clock()
        if self.busy or (use_breaker and not self._breaker.allows(now)):
            return None
        call: Call[_T] = Call(now, now + timeout_seconds)
        self._call = call
        if not self._thread.is_alive():
            self._thread.start()
        self._jobs.put((call, function, use_breaker))
        return call

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return self._call is not None and not self._call.done

    def health(self) -> LaneHealth:
        """How the lane is now."""
        now, call, breaker = self._clock(), self._call, self._breaker
        state, reason = LaneState.OK, breaker.reason
        if call is not None and call.overdue(now):
            state = LaneState.STALLED
            allowed = call.deadline - call.started_at
            reason = f"a call runs for {now - call.started_at:.0f} s; its time was {allowed:g} s"
        elif breaker.broken:
            state = LaneState.BROKEN
        elif breaker.failures:
            state = LaneState.BACKING_OFF
        return LaneHealth(
            state=state,
            reason=reason,
            failures=breaker.failures,
            failing_since=breaker.failing_since,
            next_try_at=breaker.next_try_at if math.isfinite(breaker.next_try_at) else None,
        )

    def close(self) -> None:
        """Take no more calls, and end the thread after the one under way. Does not wait."""
        self._closed = True
        self._jobs.put(None)

    def join(self) -> None:
        """After `close`: wait until the thread has ended, at most until the deadline of the call under way."""
        if self._thread.is_alive() and self._call is not None:
            self._thread.join(max(0.0, self._call.deadline - self._clock()))

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            call, function, use_breaker = job
            call.end(self._attempt(function, use_breaker))
            del job, call, function  # they hold the answer, which may be large
            if self._wake is not None:
                try:
                    self._wake()
                except Exception:
                    _log.exception("waking the loop failed")

    def _attempt(self, function: Callable[[], _T], use_breaker: bool) -> "_T | Failure":
        """Make the call and tell the breaker. Nothing that plugin code raises ends the thread."""
        try:
            answer = function()
        except BaseException as error:
            _log.debug("call in lane %s failed", self._thread.name, exc_info=error)
            failure = _failure(error)
            if use_breaker:
                self._breaker = _after(self._breaker, failure, self._clock())
            return failure
        if use_breaker:
            self._breaker = self._breaker.after_success()
        return answer


def _failure(error: BaseException) -> Failure:
    reason = reason_of(error)
    if isinstance(error, Broken):
        return Failure(kind=FailureKind.BROKEN, reason=reason)
    pause = getattr(error, "after_seconds", None) if isinstance(error, TryLater) else None
    if isinstance(pause, int | float) and 0 <= pause < math.inf:
        return Failure(kind=FailureKind.TRY_LATER, reason=reason, retry_after_seconds=pause)
    return Failure(kind=FailureKind.FAILED, reason=reason)


def reason_of(error: BaseException) -> str:
    """The author's own words for an error raised on purpose, the type's name before any other."""
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be shown)"
    if len(text) > LONGEST_REASON:
        text = text[:LONGEST_REASON] + " ..."
    text = " ".join(text.split())
    if text and isinstance(error, PluginError | FallowError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _after(breaker: Breaker, failure: Failure, now: float) -> Breaker:
    if failure.kind is FailureKind.BROKEN:
        return breaker.after_broken(failure.reason, now)
    if failure.retry_after_seconds is not None:
        return breaker.after_try_later(failure.reason, failure.retry_after_seconds, now)
    return breaker.after_failure(failure.reason, now)
