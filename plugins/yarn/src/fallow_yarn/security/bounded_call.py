"""Makes calls that cannot be interrupted, such as those to a KDC, and waits for them until a deadline only."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from fallow_yarn.errors import CredentialsError, DeadlineError
from fallow_yarn.net.deadline import Deadline

_T = TypeVar("_T")


class _Call(Generic[_T]):
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


class BoundedCalls:
    """Makes each call in a thread of its own, one at a time: if one hangs, the next ones wait until their deadline."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hanging: threading.Event | None = None

    def call(self, function: Callable[[], _T], deadline: Deadline, late: str) -> _T:
        """The function's result. Raises what it raises.

        :raises DeadlineError: it takes too long; with the text `late`.
        :raises CredentialsError: no thread can be started.
        """
        job = _Call(function)
        left = max(deadline.left_seconds(), 0)
        if not self._lock.acquire(timeout=left):
            raise DeadlineError(late)
        try:
            if self._hanging is not None and not self._hanging.wait(max(deadline.left_seconds(), 0)):
                raise DeadlineError(late)
            try:
                threading.Thread(target=job.run, name="kerberos", daemon=True).start()
            except RuntimeError as error:  # the limit of threads is reached
                raise CredentialsError(f"no thread to ask the KDC: {error}") from None
            self._hanging = job.done
        finally:
            self._lock.release()
        if not job.done.wait(max(deadline.left_seconds(), 0)):
            raise DeadlineError(late)
        return job.outcome()
