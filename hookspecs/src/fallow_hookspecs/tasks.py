"""Tasks, and orders to terminate them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fallow_hookspecs.capacity import Resources


@dataclass(frozen=True, slots=True)
class Process:
    """A process, identified by its pid and its start time in clock ticks since boot, since the kernel reuses pids."""

    pid: int
    start_ticks: int

    def __hash__(self) -> int:
        """The pid suffices: two processes with the same one are rarely known at a time."""
        return self.pid


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """A process of the framework itself on this node, such as a NodeManager. All of its descendants are batch."""

    process: Process
    framework_node: str | None = None


class TaskState(StrEnum):
    """The state of a task. A terminating task still holds its resources."""

    STARTING = "starting"
    RUNNING = "running"
    TERMINATING = "terminating"


class TaskRole(StrEnum):
    """`MASTER`: an application master or a driver, whose termination costs the application most."""

    MASTER = "master"
    WORKER = "worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """The gang of a task. Fewer than `minimum` members are useless. Terminating tasks are members too."""

    id: str
    minimum: int
    members: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The smallest unit that the framework can lose.

    A larger `priority` is more important; the plugin converts from the framework's own order. `progress` and
    `kept_share` are 0 to 1. `kept_share` is the part of the work that a checkpoint or shuffle service keeps when the
    task is terminated. A task that is a pod has `pod_uid`. `cgroups` are directories relative to the cgroup root,
    `processes` the leaders of a task without a cgroup: core measures its usage from one of them.
    """

    id: str
    application_id: str
    framework_node: str
    state: TaskState
    requested: Resources
    role: TaskRole = TaskRole.WORKER
    age_seconds: float | None = None
    terminating_age_seconds: float | None = None
    priority: int = 0
    opportunistic: bool = False
    progress: float | None = None
    ends_in_seconds: float | None = None
    kept_share: float = 0.0
    gang: Gang | None = None
    pod_uid: str | None = None
    cgroups: tuple[str, ...] = ()
    processes: tuple[Process, ...] = ()
    may_be_ended: bool = True
    grace_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskList:
    """The answer of `list_tasks`. Only if it is `complete` does a missing task mean that the task has gone."""

    tasks: tuple[Task, ...]
    age_seconds: float
    complete: bool
    daemons: tuple[Daemon, ...] = ()
    incomplete_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KillOrder:
    """An exact list of tasks to terminate in parallel: gracefully, or with `force` immediately.

    `reason` is shown to the framework's user.
    """

    task_ids: tuple[str, ...]
    reason: str
    force: bool = False


class KillResult(StrEnum):
    """The result for one task of an order.

    Two results ask core to use another route, and only core on Kubernetes has these routes: `EVICT` (the task is a pod:
    the Eviction API) and `NO_ACCESS` (the controller's instance is asked). Elsewhere the task counts as not terminated.
    """

    TERMINATING = "terminating"
    ALREADY_GONE = "already gone"
    SPARED = "spared"
    EVICT = "evict"
    NO_ACCESS = "no access"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class KillAnswer:
    """The answer for one task. `reason` is required for `SPARED`, `NO_ACCESS` and `FAILED`."""

    result: KillResult
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KillOutcome:
    """The answer of `kill_tasks`: one entry for each task of the order, by task id."""

    answers: Mapping[str, KillAnswer] = field(default_factory=dict)
