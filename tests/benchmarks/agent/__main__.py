"""What the agent costs and how soon it acts, on this host: tox -e bench -- agent. Needs root and cgroup v1.

Without an argument all is measured; cost, memory, cpu, online and storm are its parts. It is meant for a host that does
nothing else: what else uses CPU is printed with each part.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles

from tests.benchmarks.agent import cost, cpu, memory, online, storm, yarn
from tests.benchmarks.agent.stage import CPU

RUNS = 20
ROUNDS, ROUND_SECONDS = 10, 5.0


def main() -> None:
    """Measure the parts that were asked for."""
    if os.geteuid() != 0 or not os.access(CPU / "cgroup.procs", os.W_OK):
        sys.exit("it needs root, and cgroup v1 with the CPU controller at /sys/fs/cgroup/cpu")
    for name in sys.argv[1:] or PARTS:
        print(f"{name}, foreign load {foreign_load():.2f} cores")
        PARTS[name]()


def foreign_load(seconds: float = 2.0) -> float:
    """Cores in use before anything is measured."""

    def used() -> float:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        return (sum(map(int, fields)) - int(fields[3]) - int(fields[4])) / os.sysconf("SC_CLK_TCK")

    before = used()
    time.sleep(seconds)
    return (used() - before) / seconds


def _cost() -> None:
    print(f"  imports: {cost.import_seconds(5):.2f} s")
    measured = [("small plugin", cost.cost, tasks) for tasks in (0, 300, 1000)]
    for plugin, measure, tasks in [*measured, ("YARN plugin", yarn.cost, 300)]:
        found = measure(tasks, 30.0)
        print(
            f"  {plugin}, {tasks:5} tasks: {found.cpu_percent:.2f} % of a core, {found.resident:.1f} MiB resident "
            f"({found.proportional:.1f} proportional), {found.descriptors} descriptors"
        )


def _memory() -> None:
    found = memory.reactions(RUNS)
    _show(found.seconds)
    print(f"  runs in which the threshold was not crossed: {found.missed}")


def _cpu() -> None:
    _show(cpu.reactions(RUNS))


def _online() -> None:
    found = online.rounds(ROUNDS, ROUND_SECONDS)
    for mode, ratio in online.ratios(found).items():
        p99 = median(each.p99_milliseconds for each in found[mode])
        share = median(each.batch_share for each in found[mode])
        print(f"  {mode:10} p99 {p99:6.2f} ms, {ratio:.2f} × without batch; batch used {share:.0%} of what was left")


def _storm() -> None:
    print(f"  {storm.storm(500, 10.0)}")


def _show(seconds: dict[str, list[float]]) -> None:
    for who, found in seconds.items():
        times = [each * 1000 for each in found]
        p99 = quantiles(times, n=100, method="inclusive")[98] if len(times) > 1 else max(times, default=0.0)
        print(
            f"  {who:14} n {len(times)}, median {median(times):5.0f} ms, p99 {p99:5.0f} ms, worst {max(times):5.0f} ms"
        )


PARTS: dict[str, Callable[[], None]] = {
    "cost": _cost,
    "memory": _memory,
    "cpu": _cpu,
    "online": _online,
    "storm": _storm,
}

if __name__ == "__main__":
    main()
