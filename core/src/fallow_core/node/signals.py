"""Signals to processes that cannot be mistaken for others.

A pidfd is opened first, then the start time is checked: if it is still the one that was seen, the pidfd is of that
process, and the signal can hit no other, whatever becomes of the pid.
"""

import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fallow_core.errors import SampleError
from fallow_core.node.procfs import PROC_ROOT, read_process
from fallow_hookspecs import Process


@dataclass(frozen=True, slots=True, kw_only=True)
class Signalled:
    """What became of the processes of one task: how many were signalled, had gone already, or cannot be signalled.

    `refused` is for any reason, such as another user's process, or a kernel without pidfds (before Linux 5.3).
    """

    sent: int = 0
    gone: int = 0
    refused: int = 0


def end(processes: Iterable[Process], force: bool, proc_root: Path = PROC_ROOT) -> Signalled:
    """Send each process SIGTERM, or SIGKILL with `force`; never to init or to this process."""
    number = signal.SIGKILL if force else signal.SIGTERM
    counts = {"sent": 0, "gone": 0, "refused": 0}
    for process in processes:
        if process.pid > 1 and process.pid != os.getpid():
            counts[_signal(process, number, proc_root)] += 1
    return Signalled(**counts)


def _signal(process: Process, number: signal.Signals, proc_root: Path) -> str:
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return "gone"
    except OSError:
        return "refused"
    try:
        stat = read_process(proc_root, process.pid)
        if stat is None or stat.ended or stat.process != process:
            return "gone"
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return "gone"
    except (OSError, SampleError):
        return "refused"
    finally:
        os.close(descriptor)
    return "sent"
