"""`fallow run` on a host whose CPUs are always idle: python idle_host.py FOLDER."""

import os
import sys
from pathlib import Path

from fallow_core.cli.demo.host import lend
from fallow_core.node.procfs import CpuCounters

if __name__ == "__main__":
    lend(Path(sys.argv[1]), lambda _processes: CpuCounters(busy_ticks=0, online_cpus=os.cpu_count() or 1))
