import threading
from collections.abc import Callable

import pytest

from fallow_yarn.errors import DeadlineError
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
