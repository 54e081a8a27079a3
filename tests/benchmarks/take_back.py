"""What an oscillating load costs batch: with take-back, and with a Fallow that only terminates tasks by signal.

A real ResourceManager and NodeManager, a queue of jobs, and an online load that takes memory and gives it back. Both
runs are the same but for how overdraft is terminated. Printed for each: containers lost, work lost, and how many of the
losses an application is charged with as a failure (any exit code but those of the scheduler's own kills).

    tox -e bench -- take_back [--seconds 600] [--period 150]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.yarn.application import Application, containers_ended, events
from tests.e2e.yarn.cluster import Cluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.fallow_process import MIB, TIED, Fallow, spec_of
from tests.e2e.yarn.jars import cache_folder, fetch
from tests.e2e.yarn.rest import wait_for

from fallow_core.node.procfs import PROC_ROOT, read_memory

RELEASE = "3.5.0"
JOBS, CONTAINERS, CONTAINER_MB, WORK_SECONDS = 3, 4, 256, 45
LENT_MB, LOAD_MB = 4096, 2560
SCHEDULERS_OWN = {-100, -102, -106}  # lost node, preempted, ended by the ResourceManager: never charged

VARIANTS: Mapping[str, Mapping[str, object]] = {
    "take-back": {"takeBack": {"mode": "enforce", "after": "2s", "notice": "60s", "blastRadius": 100}},
    "signals": {
        "takeBack": {"blastRadius": 100},
        "qos": {"overdraftEvict": {"mode": "enforce", "after": "2s", "coolDown": "5s"}},
    },
}


class Load:
    """A process that holds memory for the first 60 % of each period."""

    def __init__(self, period_seconds: float) -> None:
        self._period = period_seconds
        self._began = time.monotonic()
        self._process: subprocess.Popen[bytes] | None = None

    def step(self) -> bool:
        """Take or give back memory as it is time; whether it is held."""
        held = (time.monotonic() - self._began) % self._period < 0.6 * self._period
        if held and self._process is None:
            code = f"import time; held = bytearray({LOAD_MB * MIB}); time.sleep(3600)"
            self._process = subprocess.Popen([*TIED, sys.executable, "-c", code])
        elif not held:
            self.stop()
        return held

    def stop(self) -> None:
        """Give the memory back."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def configure(fallow: Fallow, more: Mapping[str, object]) -> None:
    """Lend about LENT_MB of what the host has now, so that the load makes an overdraft."""
    memory = read_memory(PROC_ROOT)
    used = memory.total_bytes - memory.available_bytes
    watermark = -(-(used + LENT_MB * MIB) * 100 // memory.total_bytes)
    file = fallow.folder / "fallow.yaml"
    core = json.loads(file.read_text())
    core["capacity"]["memory"] = {"watermark": watermark}
    file.write_text(json.dumps({**core, **more}))


def run(cluster: Cluster, folder: Path, more: Mapping[str, object], seconds: float, period: float) -> dict[str, object]:
    """One variant for so long; what became of the containers."""
    jobs: list[Application] = []
    with Fallow(folder, {"real": spec_of(cluster.rm)}, cpu_reserved_milli=0, memory_limit_mb=1 << 20) as fallow:
        configure(fallow, more)
        fallow.start()
        wait_for(lambda: bool(fallow.in_force()), 60, "the first report")
        load, overdraft_mb_seconds = Load(period), 0.0
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                running = [job for job in jobs if not any(event.kind == "finished" for event in events(job))]
                if len(running) < JOBS and len(jobs) < JOBS + (seconds - (end - time.monotonic())) / 5:
                    jobs.append(cluster.submit(CONTAINERS, CONTAINER_MB, 1, f"sleep {WORK_SECONDS}"))
                load.step()
                time.sleep(1)
                node = fallow.status()["nodes"][0]
                overdraft_mb_seconds += node["memory"]["overdraft"] / MIB
        finally:
            load.stop()
        (folder / "explain.txt").write_text(fallow.call("explain").stdout)
    return summary(jobs) | {"overdraft_mb_seconds": round(overdraft_mb_seconds)}


def summary(jobs: list[Application]) -> dict[str, object]:
    """What the application masters were told of all their containers."""
    lost: list[tuple[int, float]] = []
    done = 0
    for job in jobs:
        begun = {event.subject: event.seconds for event in events(job) if event.kind == "started"}
        for ended in containers_ended(job):
            if ended.exit_code == 0:
                done += 1
            else:
                lost.append((ended.exit_code, ended.seconds - begun.get(ended.container, ended.seconds)))
    return {
        "jobs": len(jobs),
        "containers_done": done,
        "containers_lost": len(lost),
        "work_lost_container_seconds": round(sum(seconds for _, seconds in lost)),
        "charged_as_failures": sum(code not in SCHEDULERS_OWN for code, _ in lost),
        "exit_codes": dict(Counter(str(code) for code, _ in lost)),
    }


def main() -> None:
    """Run both variants, one after the other, on a cluster of its own each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--period", type=float, default=150)
    arguments = parser.parse_args()
    jars = fetch(RELEASE, cache_folder())
    memory_alone = {"resource-calculator": "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"}
    setup = Setup(node_managers=1, memory_mb=LENT_MB, vcores=100, heartbeat_ms=1000, capacity=memory_alone)
    for name, more in VARIANTS.items():
        with tempfile.TemporaryDirectory(prefix="bench-") as work, Cluster(jars, Path(work) / "yarn", setup) as cluster:
            found = run(cluster, Path(work) / name, more, arguments.seconds, arguments.period)
            print(name, json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
