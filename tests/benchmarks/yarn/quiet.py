"""Thousands of quiet nodes read back. `python -m tests.benchmarks.yarn.quiet` is the plugin; its spec is on stdin.

Each line after it asks for reports: how many, and over how many seconds. The answer is what they cost.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.fleet import table
from tests.benchmarks.fleet.cluster import HEARTBEAT_SECONDS, Fleet, instance
from tests.benchmarks.fleet.sending import HOST, TIMEOUT_SECONDS
from tests.e2e.yarn.jars import Jars

from fallow_hookspecs import Node

REPORT_INTERVAL_SECONDS = 10
READS = 10
MOST_PLUGIN_SHARE, MOST_MANAGER_SHARE, MOST_RESIDENT_MIB = 0.05, 0.02, 100
MODULE = "tests.benchmarks.yarn.quiet"


def run(jars: Jars, folder: Path, nodes: int, rounds: int) -> list[str]:
    """Print what each report costs, from rounds of heartbeats with reports and without, in turn; the limits missed."""
    with Fleet(jars, folder, nodes, containers_each=0) as fleet:
        command = [sys.executable, "-m", MODULE]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as plugin:
            try:
                _ask(plugin, fleet.spec())
                _ask(plugin, {"reads": 3, "seconds": 0})  # the first report reads every node
                found = [_round(fleet, plugin) for _ in range(rounds)]
            finally:
                plugin.kill()
    ours = median(ours for ours, _, _ in found) / REPORT_INTERVAL_SECONDS
    theirs = median(theirs for _, theirs, _ in found) / REPORT_INTERVAL_SECONDS
    resident = max(resident for _, _, resident in found)
    results = [
        (
            "plugin, share of a core",
            f"{100 * ours:.2f} %",
            f"{100 * MOST_PLUGIN_SHARE:.0f} %",
            ours <= MOST_PLUGIN_SHARE,
        ),
        (
            "ResourceManager, share of a core",
            f"{100 * theirs:.2f} %",
            f"{100 * MOST_MANAGER_SHARE:.0f} %",
            theirs <= MOST_MANAGER_SHARE,
        ),
        (
            "plugin's process, resident",
            f"{resident:.0f} MiB",
            f"{MOST_RESIDENT_MIB} MiB",
            resident <= MOST_RESIDENT_MIB,
        ),
    ]
    title = f"{nodes} quiet nodes read back every {REPORT_INTERVAL_SECONDS} s, medians of {rounds}"
    table.show(title, ["", "found", "at most"], [row[:3] for row in results])
    return [f"{what}: {value}, expected {most} at most" for what, value, most, good in results if not good]


def _round(fleet: Fleet, plugin: "subprocess.Popen[str]") -> tuple[float, float, float]:
    """CPU seconds a report of the plugin and of the ResourceManager, and the plugin's memory in MiB."""
    idle = fleet.idle_share()
    began, before = time.monotonic(), fleet.cpu_seconds()
    answer = _ask(plugin, {"reads": READS, "seconds": HEARTBEAT_SECONDS})
    theirs = fleet.cpu_seconds() - before - idle * (time.monotonic() - began)
    return answer["cpu"] / READS, theirs / READS, answer["resident_mib"]


def _ask(plugin: "subprocess.Popen[str]", question: object) -> Any:
    assert plugin.stdin is not None
    assert plugin.stdout is not None
    plugin.stdin.write(json.dumps(question) + "\n")
    plugin.stdin.flush()
    return json.loads(plugin.stdout.readline())


def main() -> None:
    """Be a plugin that is asked for reports."""
    plugin, nodes = instance(json.loads(sys.stdin.readline())), (Node(name=HOST),)
    print("null", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        began, cpu = time.monotonic(), time.process_time()
        for i in range(asked["reads"]):
            plugin.report_capacity(nodes, (), TIMEOUT_SECONDS)
            time.sleep(max(0.0, began + (i + 1) * asked["seconds"] / asked["reads"] - time.monotonic()))
        print(json.dumps({"cpu": time.process_time() - cpu, "resident_mib": _resident_mib()}), flush=True)


def _resident_mib() -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
