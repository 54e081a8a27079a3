"""What it costs to read back nodes that nobody changes."""

import time
from statistics import median

from tests.benchmarks.fleet import table
from tests.benchmarks.fleet.cluster import HEARTBEAT_SECONDS, Fleet
from tests.benchmarks.fleet.sending import HOST, TIMEOUT_SECONDS

from fallow_hookspecs import Node

READS = 15
REPORT_INTERVAL_SECONDS = 10


def run(fleet: Fleet, pairs: int) -> None:
    """Print the ResourceManager's CPU of a report, from rounds of heartbeats with reports and without, in turn."""
    plugin, nodes = fleet.instance(), (Node(name=HOST),)
    for _ in range(READS):
        rows = plugin.report_capacity(nodes, (), TIMEOUT_SECONDS).rows
    assert len(rows) == fleet.nodes
    found: list[tuple[float, float]] = []
    for _ in range(pairs):
        idle = fleet.idle_share()
        began, before, took = time.monotonic(), fleet.cpu_seconds(), 0.0
        for i in range(READS):
            asked = time.monotonic()
            plugin.report_capacity(nodes, (), TIMEOUT_SECONDS)
            took += time.monotonic() - asked
            time.sleep(max(0.0, began + (i + 1) * HEARTBEAT_SECONDS / READS - time.monotonic()))
        cpu = fleet.cpu_seconds() - before - idle * (time.monotonic() - began)
        found.append((cpu / READS, took / READS))
    plugin.close()
    found.append((median(cpu for cpu, _ in found), median(took for _, took in found)))
    names = [f"round {i + 1}" for i in range(pairs)] + ["median"]
    table.show(
        f"Read back {fleet.nodes} quiet nodes",
        ["", "RM CPU a report", f"share of a core, every {REPORT_INTERVAL_SECONDS} s", "report takes"],
        [
            [name, f"{1000 * cpu:.0f} ms", f"{100 * cpu / REPORT_INTERVAL_SECONDS:.2f} %", f"{1000 * took:.0f} ms"]
            for name, (cpu, took) in zip(names, found, strict=True)
        ],
    )
