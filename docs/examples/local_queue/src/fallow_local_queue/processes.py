"""Processes of this host that cannot be mistaken for others: by process id and time of start."""

from collections.abc import Iterator
from pathlib import Path

from fallow_hookspecs import Process

PROC = Path("/proc")


def read(pid: int) -> tuple[Process, int] | None:
    """A process and the session it is in; `None` if it has gone. See proc_pid_stat(5)."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the command before may hold blanks and brackets
    return Process(pid, int(fields[19])), int(fields[3])


def of_session(leader: int) -> Iterator[Process]:
    """All processes of the session that a process leads."""
    for entry in PROC.iterdir():
        found = read(int(entry.name)) if entry.name.isdigit() else None
        if found is not None and found[1] == leader:
            yield found[0]
