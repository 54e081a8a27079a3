"""A lane of a served instance: one thread, so that a plugin may keep what belongs to one, and one call at a time."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

_T = TypeVar("_T")


class Lane(ThreadPoolExecutor):
    """A daemon thread: a call that never ends does not keep the process from termination.

    It is a pool by its type alone: gRPC runs the calls of a method in a pool that is given for it, and takes no other.
    """

    def __init__(self, name: str) -> None:
        super().__init__(1)
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, function: Callable[..., _T], /, *args: Any, **kwargs: Any) -> "Future[_T]":
        """Call the function when those before it have ended. One whose future is cancelled before is never called;
        of one that is cancelled later nobody waits for the answer.
        """
        future: Future[_T] = Future()
        self._jobs.put((future, partial(function, *args, **kwargs)))
        return future

    @property
    def is_here(self) -> bool:
        """Whether the caller is in the lane's own thread."""
        return threading.current_thread() is self._thread

    def close(self, timeout_seconds: float) -> None:
        """End the thread after the calls that were submitted, and wait for that, but not longer than this."""
        self._jobs.put(None)
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, function = job
            if not future.cancelled():
                _settle(future, function)
            del job, future, function  # they hold a message, which may be large


def _settle(future: "Future[_T]", function: Callable[[], _T]) -> None:
    try:
        answer = function()
    except BaseException as error:
        if future.set_running_or_notify_cancel():
            future.set_exception(error)
    else:
        if future.set_running_or_notify_cancel():
            future.set_result(answer)
