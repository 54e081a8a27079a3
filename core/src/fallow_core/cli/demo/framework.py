"""The interface of a plugin's demo: a resource manager that runs on this host alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from fallow_core.errors import PluginLoadError

ENTRY_POINT_GROUP = "fallow.demos"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The number of batch tasks in each state. `lost`: ended early, and queued again from the start."""

    waiting: int = 0
    running: int = 0
    finished: int = 0
    lost: int = 0


class DemoFramework(Protocol):
    """A resource manager with one node on this host, until it is closed.

    `spec` is the `spec` of its cluster file, `task_variable` the environment variable with the id of a task.
    """

    spec: Mapping[str, Any]
    task_variable: str

    def submit(self, command: str, tasks: int) -> None:
        """Queue this number of tasks, each a shell command; each starts as soon as it fits."""

    def counts(self) -> Mapping[str, int]:
        """The number of tasks in each state; the keys are the fields of `Counts`."""

    def told(self) -> Sequence[tuple[float, int]]:
        """Each CPU size in milli-cores that the resource manager took, with its time (monotonic seconds), in order."""

    def close(self) -> None:
        """End everything, the tasks included."""


class Start(Protocol):
    """What the entry point of a plugin refers to."""

    def __call__(self, folder: Path, *, cpu_milli: int, memory_bytes: int, tasks_at_once: int) -> DemoFramework:
        """Start it in this folder, with one node that `tasks_at_once` tasks fill; batch gets nothing of it yet."""


def load(name: str) -> Start:
    """The function that starts the demo of an installed plugin.

    :raises PluginLoadError: no plugin of this name has a demo, or the demo cannot be imported.
    """
    known = metadata.entry_points(group=ENTRY_POINT_GROUP)
    if name not in known.names:
        names = ", ".join(sorted(known.names)) or "none; install fallow-yarn"
        raise PluginLoadError(f"no installed plugin {name!r} has a demo; there are: {names}")
    try:
        start: Start = known[name].load()
    except Exception as error:
        raise PluginLoadError(f"the demo of {name} cannot be imported: {type(error).__name__}: {error}") from error
    return start
