"""The task list of one cluster on one node, and how it is merged with an incomplete list."""

from dataclasses import dataclass

from fallow_hookspecs import Task, TaskList

STALE_SECONDS = 10.0
"""The age up to which a complete list proves that a task that is not in it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTasks:
    """The tasks of one cluster on one node. `measured_at`: when the request began, in monotonic seconds.

    If the newest list is incomplete, `tasks` also contains tasks of earlier lists.
    """

    tasks: tuple[Task, ...]
    measured_at: float
    complete: bool
    reason: str = ""

    def is_complete(self, now: float) -> bool:
        """Whether a task that is not in the list is gone."""
        return self.complete and now - self.measured_at <= STALE_SECONDS


def listed(before: ListedTasks | None, newest: TaskList, now: float) -> ListedTasks:
    """The list after one more answer. A complete answer that is older than the present list changes nothing.

    An incomplete answer always counts, since its age is that of its oldest entry.
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
