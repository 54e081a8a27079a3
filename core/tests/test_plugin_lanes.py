import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fallow_core.plugins.lanes import LONGEST_REASON, Call, Failure, FailureKind, Lane, LaneState
from fallow_hookspecs import Broken, TryLater


class Bench:
    """A lane with a clock that stands still, and a way to wait for the end of a call."""

    def __init__(self) -> None:
        self.now = 100.0
        self._ended = threading.Semaphore(0)
        self.lane = Lane("test lane", lambda: self.now, self._ended.release)

    def outcome(self, function: Callable[[], object]) -> object:
        call = self.lane.submit(function, 10.0)
        assert call is not None
        return self.end_of(call)

    def end_of(self, call: Call[Any]) -> object:
        assert self._ended.acquire(timeout=5)
        return call.outcome

    def fail(self, error: BaseException) -> Failure:
        def function() -> None:
            raise error

        outcome = self.outcome(function)
        assert isinstance(outcome, Failure)
        return outcome


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.lane.close()


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    gate = threading.Event()
    yield gate
    gate.set()


def test_an_answer_is_the_outcome(bench: Bench) -> None:
    assert bench.outcome(lambda: 42) == 42
    assert bench.lane.health().state is LaneState.OK


def test_every_call_of_a_lane_runs_in_the_same_thread(bench: Bench) -> None:
    first = bench.outcome(threading.get_ident)
    assert first == bench.outcome(threading.get_ident)
    assert first != threading.get_ident()


def test_a_busy_lane_takes_no_call_and_queues_none(bench: Bench, gate: threading.Event) -> None:
    calls: list[int] = []
    running = bench.lane.submit(gate.wait, 10.0)
    assert bench.lane.busy
    assert bench.lane.submit(lambda: calls.append(1), 10.0) is None
    assert running is not None
    gate.set()
    bench.end_of(running)
    assert bench.outcome(lambda: len(calls)) == 0


def test_the_outcome_of_a_running_call_cannot_be_read(bench: Bench, gate: threading.Event) -> None:
    running = bench.lane.submit(gate.wait, 10.0)
    assert running is not None
    assert not running.done
    with pytest.raises(RuntimeError, match="has not ended"):
        _ = running.outcome


def test_past_its_deadline_a_call_is_overdue_and_the_lane_stalled(bench: Bench, gate: threading.Event) -> None:
    running = bench.lane.submit(gate.wait, 10.0)
    assert running is not None
    assert running.started_at == 100.0
    bench.now = 109.9
    assert not running.overdue(bench.now)
    assert bench.lane.health().state is LaneState.OK
    bench.now = 125.0
    assert running.overdue(bench.now)
    health = bench.lane.health()
    assert health.state is LaneState.STALLED
    assert health.reason == "a call runs for 25 s; its time was 10 s"
    assert bench.lane.submit(lambda: 1, 10.0) is None


def test_a_late_answer_counts_and_ends_the_stall(bench: Bench, gate: threading.Event) -> None:
    running = bench.lane.submit(gate.wait, 10.0)
    assert running is not None
    bench.now = 500.0
    gate.set()
    assert bench.end_of(running) is True
    assert not running.overdue(bench.now)
    assert bench.lane.health().state is LaneState.OK


@pytest.mark.parametrize("error", [ValueError("bad\n  value"), SystemExit("bad value"), KeyboardInterrupt("bad value")])
def test_whatever_is_raised_fails_the_call_and_not_the_lane(bench: Bench, error: BaseException) -> None:
    failure = bench.fail(error)
    assert failure == Failure(kind=FailureKind.FAILED, reason=f"{type(error).__name__}: bad value")
    bench.now += 1.0
    assert bench.outcome(lambda: 1) == 1


def test_after_failures_the_lane_backs_off_with_reason_and_count(bench: Bench) -> None:
    bench.fail(ValueError("first"))
    assert bench.lane.submit(lambda: 1, 10.0) is None
    bench.now = 101.0
    bench.fail(ValueError("second"))
    health = bench.lane.health()
    assert health.state is LaneState.BACKING_OFF
    assert (health.reason, health.failures) == ("ValueError: second", 2)
    assert (health.failing_since, health.next_try_at) == (100.0, 103.0)


