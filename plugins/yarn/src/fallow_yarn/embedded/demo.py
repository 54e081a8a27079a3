"""The embedded YARN for `fallow demo`: one NodeManager, and tasks that need more than its minimum size."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fallow_yarn.embedded.application import SUCCEEDED, Application
from fallow_yarn.embedded.cluster import EmbeddedYarn
from fallow_yarn.embedded.settings import Settings
from fallow_yarn.model.size import Size

USER: Final = "demo"
VCORES_OF_TASK: Final = 2
RUNS_OF_TASK: Final = 1000
LEAST_MEMORY_MB: Final = 16


class Demo:
    """An embedded YARN until it is closed. Its node has room for the application master alone at first.

    `spec` is that of a cluster file, `task_variable` the environment variable with the id of a task.
    """

    task_variable: Final = "CONTAINER_ID"

    def __init__(self, folder: Path, *, cpu_milli: int, memory_bytes: int, tasks_at_once: int) -> None:
        vcores = VCORES_OF_TASK * tasks_at_once
        self._memory_mb = max(LEAST_MEMORY_MB, memory_bytes // (tasks_at_once << 20))
        self._vcore_milli = max(1, cpu_milli // vcores)
        self._application: Application | None = None
        minimum = Size(LEAST_MEMORY_MB, 1)
        self._yarn = EmbeddedYarn(
            folder,
            Settings(
                memory_mb=minimum.memory_mb,
                vcores=minimum.vcores,
                minimum=minimum,
                maximum=Size(self._memory_mb, VCORES_OF_TASK),
            ),
        )
        self._yarn.start()
        rm = self._yarn.rm
        addresses = {"host": "127.0.0.1", "client": rm.client_address, "admin": rm.admin_address, "web": rm.web_address}
        self.spec: Mapping[str, Any] = {"resourceManager": addresses, "user": USER, "vcoreMilli": self._vcore_milli}

    def submit(self, command: str, tasks: int) -> None:
        """Queue an application with so many tasks; one that is ended is run again."""
        self._application = self._yarn.submit(
            containers=tasks,
            memory_mb=self._memory_mb,
            vcores=VCORES_OF_TASK,
            command=command,
            attempts=RUNS_OF_TASK,
            name=USER,
            user=USER,
            master_memory_mb=LEAST_MEMORY_MB,
        )

    def counts(self) -> Mapping[str, int]:
        """The tasks that wait, run, are finished, and were lost."""
        app = self._application
        if app is None:
            return {}
        lost = sum(ended.exit_code != SUCCEEDED for ended in app.ended)
        return {"waiting": app.pending, "running": len(app.running), "finished": app.finished, "lost": lost}

    def told(self) -> Sequence[tuple[float, int]]:
        """When (monotonic seconds) which size was taken, in milli-cores."""
        scheduler = self._yarn.rm.scheduler
        taken = () if scheduler is None else tuple(scheduler.taken)
        return [(at, update.size.vcores * self._vcore_milli) for at, update in taken]

    def close(self) -> None:
        """End all of it."""
        self._yarn.stop()
