"""An online load begins at once: how soon after that is the CPU limit of batch lower?

Beside it a loop that looks once a second at the CPU in use besides batch, as the field's agents do.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.agent.stage import CPU, Stage, until

SPIN = "while True: pass"
QOS = {"cpuSuppress": {"mode": "enforce", "step": "50%"}, "cgroupReconcile": {"mode": "enforce"}}
CAPACITY = {"cpu": {"watermark": "95%"}}
LOOK_SECONDS = 0.001
WAIT_SECONDS = 3.0
PART = 0.15
"""Of the node: a limit that is lower by so much was lowered for the load, and not by what else goes on."""


def reactions(runs: int) -> dict[str, list[float]]:
    """Seconds from the begin of the load to the lower limit, by who reacted."""
    found: dict[str, list[float]] = {"fallow agent": [], "once a second": []}
    with tempfile.TemporaryDirectory() as name, Stage(Path(name), qos=QOS, capacity=CAPACITY) as stage:
        for number in range(os.cpu_count() or 1):
            stage.add(f"hog{number}", sys.executable, "-c", SPIN)
        online = subprocess.Popen([sys.executable, "-c", SPIN])
        stage.put(online.pid, "online")
        online.send_signal(signal.SIGSTOP)
        try:
            stage.start()
            until(lambda: limit(stage) > 0, "batch is limited")
            for _ in range(runs):
                time.sleep(4 + random.random())
                _run(stage, online.pid, found)
        finally:
            online.kill()
            online.wait()
    return found


def limit(stage: Stage) -> float:
    """The limit of batch as a share of the node; 0 without one."""
    quota, period = (int((CPU / stage.group / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
    return max(quota, 0) / period / (os.cpu_count() or 1)


def _run(stage: Stage, online: int, found: dict[str, list[float]]) -> None:
    before, polled_at = limit(stage), random.random()  # a loop that looks once a second is anywhere in its second
    with stage.from_aside():
        os.kill(online, signal.SIGCONT)
        began = time.monotonic()
        while limit(stage) > before - PART and time.monotonic() - began < WAIT_SECONDS:
            time.sleep(LOOK_SECONDS)
        found["fallow agent"].append(time.monotonic() - began)
    # It sees a mean over its second: the load has to make up enough of that.
    found["once a second"].append(polled_at if polled_at >= PART else polled_at + 1)
    os.kill(online, signal.SIGSTOP)
