"""Sends signals to processes without the risk that a reused pid gets them.

A pidfd is opened first, then the start time is checked. If it is the expected one, the pidfd belongs to that process,
so no other process can get the signal.
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
    """How many processes of one task were signalled, were gone already, or could not be signalled.

    Reasons for `refused` are for example a process of another user, or a kernel without pidfds (before Linux 5.3).
    """

    sent: int = 0
    gone: int = 0
    refused: int = 0


def terminate(processes: Iterable[Process], force: bool, proc_root: Path = PROC_ROOT) -> Signalled:
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
