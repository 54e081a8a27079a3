"""What the plugin needs in memory. `python -m tests.benchmarks.fleet.memory` is such a plugin; its spec is on stdin."""

import json
import subprocess
import sys
from pathlib import Path
from random import Random

from tests.benchmarks.fleet import sending, table
from tests.benchmarks.fleet.cluster import Fleet, instance
from tests.benchmarks.fleet.sending import HOST, TIMEOUT_SECONDS

from fallow_hookspecs import Node


def run(fleet: Fleet) -> None:
    """Print the memory of a plugin at work, above that of one that has done nothing yet."""
    command = [sys.executable, "-m", "tests.benchmarks.fleet.memory"]
    done = subprocess.run(command, input=json.dumps(fleet.spec()), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    steps: list[tuple[str, int, int]] = json.loads(done.stdout)
    idle = steps[0][1]
    table.show(
        f"Memory of the plugin with {fleet.nodes} nodes; idle it is {idle / 1024:.0f} MiB",
        ["after", "above idle", "at most so far"],
        [[name, f"{(now - idle) / 1024:.1f} MiB", f"{(most - idle) / 1024:.1f} MiB"] for name, now, most in steps[1:]],
    )


def main() -> None:
    """Do what a plugin does, and print its memory in KiB, now and at most, after each step."""
    spec = json.load(sys.stdin)
    plugin, nodes = instance(spec), (Node(name=HOST),)
    steps = [("idle", *_memory_kib())]

    def report(name: str) -> None:
        plugin.report_capacity(nodes, (), TIMEOUT_SECONDS)
        steps.append((name, *_memory_kib()))

    report("the first report (every node is read)")
    report("the second report")
    report("the third report")
    sizes = sending.varied(spec["nodeManagers"], Random(2))
    sending.by_plugin(plugin, sizes)()
    steps.append(("all sizes changed", *_memory_kib()))
    for i in range(5):
        report(f"report {i + 1} since then")
    plugin.close()
    print(json.dumps(steps))


def _memory_kib() -> tuple[int, int]:
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmRSS"].split()[0]), int(lines["VmHWM"].split()[0])


if __name__ == "__main__":
    main()