def test_a_success_ends_the_back_off(bench: Bench) -> None:
    bench.fail(ValueError("once"))
    bench.now = 101.0
    bench.outcome(lambda: 1)
    health = bench.lane.health()
    assert (health.state, health.failures, health.reason) == (LaneState.OK, 0, "")


def test_try_later_is_shown_in_the_plugins_words_and_waits_its_time(bench: Bench) -> None:
    failure = bench.fail(TryLater("the manager is in standby", 30.0))
    assert failure.kind is FailureKind.TRY_LATER
    assert failure.reason == "the manager is in standby"
    assert bench.lane.health().next_try_at == 130.0


@pytest.mark.parametrize("pause", [-1.0, float("nan"), float("inf"), "soon"])
def test_try_later_without_a_sensible_time_is_a_failure_like_any_other(bench: Bench, pause: Any) -> None:
    assert bench.fail(TryLater("busy", pause)).kind is FailureKind.FAILED
    assert bench.lane.health().next_try_at == 101.0


def test_a_broken_lane_is_never_called_again(bench: Bench) -> None:
    assert bench.fail(Broken("user etl does not exist")).kind is FailureKind.BROKEN
    bench.now = 1e9
    assert bench.lane.submit(lambda: 1, 10.0) is None
    health = bench.lane.health()
    assert (health.state, health.reason, health.next_try_at) == (LaneState.BROKEN, "user etl does not exist", None)


def test_a_call_that_the_operator_asks_for_passes_an_open_breaker_and_leaves_it_as_it_is(bench: Bench) -> None:
    bench.fail(Broken("user etl does not exist"))
    call = bench.lane.submit(lambda: "finding", 10.0, use_breaker=False)
    assert call is not None
    assert bench.end_of(call) == "finding"
    assert bench.lane.health().state is LaneState.BROKEN


def test_an_exception_whose_text_fails_is_still_a_failure(bench: Bench) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert bench.fail(MuteError()).reason == "MuteError: (its text cannot be shown)"


def test_a_subclass_of_try_later_that_lacks_its_time_is_a_failure(bench: Bench) -> None:
    class Hasty(TryLater):
        def __init__(self) -> None:
            Exception.__init__(self, "soon")

    assert bench.fail(Hasty()) == Failure(kind=FailureKind.FAILED, reason="soon")


def test_a_reason_is_short(bench: Bench) -> None:
    assert len(bench.fail(ValueError("x" * 10**6)).reason) < LONGEST_REASON + 50


def test_close_does_not_wait_for_a_hung_call(bench: Bench, gate: threading.Event) -> None:
    running = bench.lane.submit(gate.wait, 10.0)
    bench.lane.close()
    assert running is not None
    assert not running.done
    with pytest.raises(RuntimeError, match="closed"):
        bench.lane.submit(lambda: 1, 10.0)


def test_a_closed_lane_ends_its_thread(bench: Bench) -> None:
    bench.outcome(lambda: 1)
    bench.lane.close()
    bench.lane.join()
    assert "test lane" not in [thread.name for thread in threading.enumerate()]


def test_a_wake_that_fails_does_not_end_the_lane(caplog: pytest.LogCaptureFixture) -> None:
    ended = threading.Semaphore(0)

    def wake() -> None:
        ended.release()
        raise RuntimeError("loop is closed")

    lane = Lane("test lane", lambda: 0.0, wake)
    for number in range(2):
        call = lane.submit(lambda: 1, 10.0)
        assert call is not None, number
        assert ended.acquire(timeout=5)
        assert call.outcome == 1
    lane.close()
    lane.join()
    assert "waking the loop failed" in caplog.text


def test_a_call_for_which_no_thread_can_be_started_fails_and_the_next_one_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane = Lane("x", time.monotonic)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        call = lane.submit(lambda: 1, 5.0)
        assert call is not None
        assert call.outcome == Failure(
            kind=FailureKind.FAILED, reason="no thread can be started for it: can't start new thread"
        )
    again = lane.submit(lambda: 1, 5.0)
    assert again is not None
    while not again.done:
        time.sleep(0.001)
    assert again.outcome == 1
    lane.close()
