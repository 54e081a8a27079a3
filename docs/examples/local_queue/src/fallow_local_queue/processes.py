"""The processes of a session."""

from collections.abc import Iterator
from pathlib import Path

from fallow_hookspecs import Process, read_stat


def of_session(leader: int) -> Iterator[Process]:
    """All processes of the session that a process leads."""
    for entry in Path("/proc").iterdir():
        stat = read_stat(int(entry.name)) if entry.name.isdigit() else None
        if stat is not None and stat.session == leader:
            yield stat.process
