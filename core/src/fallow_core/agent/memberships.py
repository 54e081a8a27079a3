"""In which groups processes are, as /proc/PID/cgroup says for all hierarchies at once: read once for all trees."""

from collections.abc import Collection, Iterable

from fallow_core.node.cgroups.files import Files
from fallow_hookspecs import Process

LOOK_AGAIN_SECONDS = 10.0
"""What was read of a process counts for so long; of one that Fallow moved it is read at once."""


class Memberships:
    """Belongs to one thread; times are monotonic seconds."""

    def __init__(self, files: Files, proc_root: str) -> None:
        self._files = files
        self._proc_root = proc_root
        self._found: dict[Process, tuple[float, str]] = {}

    def text(self, process: Process, now: float) -> str:
        """What the file of a process says. As long as it says the same, the result is the same object.

        :raises OSError: it has ended.
        """
        at, text = self._found.get(process, (now - LOOK_AGAIN_SECONDS, ""))
        if now - at >= LOOK_AGAIN_SECONDS:
            newest = self._files.read(f"{self._proc_root}/{process.pid}/cgroup")
            text = text if newest == text else newest
            self._found[process] = (now, text)
        return text

    def look_again(self, processes: Iterable[Process]) -> None:
        """These were moved: where they are is read anew."""
        for process in processes:
            self._found.pop(process, None)

    def forget_but(self, processes: Collection[Process]) -> None:
        """No others are asked for any more."""
        if len(self._found) > len(processes):
            self._found = {process: found for process, found in self._found.items() if process in processes}
