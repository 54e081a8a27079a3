import threading
from collections.abc import Callable

import pytest

from fallow_yarn.errors import CredentialsError, DeadlineError
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.security.bounded_call import BoundedCalls


def test_what_is_called_aside_returns_and_raises_as_ever() -> None:
    calls = BoundedCalls()
    assert calls.call(lambda: 7, Deadline.after(10), "late") == 7
    with pytest.raises(ZeroDivisionError):
        calls.call(lambda: 1 // 0, Deadline.after(10), "late")


def test_while_a_call_hangs_the_next_ones_end_in_time_and_start_nothing() -> None:
    calls, free, begun = BoundedCalls(), threading.Event(), list[str]()

    def hanging(name: str) -> Callable[[], None]:
        def hang() -> None:
            begun.append(name)
            free.wait(10)

        return hang

    for name in ("first", "second", "third"):
        with pytest.raises(DeadlineError, match="late"):
            calls.call(hanging(name), Deadline.after(0.05), "late")
    assert begun == ["first"]
    free.set()
    calls.call(hanging("fourth"), Deadline.after(10), "late")
    assert begun == ["first", "fourth"]


def test_a_call_without_a_thread_fails_and_the_next_one_does_not_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    calls = BoundedCalls()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fails)
        with pytest.raises(CredentialsError, match="no thread to ask the KDC"):
            calls.call(lambda: 1, Deadline.after(10), "late")
    assert calls.call(lambda: 2, Deadline.after(10), "late") == 2
