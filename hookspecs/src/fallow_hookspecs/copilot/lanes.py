"""A lane of a served instance: one thread that makes one call at a time."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

_T = TypeVar("_T")


class Lane(ThreadPoolExecutor):
    """A daemon thread, so that a call that never ends does not keep the process alive.

    It has the type of a pool only because gRPC runs the calls of a method in a given pool.
    """

    def __init__(self, name: str) -> None:
        super().__init__(1)
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, function: Callable[..., _T], /, *args: Any, **kwargs: Any) -> "Future[_T]":
        """Call the function after those before it. If its future is cancelled before that, it is never called."""
        future: Future[_T] = Future()
        self._jobs.put((future, partial(function, *args, **kwargs)))
        return future

    @property
    def is_here(self) -> bool:
        """Whether the current thread is that of the lane."""
        return threading.current_thread() is self._thread

    def close(self, timeout_seconds: float) -> None:
        """Stop the thread after the submitted calls, and wait for that until the timeout."""
        self._jobs.put(None)
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, function = job
            if not future.cancelled():
                _settle(future, function)
            del job, future, function  # they refer to a message, which may be large


def _settle(future: "Future[_T]", function: Callable[[], _T]) -> None:
    try:
        answer = function()
    except BaseException as error:
        if future.set_running_or_notify_cancel():
            future.set_exception(error)
    else:
        if future.set_running_or_notify_cancel():
            future.set_result(answer)
