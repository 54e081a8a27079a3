"""A call that cannot be cut short, such as one to a KDC, without waiting for it beyond a deadline."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from fallow_yarn.errors import DeadlineError
from fallow_yarn.net.deadline import Deadline

_T = TypeVar("_T")


class _Job(Generic[_T]):
    def __init__(self, function: Callable[[], _T]) -> None:
        self._function = function
        self._result: list[_T] = []
        self._error: BaseException | None = None
        self.done = threading.Event()

    def run(self) -> None:
        try:
            self._result.append(self._function())
        except BaseException as error:
            self._error = error
        self.done.set()

    def outcome(self) -> _T:
        if self._error is not None:
            raise self._error
        return self._result[0]


class Aside:
    """Makes calls in threads of their own, one at a time: while one hangs, the next ones wait for it and not in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hanging: threading.Event | None = None

    def call(self, function: Callable[[], _T], deadline: Deadline, late: str) -> _T:
        """What the function returns or raises; a DeadlineError with the text `late` if that takes too long."""
        job = _Job(function)
        left = max(deadline.left_seconds(), 0)
        if not self._lock.acquire(timeout=left):
            raise DeadlineError(late)
        try:
            if self._hanging is not None and not self._hanging.wait(max(deadline.left_seconds(), 0)):
                raise DeadlineError(late)
            self._hanging = job.done
            threading.Thread(target=job.run, name="kerberos", daemon=True).start()
        finally:
            self._lock.release()
        if not job.done.wait(max(deadline.left_seconds(), 0)):
            raise DeadlineError(late)
        return job.outcome()
