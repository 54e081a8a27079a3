"""Ends all processes of an embedded YARN when its owner ends, even if it is killed. A separate program; see `main`.

It searches a mark in the initial environments of processes. A container may have cleared its own environment: so the
descendants of a marked process, and the processes of its session, end too.
"""

import os
import signal
import sys
import time
from contextlib import suppress

MARK = "FALLOW_EMBEDDED_YARN"
PAUSE_SECONDS = 0.01
MOST_SECONDS = 10.0


def marked(folder: str) -> set[int]:
    """The pids of the processes that bear the mark of a folder, are below one, or in a session that one leads."""
    mark = f"{MARK}={folder}".encode()
    parents: dict[int, int] = {}
    sessions: dict[int, int] = {}
    found: set[int] = set()
    for name in os.listdir("/proc"):  # noqa: PTH208 - this program starts in no time
        if not name.isdigit():
            continue
        pid = int(name)
        with suppress(OSError, ValueError, IndexError):
            stat = _read(pid, "stat")
            state, parent, _, session = stat[stat.rindex(b")") + 2 :].split()[:4]
            if state == b"Z":
                continue
            parents[pid], sessions[pid] = int(parent), int(session)
            if mark in _read(pid, "environ").split(b"\0"):
                found.add(pid)
    size = 0
    while len(found) > size:
        size = len(found)
        found |= {pid for pid, parent in parents.items() if parent in found or sessions[pid] in found}
    return found - {os.getpid()}


def end_all(folder: str) -> bool:
    """Kill them until none is left; whether that worked."""
    end = time.monotonic() + MOST_SECONDS
    while pids := marked(folder):
        if time.monotonic() > end:
            return False
        for pid in pids:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_SECONDS)
    return True


def main() -> int:
    """`process_guard.py FOLDER`: wait for the end of standard input, then kill all processes with the mark."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 1):
        pass
    return 0 if end_all(sys.argv[1]) else 1


def _read(pid: int, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb") as file:  # noqa: PTH123 - as above
        return file.read()


if __name__ == "__main__":
    sys.exit(main())
