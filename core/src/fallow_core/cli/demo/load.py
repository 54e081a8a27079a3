"""A real online load: for each CPU a process that is busy for a given share of the time."""

import mmap
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from fallow_core.cli.system_errors import starting
from fallow_core.errors import FallowError

_BURNER = """
import mmap, os, sys, time
with open(sys.argv[1], 'rb') as file:
    level = mmap.mmap(file.fileno(), 1, access=mmap.ACCESS_READ)
parent = int(sys.argv[2])
while os.getppid() == parent:
    began, until = time.monotonic(), time.process_time() + 0.05 * level[0] / 100
    while time.process_time() < until:
        sum(range(2000))
    time.sleep(max(0.0, began + 0.05 - time.monotonic()))
"""


class OnlineLoad:
    """Uses `percent` of the CPUs that this process may run on; at first 0. It ends with this process,
    and not by itself on Ctrl-C in a terminal.

    :raises FallowError: a process cannot be started; those that were started have ended.
    """

    def __init__(self, folder: Path) -> None:
        file = folder / "level"
        file.write_bytes(b"\0")
        with file.open("r+b") as opened:
            self._level = mmap.mmap(opened.fileno(), 1)
        command = [sys.executable, "-ISc", _BURNER, str(file), str(os.getpid())]
        self._burners: list[subprocess.Popen[bytes]] = []
        try:
            with starting("the processes of the online load"):
                for _ in os.sched_getaffinity(0):
                    self._burners.append(subprocess.Popen(command, start_new_session=True))  # noqa: S603
        except FallowError:
            self._close()
            raise

    @property
    def percent(self) -> int:
        """The share of each CPU that it uses."""
        return self._level[0]

    @percent.setter
    def percent(self, percent: int) -> None:
        self._level[0] = percent

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        for burner in self._burners:
            burner.kill()
        for burner in self._burners:
            burner.wait()
        self._level.close()
