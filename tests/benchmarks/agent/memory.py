"""A task allocates 1 GiB/s towards the memory threshold: how soon after it is crossed does a signal reach it?

Three watch the same crossing: the agent, which signals; a loop that looks once a second; and earlyoom, where it is
installed, which only says whom it would signal. The mark lies a little above what is in use, and the task's group has a
limit: this host is not brought into danger.
"""

import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.benchmarks.agent.stage import MEMORY, Stage, until

from fallow_core.model.qos_policy import MemoryReclaimPolicy
from fallow_core.node.procfs import PROC_ROOT, read_memory

GIB = 1 << 30
ABOVE_GIB = 1.0
MOST_GIB = 2.0
LIMIT_BYTES = 3 * GIB
WAIT_SECONDS = 4.0
LOOK_SECONDS = 0.002
AGENT, EARLYOOM = COUNTS = ("fallow agent", "earlyoom")
"""Who counts. earlyoom goes by MemAvailable, which lacks the free memory in the lists of CPUs: it crosses earlier."""


@dataclass(slots=True)
class Reactions:
    """Seconds from the crossing, by who reacted. `missed`: runs in which the threshold was not crossed by the task."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    missed: int = 0

    def add(self, name: str, seconds: float) -> None:
        """One more."""
        self.seconds.setdefault(name, []).append(seconds)


def used_bytes() -> int:
    """Memory in use, as the agent counts it."""
    memory = read_memory(PROC_ROOT)
    return memory.total_bytes - memory.unused_bytes


def available_bytes() -> tuple[int, int]:
    """Memory that can be had, as the agent counts it and as earlyoom does."""
    available = re.search(r"MemAvailable: +(\d+)", Path("/proc/meminfo").read_text())
    assert available is not None
    return read_memory(PROC_ROOT).unused_bytes, int(available[1]) * 1024


def reactions(runs: int) -> Reactions:
    """Measure so many crossings."""
    total, found = read_memory(PROC_ROOT).total_bytes, Reactions()
    percent = -(-(used_bytes() + round(ABOVE_GIB * GIB)) * 100 // total)
    mark = -(-total * percent // 100)
    evict = {"mode": "enforce", "threshold": f"{percent}%", "lowerThreshold": f"{percent - 1}%", "coolDown": "1s"}
    with tempfile.TemporaryDirectory() as name, Stage(Path(name), qos={"memoryEvict": evict}) as stage:
        (MEMORY / stage.group / "memory.limit_in_bytes").write_text(f"{LIMIT_BYTES}")
        stage.start()
        time.sleep(MemoryReclaimPolicy().window_seconds + 1.0)  # before that only the critical threshold counts
        for run in range(runs):
            until(lambda: used_bytes() < mark - GIB // 2, "memory is free again")
            time.sleep(1.5 + run % 7 / 10)
            _run(stage, f"t{run:03}", mark, found)
    return found


def _run(stage: Stage, name: str, mark: int, found: Reactions) -> None:
    watchers = {"once a second": _python("tests.benchmarks.agent.polling", f"{mark}")}
    if (earlyoom := shutil.which("earlyoom")) is not None:
        kib = (read_memory(PROC_ROOT).total_bytes - mark) // 1024
        # It only says what it would do, and so it goes on saying it.
        command = [earlyoom, "--dryrun", "-r", "0", "-M", f"{kib},{kib // 2}"]
        watchers[EARLYOOM] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    task = stage.add(name, sys.executable, "-m", "tests.benchmarks.agent.hog", f"{MOST_GIB}", stdout=subprocess.PIPE)
    said = {name: _stdout(process) for name, process in {**watchers, AGENT: task}.items()}
    total = read_memory(PROC_ROOT).total_bytes
    crossed: dict[str, float] = {}
    deadline = time.monotonic() + MOST_GIB + WAIT_SECONDS
    try:
        while said and time.monotonic() < deadline:
            now, available = time.monotonic(), available_bytes()
            for who, free in zip(COUNTS, available, strict=True):
                if total - free >= mark:
                    crossed.setdefault(who, now)
            for who, at in _heard(said):
                since = crossed.get(EARLYOOM if who == EARLYOOM else AGENT, at)
                found.add(who, max(at - since, 0.0))
                del said[who]
            time.sleep(LOOK_SECONDS)
    finally:
        stage.end(name)
        for process in watchers.values():
            process.kill()
            process.wait()
    found.missed += AGENT not in crossed


def _heard(said: dict[str, IO[bytes]]) -> list[tuple[str, float]]:
    """Who has reacted, and when: the others tell the time, earlyoom tells whom it means."""
    heard = []
    for who, stream in list(said.items()):
        if select.select([stream], [], [], 0)[0]:
            text = os.read(stream.fileno(), 1 << 16)
            if who != EARLYOOM:
                heard.append((who, float(text)))
            elif b"low memory" in text:
                heard.append((who, time.monotonic()))
    return heard


def _python(module: str, *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE)


def _stdout(process: "subprocess.Popen[bytes]") -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout
