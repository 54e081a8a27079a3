"""Everything that the demo starts and ends, in one folder: the framework, the online load, and `fallow run`."""

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fallow_core.api.control_socket import ask
from fallow_core.cli.demo import host, task
from fallow_core.cli.demo.framework import Counts, DemoFramework, Start
from fallow_core.cli.demo.load import OnlineLoad
from fallow_core.cli.system_errors import starting
from fallow_core.errors import ControlError, FallowError

CLUSTER = "demo"
TASKS_AT_ONCE = 8
TASKS = 64
TASK_SECONDS = 9.0  # of a task that gets all the CPU that it requests
TASK_MEMORY_BYTES = 64 << 20
START_SECONDS = 30.0
END_SECONDS = 20.0


class Stage:
    """The demo's processes, while its context is open. A task requests an eighth of the CPU of this host."""

    def __init__(self, start: Start, plugin: str, folder: Path) -> None:
        self.socket = folder / "control.sock"
        self.log = folder / "fallow.log"
        self.load: OnlineLoad
        self.framework: DemoFramework
        self._start = start
        self._plugin = plugin
        self._folder = folder
        self._fallow: subprocess.Popen[bytes] | None = None
        self._progress = folder / "progress"
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with self._stack:
            self._progress.mkdir()
            self.load = self._stack.enter_context(OnlineLoad(self._folder))
            with starting(f"the resource manager of the plugin {self._plugin}"):
                self.framework = self._start(
                    self._folder / "framework",
                    cpu_milli=(os.cpu_count() or 1) * 1000,
                    memory_bytes=TASKS_AT_ONCE * TASK_MEMORY_BYTES,
                    tasks_at_once=TASKS_AT_ONCE,
                )
            self._stack.callback(self.framework.close)
            self._configure()
            self._stack.callback(self._end_fallow)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def begin(self) -> None:
        """Queue the tasks, start `fallow run`, and wait until it answers.

        :raises FallowError: it cannot be started, ends, or does not answer in time.
        """
        self.framework.submit(self._task((os.cpu_count() or 1) * 1000 // TASKS_AT_ONCE), TASKS)
        with self.log.open("wb") as log, starting("fallow run"):
            command = [sys.executable, "-m", host.__name__, str(self._folder), str(os.getpid())]
            self._fallow = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)  # noqa: S603
        end = time.monotonic() + START_SECONDS
        while not self._answers():
            self.check()
            if time.monotonic() > end:
                raise FallowError(f"fallow run does not answer within {START_SECONDS:.0f} s: {self._said()}")
            time.sleep(0.1)

    def check(self) -> None:
        """Check that Fallow runs.

        :raises FallowError: it has ended; with the end of its log.
        """
        if self._fallow is not None and self._fallow.poll() is not None:
            raise FallowError(f"fallow run has ended: {self._said()}")

    def counts(self) -> Counts:
        """The number of tasks in each state."""
        return Counts(**self.framework.counts())

    def progress_percent(self, task_id: str) -> int | None:
        """The progress of a task; `None` before it begins to work."""
        try:
            return int((self._progress / task_id).read_text())
        except (OSError, ValueError):
            return None

    def _answers(self) -> bool:
        try:
            return not ask(self.socket, {"request": "status"})["building"]
        except ControlError:
            return False

    def _said(self) -> str:
        return self.log.read_text(errors="replace")[-2000:].strip()

    def _task(self, cpu_milli: int) -> str:
        work_seconds = TASK_SECONDS * cpu_milli / 1000
        variable = self.framework.task_variable
        program = f"{sys.executable} -IS {task.__file__} {self._progress} {variable}"
        return f"exec {program} {work_seconds:.3f} {cpu_milli}"

    def _configure(self) -> None:
        """Write the configuration. Its times are short, so that everything happens within a minute."""
        core: dict[str, Any] = {
            "apiVersion": "fallow/v1",
            "kind": "Fallow",
            "stateDir": str(self._folder / "state"),
            "controlSocket": str(self.socket),
            "metrics": "off",
            "sampleInterval": "500ms",
            "capacity": {"cpu": {"watermark": "90%"}, "memory": {"watermark": "95%"}},
            "publishing": {
                "mode": "enforce",
                "growthDelay": "2s",
                "interval": "1s",
                "reportInterval": "1s",
                "inFlight": "5s",
            },
            "qos": {
                "cpuEvict": {"mode": "enforce", "window": "3s", "samples": 4, "coolDown": "5s"},
                "termination": {"grace": "2s", "margin": "2s"},
            },
        }
        cluster = {
            "apiVersion": "fallow/v1",
            "kind": "Cluster",
            "metadata": {"name": CLUSTER},
            "plugin": self._plugin,
            "limit": {"memory": f"{2 * TASKS_AT_ONCE * TASK_MEMORY_BYTES >> 20}Mi"},
            "spec": dict(self.framework.spec),
        }
        (self._folder / "clusters.d").mkdir()
        (self._folder / "fallow.yaml").write_text(json.dumps(core))
        (self._folder / "clusters.d" / f"{CLUSTER}.yaml").write_text(json.dumps(cluster))

    def _end_fallow(self) -> None:
        if self._fallow is None:
            return
        self._fallow.terminate()
        try:
            self._fallow.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._fallow.kill()
            self._fallow.wait()
