"""The view of the demo: snapshots of its Fallow, and beside them its tasks with their progress."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from statistics import fmean

from rich.text import Text

from fallow_core.api.decisions import Decision
from fallow_core.api.tasks import TaskStatus
from fallow_core.cli.demo.phases import ALONE, ALONE_SECONDS, Phase, phase_at
from fallow_core.cli.demo.stage import Stage
from fallow_core.cli.demo.summary import Moment
from fallow_core.cli.live.screen import Extra
from fallow_core.cli.live.snapshot import Snapshot
from fallow_core.cli.top import source_of

BAR = 20
SMOOTHED = 3


class Show:
    """Plays the phases on a stage from `began_at` (monotonic) on, and records what it sees."""

    def __init__(self, stage: Stage, began_at: float) -> None:
        self.stage = stage
        self.began_at = began_at
        self.moments: list[Moment] = []
        self.terminations: dict[str, str] = {}
        self.steps: list[float] = []
        self._source = source_of(stage.socket)
        self._phase: Phase | None = None
        self._tasks: tuple[TaskStatus, ...] = ()

    def play(self) -> Phase:
        """Set the load of the current phase."""
        now = time.monotonic()
        phase = phase_at(now - self.began_at)
        if phase is not self._phase:
            if self._phase is not None and phase.load_percent > self._phase.load_percent:
                self.steps.append(now)
            self._phase, self.stage.load.percent = phase, phase.load_percent
        return phase

    def snapshot(self) -> Snapshot:
        """One snapshot of Fallow.

        :raises FallowError: it does not answer, or has ended.
        """
        self.stage.check()
        snapshot = self._source()
        self._tasks = snapshot.tasks
        for cpu in (node.cpu for node in snapshot.answers.status.nodes):
            if cpu.capacity is not None and cpu.used is not None and cpu.batch_used is not None:
                self.moments.append(
                    Moment(capacity_milli=cpu.capacity, used_milli=cpu.used, batch_milli=cpu.batch_used, lends=True)
                )
        for event in snapshot.events:
            if isinstance(event.source, Decision):
                self.terminations[event.key] = event.text
        return snapshot

    def extra(self) -> Extra:
        """The phase, the CPU in use, and the tasks."""
        phase, counts = self.play(), self.stage.counts()
        workers = [task for task in self._tasks if task.role != "master"]
        return Extra(
            caption=phase.text,
            title=f"BATCH TASKS  {counts.waiting} waiting, {counts.running} running, {counts.finished} finished, "
            f"{counts.lost} lost and queued again",
            lines=tuple(progress_lines(workers, self.stage.progress_percent)),
        )


def progress_lines(tasks: Iterable[TaskStatus], progress: Callable[[str], int | None]) -> Iterable[Text]:
    """A line for each task: its id, state, progress and use; the furthest first."""
    found = [(progress(task.task) or 0, task) for task in tasks]
    for percent, task in sorted(found, key=lambda pair: (-pair[0], pair[1].task)):
        filled = BAR * percent // 100
        used = "" if task.used is None else f"  {task.used.cpu_milli / 1000:.2f} cores"
        yield (
            Text(f"{task.task[-14:]} {task.phase:9} ")
            .append("#" * filled + "." * (BAR - filled))
            .append(f" {percent:3} %{used}")
        )


def alone(stage: Stage, sample: Callable[[], Moment | None], echo: Callable[[str], None]) -> list[Moment]:
    """Run the online load alone, and print a line each second."""
    stage.load.percent = ALONE.load_percent
    echo(f"{ALONE.text}.")
    found: list[Moment] = []
    lately: deque[Moment] = deque(maxlen=SMOOTHED)
    end = time.monotonic() + ALONE_SECONDS
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(1.0, left))
        moment = sample()
        if moment is not None:
            found.append(moment)
            lately.append(moment)
            percent = round(100 * fmean(m.used_milli / m.capacity_milli for m in lately))
            echo(f"  CPU in use {percent:3} %  {'#' * (percent * BAR // 100)}")
    return found
