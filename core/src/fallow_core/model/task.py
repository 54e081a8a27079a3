"""A task as core observes it: the task of the plugin, joined with its application and its measured use."""

from dataclasses import dataclass, field
from typing import NamedTuple

from fallow_hookspecs import Application, ResourceName, Resources, Task, TaskRole


class TaskKey(NamedTuple):
    """Identifies a task: the cluster (`framework/cluster`), and the framework's id of the task."""

    cluster: str
    task_id: str


class ApplicationKey(NamedTuple):
    """Identifies an application: the cluster (`framework/cluster`), and the framework's id of the application."""

    cluster: str
    application_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskUsage:
    """The measured use of a task: milli-cores since the reading before, and private resident bytes."""

    measured_at: float
    cpu_milli: int
    memory_bytes: int

    def amount(self, resource: ResourceName) -> int:
        """The use of one resource."""
        return self.cpu_milli if resource == "cpu" else self.memory_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTask:
    """One task on one node. `measured_at`: when the request of the list began, in monotonic seconds. `key` is its own.

    `application` and `usage` are `None` if they are not known.
    """

    cluster: str
    node: str
    task: Task
    measured_at: float
    application: Application | None = None
    usage: TaskUsage | None = None
    key: TaskKey = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Create `key` once, since each probe uses it many times."""
        object.__setattr__(self, "key", TaskKey(self.cluster, self.task.id))

    @property
    def application_key(self) -> ApplicationKey:
        """The key of its application."""
        return ApplicationKey(self.cluster, self.task.application_id)

    @property
    def is_master(self) -> bool:
        """Whether it is an application master or a driver, according to the node or to the framework's scheduler."""
        named = self.application is not None and self.task.id in self.application.master_task_ids
        return named or self.task.role is TaskRole.MASTER

    @property
    def requested(self) -> Resources:
        """Its request."""
        return self.task.requested
