"""Errors of the operating system that a user can do something about, as one text each."""

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
    errno.ENOSPC: "free some space, or write to another disk",
}


def explained(error: BaseException) -> str | None:
    """What happened and what to do; `None` for any other error."""
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return f"{error}; {LIMIT}"
    if isinstance(error, OSError) and error.errno in ADVICE:
        return f"{error}; {ADVICE[error.errno]}"
    return None


@contextmanager
def starting(what: str) -> Iterator[None]:
    """Start something inside; whatever that raises becomes one text.

    :raises FallowError: it cannot be started.
    """
    try:
        yield
    except Exception as error:
        raise FallowError(f"cannot start {what}: {explained(error) or f'{type(error).__name__}: {error}'}") from error
