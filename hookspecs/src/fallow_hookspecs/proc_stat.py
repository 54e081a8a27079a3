"""`/proc/PID/stat`, parsed: which process this is, whose child, in which session, and since when it runs.

The fields are those of proc_pid_stat(5). The name of the command may itself contain spaces, parentheses and line ends,
so splitting the line at spaces gives wrong fields.
"""

import os
from typing import NamedTuple

from fallow_hookspecs.tasks import Process

_READ_BYTES = 4096


class ProcStat(NamedTuple):
    """One process. Times are in clock ticks (`os.sysconf("SC_CLK_TCK")` a second), `start_ticks` since boot.

    `command`: at most 15 bytes of the file name. `state`: one letter, such as `R` or `Z`. `reaped_*`: the CPU time of
    descendants that it has waited for. `threads` is 0 or 1 if it has only its first thread.
    """

    pid: int
    command: bytes
    state: str
    parent_pid: int
    session: int
    user_ticks: int
    system_ticks: int
    reaped_user_ticks: int
    reaped_system_ticks: int
    threads: int
    start_ticks: int

    @property
    def process(self) -> Process:
        """The process, which a later one with the same pid is not equal to."""
        return Process(self.pid, self.start_ticks)

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it runs any more and only its parent has not waited for it yet."""
        return self.state in ("Z", "X") and self.threads <= 1  # the first thread may end before the others


def parse_stat(raw: bytes) -> ProcStat:
    """The content of a `stat` file.

    :raises ValueError: no kernel writes it so; the text says what was expected and found.
    """
    opens, closes = raw.find(b"("), raw.rfind(b")")
    fields = raw[closes + 1 :].split(None, 20)
    if not 0 < opens < closes or len(fields) < 21 or not raw.endswith(b"\n"):
        raise _unexpected("a name in parentheses and more than 20 fields behind it", raw)
    numbers = [raw[: opens - 1], fields[1], fields[3], *fields[11:15], fields[17], fields[19]]
    if not all(map(bytes.isdigit, numbers)):
        raise _unexpected("whole numbers", b" ".join(numbers))
    pid, *others = map(int, numbers)
    return ProcStat(pid, raw[opens + 1 : closes], fields[0].decode("ascii", "replace"), *others)


def read_stat(pid: int, proc_root: str | os.PathLike[str] = "/proc") -> ProcStat | None:
    """A process of this host; `None` if it has ended, or is hidden from this user.

    :raises OSError: the file cannot be read for another reason.
    :raises ValueError: as `parse_stat`.
    """
    try:
        file = os.open(f"{os.fspath(proc_root)}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return parse_stat(os.read(file, _READ_BYTES))
        finally:
            os.close(file)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def _unexpected(expected: str, found: bytes) -> ValueError:
    text = found[:80].decode(errors="backslashreplace")
    return ValueError(f"expected {expected}, found {text!r}")
