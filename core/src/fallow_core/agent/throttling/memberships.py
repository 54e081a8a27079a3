"""In which groups processes are: each /proc/PID/cgroup is read once for the trees of all controllers, and cached."""

from collections.abc import Collection, Iterable

from fallow_core.node.cgroups.files import Files
from fallow_hookspecs import Process

REREAD_SECONDS, SETTLED_SECONDS = 10.0, 30.0
"""The cache time grows from the first to the second value while a file stays the same: frameworks move processes that
they have just started. Limits are not cached.
"""


def due_at(read_at: float, since: float) -> float:
    """When to read again a value that was read at `read_at` and has been the same since `since`."""
    return read_at + min(max(read_at - since, REREAD_SECONDS), SETTLED_SECONDS)


class Memberships:
    """Belongs to one thread; times are monotonic seconds."""

    def __init__(self, files: Files, proc_root: str) -> None:
        self._files = files
        self._proc_root = proc_root
        self._found: dict[Process, tuple[float, float, str]] = {}

    def text(self, process: Process, now: float) -> str:
        """The text of a process's file. The result is the same object while the file does not change.

        :raises OSError: the process has ended.
        """
        due, since, text = self._found.get(process, (now, now, ""))
        if now >= due:
            newest = self._files.read(f"{self._proc_root}/{process.pid}/cgroup")
            if newest != text:
                since, text = now, newest
            self._found[process] = (due_at(now, since), since, text)
        return text

    def reread(self, processes: Iterable[Process]) -> None:
        """Read the files of these processes again: they were moved."""
        for process in processes:
            self._found.pop(process, None)

    def forget_except(self, processes: Collection[Process]) -> None:
        """Forget all processes but these."""
        if len(self._found) > len(processes):
            self._found = {process: found for process, found in self._found.items() if process in processes}
