"""`fallow run` for the demo: as if only the demo's own processes ran on this host.

CPU in use is the demo's, out of all CPUs of this host, so that other processes do not disturb it. Everything else is
the same as in `fallow run`.

    python -m fallow_core.cli.demo.host FOLDER PID
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from fallow_core import log
from fallow_core.cli.run import load_config
from fallow_core.cli.system_errors import explained
from fallow_core.errors import FallowError
from fallow_core.node.host_sampler import HostSampler
from fallow_core.node.process_tree import batch_processes
from fallow_core.node.procfs import CpuCounters, ProcessStat
from fallow_core.runtime.standalone import Standalone

PR_SET_PDEATHSIG = 1


class OwnCpu:
    """CPU counters of a process and all its descendants."""

    def __init__(self, root_pid: int) -> None:
        self._root_pid = root_pid
        self._ticks = 0

    def __call__(self, processes: Mapping[int, ProcessStat]) -> CpuCounters:
        """The counters now. They may stand still: the use of an ended process is lost if nobody waited for it."""
        root = processes.get(self._root_pid)
        tree = batch_processes(processes, () if root is None else (root.process,), frozenset())
        self._ticks = max(self._ticks, sum(processes[process.pid].total_ticks for process in tree))
        return CpuCounters(busy_ticks=self._ticks, online_cpus=os.cpu_count() or 1)


def lend(folder: Path, cpu: Callable[[Mapping[int, ProcessStat]], CpuCounters]) -> None:
    """Run `fallow run` with the configuration in a folder and these CPU counters, until SIGTERM.

    :raises FallowError: it cannot run.
    """
    config = load_config(folder)
    log.set_up(config.log_level)
    fallow = Standalone(config)
    fallow.sampler = HostSampler(cpu=cpu)
    fallow.run()


def main(folder: str, root_pid: str) -> int:
    """Run Fallow until SIGTERM, or until the demo's process ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    try:
        lend(Path(folder), OwnCpu(int(root_pid)))
    except (FallowError, OSError, RuntimeError) as error:
        text = str(error) if isinstance(error, FallowError) else explained(error)
        if text is None:
            raise
        print(text, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
