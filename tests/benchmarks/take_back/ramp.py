"""A ramp of online memory through what is lent, while containers of several sizes come and go."""

import json
import time
from dataclasses import asdict
from pathlib import Path

from tests.benchmarks.take_back.facts import containers_of, events_of
from tests.benchmarks.take_back.load import LENT_MB, Load, ramps
from tests.benchmarks.take_back.report import Run
from tests.benchmarks.take_back.sampling import Sampler
from tests.e2e.yarn.application import containers_ended, containers_running, events
from tests.e2e.yarn.cluster import Cluster
from tests.e2e.yarn.fallow_process import MIB, Fallow, spec_of
from tests.e2e.yarn.host_memory import HostMemory
from tests.e2e.yarn.rest import wait_for

PEAK_BYTES = 3072 * MIB  # what is left is enough for the application masters
PLATEAUS = ((90, 20), (0, 20))  # seconds at the peak and at the bottom: a take-back has its time, and is cancelled
KILL_EVERY_SECONDS = 20
# For each application: the MB of its containers, how many at once, and for how many seconds each runs.
APPLICATIONS = ((1024, 1, "60-300"), (512, 2, "20-120"), (256, 4, "5-40"))
ENDLESS = 100_000


def run(cluster: Cluster, folder: Path, seconds: float, blast_percent: int, *, kills: bool) -> Run:
    """The ramp for this long on a cluster of one node; with `kills`, its ResourceManager dies again and again."""
    with Fallow(folder, {"real": spec_of(cluster.rm)}, cpu_reserved_milli=0, memory_limit_mb=1 << 20) as fallow:
        take_back = {"mode": "enforce", "after": "2s", "notice": "60s", "blastRadius": blast_percent}
        capacity = {"cpu": {"watermark": "95%"}, "memory": HostMemory(LENT_MB, slack_mb=0).capacity()}
        fallow.add("fallow.yaml", takeBack=take_back, capacity=capacity)
        fallow.start()
        wait_for(lambda: bool(fallow.in_force()), 60, "the first report")
        jobs = [
            cluster.submit(ENDLESS, memory_mb, 1, f"exec sleep $(shuf -n1 -i {running})", at_once=at_once)
            for memory_mb, at_once, running in APPLICATIONS
        ]
        wait_for(lambda: all(map(events, jobs)), 90, "the application masters")
        wait_for(lambda: any(map(containers_running, jobs)), 90, "a container")
        began = time.time()
        with Sampler(cluster, fallow) as sampler, Load(ramps(PEAK_BYTES, PLATEAUS)):
            while (left := began + seconds - time.time()) > 0:
                if kills:
                    cluster.kill("rm")
                    killed = time.time()
                    cluster.launch("rm")
                    cluster.wait_ready()
                    left = min(left, killed + KILL_EVERY_SECONDS - time.time())
                time.sleep(max(left, 0))
        samples = sampler.samples
        (folder / "samples.json").write_text("\n".join(json.dumps(asdict(sample)) for sample in samples))
        told = [end for job in jobs for end in containers_ended(job)]
        happened = [event for event in events_of(fallow.log.read_text().splitlines()) if event.at >= began]
        return Run(
            samples=samples,
            containers=containers_of(cluster.rm.log.read_text(errors="replace").splitlines(), told),
            events=happened,
            blast_percent=blast_percent,
            began=began,
        )
