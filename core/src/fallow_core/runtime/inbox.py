"""How other threads and signal handlers reach the loop: what they want done is done in the loop's thread."""

import queue
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from fallow_core.errors import ControlError

ANSWER_SECONDS = 20.0

_T = TypeVar("_T")


class Inbox:
    """A queue of functions. `SimpleQueue.put` may interrupt itself, so a signal handler can use it, unlike an Event."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._closed = self._finished = False

    def wake(self) -> None:
        """Let the loop look at once; safe from any thread and from a signal handler."""
        self._jobs.put(_nothing)

    def close(self) -> None:
        """Refuse new requests. Those that were made before are still served."""
        self._closed = True
        self.wake()

    def finish(self) -> None:
        """Serve all that was asked before `close`: nobody waits for an answer that does not come."""
        self._finished = True
        while self.serve(0):
            pass

    def ask(self, function: Callable[[], _T]) -> _T:
        """Call a function in the loop's thread and wait for its result; called in any other thread.

        :raises ControlError: the loop is stopping, or did not come to it in time; then it is not called any more.
        """
        if self._closed:
            raise ControlError("Fallow is stopping")
        future: Future[_T] = Future()

        def job() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function())
                except BaseException as error:
                    future.set_exception(error)

        self._jobs.put(job)
        if self._finished and future.cancel():  # it came too late for `finish`
            raise ControlError("Fallow is stopping")
        try:
            return future.result(ANSWER_SECONDS)
        except TimeoutError:
            if not future.cancel():
                return future.result(ANSWER_SECONDS)  # it came to it just now
            raise ControlError(f"Fallow is busy or stopping: no answer within {ANSWER_SECONDS:.0f} s") from None

    def serve(self, seconds: float) -> bool:
        """Wait up to a time for something to come, and do all that is there; whether anything came."""
        try:
            self._jobs.get(timeout=seconds)()
        except queue.Empty:
            return False
        for _ in range(self._jobs.qsize()):
            self._jobs.get()()
        return True


def _nothing() -> None:
    pass
