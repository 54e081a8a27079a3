"""`fallow run` on the processes of a benchmark, beside an online load that exists in numbers only.

A real load gets only its share of a busy machine, and then a step is none. So CPU in use is that of the benchmark's own
processes, and that of the load as its file says.

    python -m tests.benchmarks.simulated_load FOLDER PID
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from fallow_core.cli.demo.host import OwnCpu, lend
from fallow_core.node.procfs import TICKS_PER_SECOND, CpuCounters, ProcessStat

LOAD_FILE = "load.json"


class Load:
    """Keeps each CPU busy for some percent of the time, as a file in a folder says."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / LOAD_FILE
        self._write(0.0, time.monotonic(), 0)

    def set(self, percent: int) -> float:
        """From now on so busy; the moment that it is so."""
        now = time.monotonic()
        self._write(ticks(self._file, now), now, percent)
        return now

    def _write(self, ticks_before: float, since: float, percent: int) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps([ticks_before, since, percent]))
        new.replace(self._file)


def ticks(file: Path, now: float) -> float:
    """CPU that a load has used until now."""
    before, since, percent = json.loads(file.read_text())
    return float(before + (now - since) * TICKS_PER_SECOND * (os.cpu_count() or 1) * percent / 100)


class LoadedCpu:
    """CPU counters of the processes below one, and of the load."""

    def __init__(self, root_pid: int, file: Path) -> None:
        self._own = OwnCpu(root_pid)
        self._file = file

    def __call__(self, processes: Mapping[int, ProcessStat]) -> CpuCounters:
        """The counters at one pass."""
        own = self._own(processes)
        busy = own.busy_ticks + round(ticks(self._file, time.monotonic()))
        return CpuCounters(busy_ticks=busy, online_cpus=own.online_cpus)


def main(folder: str, root_pid: str) -> None:
    """Run Fallow until SIGTERM."""
    lend(Path(folder), LoadedCpu(int(root_pid), Path(folder) / LOAD_FILE))


if __name__ == "__main__":
    main(*sys.argv[1:])
