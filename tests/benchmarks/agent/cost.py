"""What the agent costs with tasks that sleep in groups of their own, on a quiet node."""

import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.benchmarks.agent.stage import cpu_seconds, staged

ENFORCED = {
    "cpuSuppress": {"mode": "enforce"},
    "cgroupReconcile": {"mode": "enforce"},
    "memoryEvict": {"mode": "enforce"},
}
SETTLE_SECONDS = 20.0
IMPORTS = "import fallow_core.cli.main, fallow_core.cli.agent, fallow_core.runtime.agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """`cpu_percent` of one core; memory in MiB. `descriptors`: open files."""

    tasks: int
    cpu_percent: float
    resident: float
    proportional: float
    descriptors: int


def cost(tasks: int, seconds: float) -> Cost:
    """Measure an agent with so many tasks for so long."""
    with tempfile.TemporaryDirectory() as name, staged(Path(name), tasks, qos=ENFORCED) as stage:
        return measured(stage.start(still=True), tasks, seconds)


def measured(pid: int, tasks: int, seconds: float) -> Cost:
    """What an agent that knows its tasks costs, once it has settled, for so long."""
    time.sleep(SETTLE_SECONDS)
    used, at = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    share = (cpu_seconds(pid) - used) / (time.monotonic() - at)
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    found = (re.findall(rf"^{key}: +(\d+)", rollup, re.MULTILINE) for key in ("Rss", "Pss"))
    resident, proportional = (int(kib[0]) / 1024 for kib in found)
    return Cost(
        tasks=tasks,
        cpu_percent=share * 100,
        resident=resident,
        proportional=proportional,
        descriptors=len(list(Path(f"/proc/{pid}/fd").iterdir())),
    )


def import_seconds(runs: int) -> float:
    """The median time that a process with all imports takes beyond one without."""

    def took(code: str) -> float:
        at = time.monotonic()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.monotonic() - at

    return median(took(IMPORTS) - took("pass") for _ in range(runs))
