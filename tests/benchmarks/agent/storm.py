"""Many tasks start and end within a short time: is each of them known, and is nothing left of any?"""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.agent.cost import ENFORCED
from tests.benchmarks.agent.stage import Stage, until

LIVES_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """`seen`: tasks that the agent knew. `decided`: decisions on any. Descriptors and memory (MiB) before and after."""

    tasks: int
    seconds: float
    seen: int
    decided: int
    descriptors: tuple[int, int]
    resident: tuple[float, float]


def storm(tasks: int, seconds: float) -> Storm:
    """So many tasks start evenly within a time, and each lives for a second."""
    with tempfile.TemporaryDirectory() as name, Stage(Path(name), qos=ENFORCED) as stage:
        stage.add("first")
        pid = stage.start()
        time.sleep(6)
        before = _state(pid)
        seen: set[str] = set()
        began = time.monotonic()
        ends: list[tuple[float, str]] = []
        for number in range(tasks):
            due = began + number * seconds / tasks
            while (now := time.monotonic()) < due:
                _end(stage, ends, now)
                seen |= {task["task"] for task in stage.ask("tasks")["tasks"]}
                time.sleep(max(0.0, min(0.05, due - time.monotonic())))
            stage.add(f"s{number:04}")
            ends.append((time.monotonic() + LIVES_SECONDS, f"s{number:04}"))
        while ends:
            _end(stage, ends, time.monotonic())
            seen |= {task["task"] for task in stage.ask("tasks")["tasks"]}
            time.sleep(0.02)
        took = time.monotonic() - began
        until(lambda: len(stage.ask("tasks")["tasks"]) == 1, "the agent knows of the end of all")
        time.sleep(6)
        after = _state(pid)
        decided = len(stage.ask("explain")["decisions"])
        log = (stage.folder / "log").read_text()
        if "Traceback" in log or "request_failed" in log:
            raise RuntimeError(log)
    return Storm(
        tasks=tasks,
        seconds=took,
        seen=len(seen - {"first"}),
        decided=decided,
        descriptors=(before[0], after[0]),
        resident=(before[1], after[1]),
    )


def _end(stage: Stage, ends: list[tuple[float, str]], now: float) -> None:
    while ends and ends[0][0] <= now:
        stage.end(ends.pop(0)[1])


def _state(pid: int) -> tuple[int, float]:
    status = Path(f"/proc/{pid}/status").read_text()
    resident = int(status.partition("VmRSS:")[2].split()[0]) / 1024
    return len(list(Path(f"/proc/{pid}/fd").iterdir())), resident
