"""The program of one batch task: use CPU until the work is done, and write down the progress.

    python -IS task.py FOLDER VARIABLE WORK_SECONDS CPU_MILLI

It uses at most `CPU_MILLI` at once. It writes percents to FOLDER/ID, where ID is the value of the environment variable.
It imports only the standard library, and so runs without the packages of Fallow.
"""

import os
import sys
import time
from pathlib import Path

SLICE_SECONDS = 0.05
NICE = 5  # on a busy host the online load can still rise, and the tasks still make progress


def work(seconds: float, share: float, progress: Path | None) -> None:
    """Use `seconds` of CPU time, `share` of one CPU at most."""
    used = 0.0
    while (used := time.process_time()) < seconds:
        until = used + min(SLICE_SECONDS * share, seconds - used)
        began = time.monotonic()
        while time.process_time() < until:
            sum(range(2000))  # some 30 µs
        if progress is not None:
            progress.write_text(str(int(100 * time.process_time() / seconds)))
        time.sleep(max(0.0, began + SLICE_SECONDS - time.monotonic()))


def main(folder: str, variable: str, work_seconds: str, cpu_milli: str) -> None:
    """Divide the work among the processes that it needs."""
    os.nice(NICE)
    milli = int(cpu_milli)
    count = -(-milli // 1000)
    progress = Path(folder) / os.environ[variable]
    children = 0
    for _ in range(count - 1):
        if os.fork() == 0:
            work(float(work_seconds) / count, milli / count / 1000, None)
            os._exit(0)
        children += 1
    work(float(work_seconds) / count, milli / count / 1000, progress)
    for _ in range(children):
        os.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
