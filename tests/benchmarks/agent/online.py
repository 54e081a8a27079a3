"""The latency of an online request loop without batch, beside batch that nobody manages, and beside Fallow's.

A request comes every few milliseconds, whatever became of the one before, and needs a fixed amount of work.
"""

import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from tests.benchmarks.agent.stage import ACCOUNTING, CONTROLLERS, Stage, until

QOS = {
    **{name: {"mode": "enforce"} for name in ("identity", "cpuSuppress", "cgroupReconcile")},
    "onExit": "release",
}
WATERMARK = 0.95
EVERY_SECONDS, WORK = 0.008, 20_000
SETTLE_SECONDS = 2.5
CPUS = os.cpu_count() or 1
MODES = ("no batch", "unmanaged", "fallow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One mode of one round: the 99th percentile of latency, and how much of the CPU that was left batch used."""

    p99_milliseconds: float
    batch_share: float


def rounds(count: int, seconds: float) -> dict[str, list[Round]]:
    """So many rounds of all modes, one after the other."""
    found: dict[str, list[Round]] = {mode: [] for mode in MODES}
    capacity = {"cpu": {"watermark": f"{WATERMARK:.0%}"}}
    with tempfile.TemporaryDirectory() as name, Stage(Path(name), qos=QOS, capacity=capacity) as stage:
        hogs = [stage.add(f"hog{i}", sys.executable, "-c", "while True: pass") for i in range(2 * CPUS)]
        stage.put(0, "online")
        for mode in MODES * count:
            for hog in hogs:
                hog.send_signal(signal.SIGSTOP if mode == "no batch" else signal.SIGCONT)
            if mode == "fallow":
                stage.start()
                until(lambda: int(stage.read("", "cpu.cfs_quota_us")) > 0, "batch is limited")
            time.sleep(SETTLE_SECONDS)
            found[mode].append(_measured(stage, seconds))
            stage.stop()
        for root in CONTROLLERS:
            (root / "cgroup.procs").write_text("0")
    return found


def ratios(found: dict[str, list[Round]]) -> dict[str, float]:
    """The median over the rounds of each mode's p99 in that of the same round without batch."""
    base = found[MODES[0]]
    return {
        mode: median(each.p99_milliseconds / alone.p99_milliseconds for each, alone in zip(of_mode, base, strict=True))
        for mode, of_mode in found.items()
    }


def _measured(stage: Stage, seconds: float) -> Round:
    began, batch, total = time.monotonic(), _used(stage.group), _used(stage.top)
    latencies, due = [], began
    while (due := due + EVERY_SECONDS) < began + seconds:
        time.sleep(max(0.0, due - time.monotonic()))
        for _ in range(WORK):
            pass
        latencies.append((time.monotonic() - due) * 1000)
    took = time.monotonic() - began
    batch, total = _used(stage.group) - batch, _used(stage.top) - total
    left = CPUS * WATERMARK * took - (total - batch)
    return Round(p99_milliseconds=quantiles(latencies, n=100)[98], batch_share=batch / left if left > 0 else 0.0)


def _used(group: str) -> float:
    """CPU seconds that a group has used."""
    return int((ACCOUNTING / group / "cpuacct.usage").read_text()) / 1e9
