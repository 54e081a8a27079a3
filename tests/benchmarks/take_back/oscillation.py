"""What an oscillating load costs batch: with take-back, and with a Fallow that only terminates tasks by signal.

A queue of jobs, and an online load that takes memory and gives it back. Both variants are the same but for how
overdraft is terminated. Measured: containers lost, work lost, and how many of the losses an application is charged with
as a failure (any exit code but those of the scheduler's own kills).
"""

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.benchmarks.take_back.load import LENT_MB, Load, oscillating
from tests.e2e.yarn.application import Application, containers_ended, events
from tests.e2e.yarn.cluster import Cluster
from tests.e2e.yarn.fallow_process import MIB, Fallow, spec_of
from tests.e2e.yarn.host_memory import HostMemory
from tests.e2e.yarn.rest import wait_for

JOBS, CONTAINERS, CONTAINER_MB, WORK_SECONDS = 3, 4, 256, 45
LOAD_MB = 2560
SCHEDULERS_OWN = {-100, -102, -106}  # lost node, preempted, ended by the ResourceManager: never charged

VARIANTS: Mapping[str, Mapping[str, object]] = {
    "take-back": {"takeBack": {"mode": "enforce", "after": "2s", "notice": "60s", "blastRadius": 100}},
    "signals": {
        "takeBack": {"blastRadius": 100},
        "qos": {"overdraftEvict": {"mode": "enforce", "after": "2s", "coolDown": "5s"}},
    },
}


def run(cluster: Cluster, folder: Path, more: Mapping[str, object], seconds: float, period: float) -> dict[str, object]:
    """One variant for so long; what became of the containers."""
    jobs: list[Application] = []
    with Fallow(folder, {"real": spec_of(cluster.rm)}, cpu_reserved_milli=0, memory_limit_mb=1 << 20) as fallow:
        capacity = {"cpu": {"watermark": "95%"}, "memory": HostMemory(LENT_MB, slack_mb=0).capacity()}
        fallow.add("fallow.yaml", capacity=capacity, **more)
        fallow.start()
        wait_for(lambda: bool(fallow.in_force()), 60, "the first report")
        overdraft_mb_seconds, refused = 0.0, 0
        end = time.monotonic() + seconds
        with Load(oscillating(LOAD_MB * MIB, period)):
            while time.monotonic() < end:
                running = [job for job in jobs if not any(event.kind == "finished" for event in events(job))]
                if len(running) < JOBS and len(jobs) < JOBS + (seconds - (end - time.monotonic())) / 5:
                    try:
                        jobs.append(cluster.submit(CONTAINERS, CONTAINER_MB, 1, f"sleep {WORK_SECONDS}"))
                    except OSError:  # the ResourceManager takes no application that no node has room for
                        refused += 1
                time.sleep(1)
                node = fallow.status()["nodes"][0]
                overdraft_mb_seconds += node["memory"]["overdraft"] / MIB
        (folder / "explain.txt").write_text(fallow.call("explain").stdout)
    return summary(jobs) | {"submissions_refused": refused, "overdraft_mb_seconds": round(overdraft_mb_seconds)}


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
