"""Which values the kernel refuses for good, and when they are tried again."""

import errno
from collections.abc import Callable

from fallow_core.model.control_file import ControlFile

RETRY_SECONDS = 600.0
"""When a value that the kernel refused twice is tried again: after a change of the host that nobody announces."""
UNSUPPORTED = (errno.EINVAL, errno.ERANGE, errno.EOPNOTSUPP)


class Refusals:
    """What was refused, by group and file. A first refusal may be of the moment: another group had just been changed.
    The value is not looked at, since a limit is another one at each round.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._found: dict[tuple[str, ControlFile], tuple[int, float, str]] = {}

    def why(self, group: str, file: ControlFile) -> str:
        """Why a file is not written now; empty if it may be."""
        times, at, reason = self._found.get((group, file), (0, 0.0, ""))
        return reason if times > 1 and self._clock() - at < RETRY_SECONDS else ""

    def note(self, group: str, file: ControlFile, error: OSError, path: str) -> str:
        """Take a write that failed. Returns why; it is the same text for the second time."""
        if error.errno not in UNSUPPORTED:
            return f"{path}: {error.strerror}"
        times, _, _ = self._found.get((group, file), (0, 0.0, ""))
        reason = f"{path}: {error.strerror}; this kernel does not support it, and it is tried again every 10 minutes"
        self._found[group, file] = (times + 1, self._clock(), reason)
        return reason

    def taken(self, group: str, file: ControlFile) -> None:
        """Take a write that succeeded."""
        self._found.pop((group, file), None)

    def forget(self, group: str) -> None:
        """The group is gone, or was restored."""
        self._found = {key: found for key, found in self._found.items() if key[0] != group}
