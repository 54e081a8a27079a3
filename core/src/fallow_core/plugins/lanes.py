"""A lane: one thread that makes one call of plugin code at a time, and the breaker that pauses its calls.

The core loop starts a call, polls it, and never waits for it. There is no queue: a busy lane takes no call. A thread
cannot be stopped, so a call that never ends blocks its (daemon) thread, and nothing else.

An error in plugin code is a value, `Failure`, and no exception. The lane's thread reports it to the breaker before the
call is done.
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
    """What follows a failed call: another call after a pause, after the time that the plugin asked for, or none."""

    FAILED = "failed"
    TRY_LATER = "try later"
    BROKEN = "broken"
    NOT_IMPLEMENTED = "not implemented"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The outcome of a call without an answer. `reason` is one line for the operator."""

    kind: FailureKind
    reason: str
    retry_after_seconds: float | None = None


_UNDER_WAY: Any = object()


@dataclass(slots=True, eq=False)
class Call(Generic[_T]):
    """A call under way, or done. Times are monotonic seconds; after `deadline` the lane is stalled.

    It is no future, because nobody waits for it: the lane sets the outcome once, and the caller polls.
    """

    started_at: float
    deadline: float
    _outcome: "_T | Failure" = _UNDER_WAY

    @property
    def done(self) -> bool:
        """Whether the call has ended, before or after its deadline."""
        return self._outcome is not _UNDER_WAY

    @property
    def outcome(self) -> "_T | Failure":
        """The answer, or why there is none.

        :raises RuntimeError: the call is not done.
        """
        if self._outcome is _UNDER_WAY:
            raise RuntimeError("the call has not ended, so it has no outcome yet")
        return self._outcome

    def end(self, outcome: "_T | Failure") -> None:
        """Set the outcome. Only the lane calls this."""
        self._outcome = outcome

    def overdue(self, now: float) -> bool:
        """Whether the call is still under way after its deadline."""
        return now >= self.deadline and not self.done


class LaneState(StrEnum):
    """`BACKING_OFF`: the last call failed. `BROKEN`: no call until the configuration changes."""

    OK = "ok"
    BACKING_OFF = "backing off"
    BROKEN = "broken"
    STALLED = "stalled"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneHealth:
    """What an operator should know about a lane. Times are monotonic seconds."""

    state: LaneState
    reason: str = ""
    failures: int = 0
    failing_since: float | None = None
    next_try_at: float | None = None


class Lane:
    """One daemon thread, started by `start` or the first call. Only one thread may call `submit`, `health`, `close`."""

    def __init__(self, name: str, clock: Callable[[], float], wake: Callable[[], None] | None = None) -> None:
        """The lane's thread calls `wake` after each call; it must be quick and thread-safe."""
        self._clock = clock
        self._wake = wake
        self._breaker = Breaker()
        self._call: Call[Any] | None = None
        self._jobs: queue.SimpleQueue[tuple[Call[Any], Callable[[], Any], bool] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._closed = False

    def start(self) -> None:
        """Start the thread now: later there may be no memory or no thread for it.

        :raises RuntimeError: no thread can be started.
        """
        if not self._thread.is_alive():
            self._thread.start()

    def submit(
        self, function: Callable[[], _T], timeout_seconds: float, *, use_breaker: bool = True
    ) -> "Call[_T] | None":
        """Start a call; `None` if the lane is busy, or its breaker says to wait.

        :param use_breaker: if false, the call also runs while the breaker is open, and its outcome does not change the
            breaker.
        """
        if self._closed:
            raise RuntimeError(f"lane {self._thread.name} is closed")
        now = self._clock()
        if self.busy or (use_breaker and not self._breaker.allows(now)):
            return None
        call: Call[_T] = Call(now, now + timeout_seconds)
        self._call = call
        try:
            self.start()
        except RuntimeError as error:
            call.end(Failure(kind=FailureKind.FAILED, reason=f"no thread can be started for it: {error}"))
            return call
        self._jobs.put((call, function, use_breaker))
        return call

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return self._call is not None and not self._call.done

    def health(self) -> LaneHealth:
        """The state of the lane now."""
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
        """Take no more calls, and stop the thread after the call under way. Does not wait."""
        self._closed = True
        self._jobs.put(None)

    def join(self) -> None:
        """After `close`: wait until the thread has stopped, at most until the deadline of the call under way."""
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
        """Make the call and report to the breaker. No exception of plugin code stops the thread."""
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
    """The text of an error that was raised on purpose; for any other error its type and text."""
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
