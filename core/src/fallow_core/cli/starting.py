"""The error of a process or thread that cannot be started."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from fallow_core.errors import FallowError

LIMIT = (
    "this user or container may not start more processes and threads: end some, or raise the limit "
    "(ulimit -u, TasksMax= of systemd, pids.max of the container)"
)
ADVICE = {
    errno.EAGAIN: LIMIT,
    errno.ENOMEM: "this host or container has too little free memory",
    errno.EACCES: "this user may not execute it",
    errno.EPERM: "this user may not execute it",
}


@contextmanager
def starting(what: str) -> Iterator[None]:
    """Start something inside; whatever that raises becomes one message: what failed, and what to do.

    :raises FallowError: it cannot be started.
    """
    try:
        yield
    except Exception as error:
        thread = isinstance(error, RuntimeError) and "new thread" in str(error)
        code = errno.EAGAIN if thread else getattr(error, "errno", None)
        advice = f"; {ADVICE[code]}" if code in ADVICE else ""
        raise FallowError(f"cannot start {what}: {type(error).__name__}: {error}{advice}") from error
