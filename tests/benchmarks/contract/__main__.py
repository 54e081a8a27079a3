"""What a call of a plugin costs beyond the plugin's own time: in Fallow's process, and through the copilot.

    tox -e bench -- contract [--rounds 300]

Each number is the median of many calls of a plugin that answers at once, through core's host, from the start of the
call to its outcome; beside it is what the fastest tenth of them took, which other work on the machine disturbs less.
The plugin answers each time what the next second would bring: ages grow, a task ends and another begins, allocations of
a tenth of the nodes change. Of the calls through the copilot, gRPC itself takes what a call that carries nothing takes.
Exit code 1 where a median is above what it must be: for that the machine should have nothing else to do.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from tests.benchmarks.contract import values
from tests.integration.copilot_stage import Copilot, build, lay_out, through

from fallow_core.model.plugin import LoadedPlugin, PluginSource
from fallow_core.plugins.instance import PluginInstance
from fallow_core.plugins.lanes import Call, Failure
from fallow_core.runtime.inbox import Inbox

SECONDS = 30.0
MIB = 2**20
IMPORT = """
import sys, time
before = open("/proc/self/statm").read().split()
begun = time.perf_counter()
import fallow_hookspecs
seconds = time.perf_counter() - begun
after = open("/proc/self/statm").read().split()
print(seconds, (int(after[1]) - int(before[1])) * 4096)
"""


def main() -> int:
    """Measure, print a line for each number, and say whether all are as they must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    print(f"load of this machine: {os.getloadavg()[0]:.1f} with {os.cpu_count()} CPUs")
    good = True
    with _instances() as (instances, nothing):
        for where, instance, asked in instances:
            good &= _show(f"{where}: 100 tasks listed", _taken(asked.list_tasks(instance), rounds), asked.most_tasks)
            good &= _show(f"{where}: 100 tasks ended", _taken(asked.kill(instance), rounds), asked.most_tasks)
            reports = _taken(asked.report(instance), max(10, rounds // 10))
            good &= _show(f"{where}: report of 5,000 nodes", reports, asked.most_report)
        _show("gRPC alone: a call that carries nothing", _taken(nothing, rounds))
    seconds, grown = _imported()
    good &= _show("import fallow_hookspecs", seconds, 0.060)
    good &= _show("memory of fallow_hookspecs", grown, 12 * MIB, unit=MIB)
    return 0 if good else 1


class _Asked:
    """The calls, and the most that they may take in seconds."""

    def __init__(self, inbox: Inbox, most_tasks: float, most_report: float) -> None:
        self.most_tasks, self.most_report = most_tasks, most_report
        self._inbox = inbox
        self._nodes, self._order = values.nodes(), values.kill_order()

    def list_tasks(self, instance: PluginInstance) -> Callable[[], None]:
        return lambda: self._wait(instance.start_list_tasks(values.NODE, SECONDS))

    def kill(self, instance: PluginInstance) -> Callable[[], None]:
        return lambda: self._wait(instance.start_kill_tasks(values.NODE, self._order, SECONDS))

    def report(self, instance: PluginInstance) -> Callable[[], None]:
        return lambda: self._wait(instance.start_report(self._nodes, SECONDS))

    def _wait(self, call: Call[Any] | None) -> None:
        assert call is not None
        while not call.done:  # as the loop does: it sleeps until a lane wakes it
            self._inbox.serve(SECONDS)
        if isinstance(call.outcome, Failure):
            raise TypeError(call.outcome.reason)


@contextmanager
def _instances() -> Iterator[tuple[list[tuple[str, PluginInstance, _Asked]], Callable[[], object]]]:
    """The instances, and a call to the process of one of them that has no plugin and no values in it."""
    inbox = Inbox()
    source = PluginSource(name="bench", distribution="tests", version="1", target="values:PLUGIN")
    here = build(LoadedPlugin(plugin=values.PLUGIN, source=source), {}, wake=inbox.wake)
    with tempfile.TemporaryDirectory(prefix="contract-") as folder:
        site = lay_out(Path(folder) / "site", "bench", "tests.benchmarks.contract.values:PLUGIN")
        copilot = Copilot(Path(folder), "bench", {}, path=(site,))
        copilot.start()
        there = through(copilot, wake=inbox.wake)
        channel = grpc.insecure_channel(f"unix:{copilot.socket}")
        check: Callable[..., bytes] = channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            yield (
                [
                    ("in this process", here, _Asked(inbox, 100e-6, 100e-6)),
                    ("through the copilot", there, _Asked(inbox, 1e-3, 50e-3)),
                ],
                lambda: check(b"", timeout=SECONDS),
            )
        finally:
            channel.close()
            there.close(1.0)
            copilot.terminate()


def _taken(call: Callable[[], object], rounds: int) -> list[float]:
    for _ in range(max(3, rounds // 10)):
        call()
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return taken


def _imported() -> tuple[list[float], list[float]]:
    """Seconds and bytes of the import in some fresh processes."""
    runs = []
    for _ in range(11):
        output = subprocess.run([sys.executable, "-I", "-c", IMPORT], capture_output=True, text=True, check=True).stdout
        runs.append([float(word) for word in output.split()])
    return [run[0] for run in runs], [run[1] for run in runs]


def _show(what: str, found: list[float], most: float | None = None, unit: float = 1e-3) -> bool:
    words = "MiB" if unit > 1 else "ms"
    median, fastest = statistics.median(found), sorted(found)[len(found) // 10]
    good = most is None or median <= most
    bound = "" if most is None else f", at most {most / unit:g}"
    print(
        f"{what:40} {median / unit:9.3f} {words} ({fastest / unit:.3f}){bound}{'' if good else '   TOO MUCH'}",
        flush=True,
    )
    return good


if __name__ == "__main__":
    sys.exit(main())
