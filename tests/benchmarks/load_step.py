"""How soon the ResourceManager is told after a step of the online load: `fallow run` beside an embedded YARN.

    tox -e bench -- load_step [--steps 50]

Real batch tasks run; the load is simulated (see `simulated_load`). A real one would take the CPU of the tasks, and this
one cannot: the tasks use a fifth of what they request, so that all fits on the host. Each step takes most of the CPU at
a random moment; measured is the time until the ResourceManager has taken a size that is smaller by a quarter of the
host or more. Then the load falls, and the next step waits until the size has grown back. Samples and calls are as often
as by default; only growth is held for a shorter time.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

from tests.benchmarks import simulated_load
from tests.benchmarks.fleet import table
from tests.benchmarks.simulated_load import Load

from fallow_core.cli.demo import framework, task
from fallow_core.cli.demo.framework import DemoFramework

LOW_PERCENT, HIGH_PERCENT = 20, 75
TASKS_AT_ONCE, TASKS, TASK_SECONDS = 8, 2000, 8.0
USED_PERCENT = 20
GROWTH_HOLD = "3s"
WAIT_SECONDS = 60.0
POLL_SECONDS = 0.01


@contextmanager
def lending(folder: Path, yarn: DemoFramework) -> Iterator[None]:
    """`fallow run` on the processes of this benchmark, and a queue of tasks."""
    files = {
        "fallow.yaml": {
            "apiVersion": "fallow/v1",
            "kind": "Fallow",
            "stateDir": str(folder / "state"),
            "controlSocket": str(folder / "control.sock"),
            "metrics": "off",
            "capacity": {"cpu": {"watermark": "90%"}, "memory": {"watermark": "95%"}},
            "publishing": {"mode": "enforce", "growthDelay": GROWTH_HOLD},
        },
        "clusters.d/yarn.yaml": {
            "apiVersion": "fallow/v1",
            "kind": "Cluster",
            "metadata": {"name": "yarn"},
            "plugin": "yarn",
            "limit": {"memory": "1Gi"},
            "spec": dict(yarn.spec),
        },
    }
    (folder / "clusters.d").mkdir()
    (folder / "progress").mkdir()
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    milli = _all_milli() * USED_PERCENT // 100 // TASKS_AT_ONCE
    program = f"nice -n 15 {sys.executable} -IS {task.__file__} {folder / 'progress'} {yarn.task_variable}"
    yarn.submit(f"exec {program} {TASK_SECONDS * milli / 1000:.3f} {milli}", TASKS)
    with (folder / "fallow.log").open("wb") as log:
        command = [sys.executable, "-m", simulated_load.__name__, str(folder), str(os.getpid())]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    except TimeoutError as error:
        raise TimeoutError(f"{error}; {(folder / 'fallow.log').read_text()[-2000:]}") from error
    finally:
        process.terminate()
        process.wait(30)


def steps(load: Load, yarn: DemoFramework, count: int) -> Iterator[float]:
    """The seconds of each step until the ResourceManager had taken the smaller size."""
    rng, all_milli = Random(1), _all_milli()
    for _ in range(count):
        load.set(LOW_PERCENT)
        _told(yarn, lambda _at, size: size >= all_milli * 9 // 20)
        time.sleep(rng.uniform(0.5, 2.0))
        had = yarn.told()[-1][1]
        rise = load.set(HIGH_PERCENT)
        yield _told(yarn, partial(_is_smaller, rise, had - all_milli // 4)) - rise


def _is_smaller(after: float, size: int, at: float, told: int) -> bool:
    return at > after and told <= size


def _all_milli() -> int:
    return (os.cpu_count() or 1) * 1000


def _told(yarn: DemoFramework, test: Callable[[float, int], bool]) -> float:
    """When the ResourceManager has taken its newest size, once `test` holds for that."""
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        at, size = ([*yarn.told()] or [(0.0, 0)])[-1]
        if test(at, size):
            return at
        time.sleep(POLL_SECONDS)
    raise TimeoutError(f"no such size within {WAIT_SECONDS:.0f} s; the last ones: {yarn.told()[-5:]}")


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that so many percent of them do not exceed."""
    return sorted(values)[max(0, -(-len(values) * percent // 100) - 1)]


def main() -> None:
    """Do the steps, and print how long they took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50)
    given = parser.parse_args()
    print(f"load of this machine: {os.getloadavg()[0]:.1f} with {os.cpu_count()} CPUs", flush=True)
    with tempfile.TemporaryDirectory(prefix="load-step-") as name:
        folder = Path(name)
        start = framework.load("yarn")
        load = Load(folder)
        yarn = start(folder / "yarn", cpu_milli=_all_milli(), memory_bytes=512 << 20, tasks_at_once=TASKS_AT_ONCE)
        try:
            with lending(folder, yarn):
                found = list(steps(load, yarn, given.steps))
        finally:
            yarn.close()
    cells = [f"{percentile(found, p):.2f} s" for p in (50, 90, 99)]
    table.show("Load step to ResourceManager told", ["steps", "p50", "p90", "p99"], [[given.steps, *cells]])


if __name__ == "__main__":
    main()
