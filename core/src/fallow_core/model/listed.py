"""What a plugin listed on a node, and what stays of it when the next list is not complete."""

from dataclasses import dataclass

from fallow_hookspecs import Task, TaskList

STALE_SECONDS = 10.0
"""A complete list that is older says nothing any more about a task that is not in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTasks:
    """What one cluster's plugin listed on one node, `measured_at` (when the request began, monotonic seconds).

    `tasks` is the newest word on each task: where the list is not complete, those of the last complete one stay.
    """

    tasks: tuple[Task, ...]
    measured_at: float
    complete: bool
    reason: str = ""

    def is_complete(self, now: float) -> bool:
        """Whether a task that is not in the list has gone."""
        return self.complete and now - self.measured_at <= STALE_SECONDS


def listed(before: ListedTasks | None, newest: TaskList, now: float) -> ListedTasks:
    """What is listed after one more answer. A complete list that is older than the newest changes nothing.

    One that is not complete counts whatever its age: it is as old as the oldest of what it still holds.
    """
    measured_at = now - newest.age_seconds
    if before is not None and newest.complete and measured_at < before.measured_at:
        return before
    kept = {} if before is None or newest.complete else {task.id: task for task in before.tasks}
    tasks = kept | {task.id: task for task in newest.tasks}
    return ListedTasks(
        tasks=tuple(tasks.values()),
        measured_at=measured_at if before is None else max(measured_at, before.measured_at),
        complete=newest.complete,
        reason=newest.incomplete_reason,
    )
