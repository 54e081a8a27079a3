"""In which groups processes are, as /proc/PID/cgroup says for all hierarchies at once: read once for all trees."""

from collections.abc import Collection, Iterable

from fallow_core.node.cgroups.files import Files
from fallow_hookspecs import Process

LOOK_AGAIN_SECONDS, SETTLED_SECONDS = 10.0, 30.0
"""What was read counts for so long: the longer, the longer it has been so. Frameworks move what they have just started;
what Fallow moved is read at once. Limits themselves are read with each look.
"""


def due_at(read_at: float, since: float) -> float:
    """When something is to be read again that was read at one time and has been so since another."""
    return read_at + min(max(read_at - since, LOOK_AGAIN_SECONDS), SETTLED_SECONDS)


class Memberships:
    """Belongs to one thread; times are monotonic seconds."""

    def __init__(self, files: Files, proc_root: str) -> None:
        self._files = files
        self._proc_root = proc_root
        self._found: dict[Process, tuple[float, float, str]] = {}

    def text(self, process: Process, now: float) -> str:
        """What the file of a process says. As long as it says the same, the result is the same object.

        :raises OSError: it has ended.
        """
        due, since, text = self._found.get(process, (now, now, ""))
        if now >= due:
            newest = self._files.read(f"{self._proc_root}/{process.pid}/cgroup")
            if newest != text:
                since, text = now, newest
            self._found[process] = (due_at(now, since), since, text)
        return text

    def look_again(self, processes: Iterable[Process]) -> None:
        """These were moved: where they are is read anew."""
        for process in processes:
            self._found.pop(process, None)

    def forget_but(self, processes: Collection[Process]) -> None:
        """No others are asked for any more."""
        if len(self._found) > len(processes):
            self._found = {process: found for process, found in self._found.items() if process in processes}
