"""Tasks, and orders to end them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fallow_hookspecs.capacity import Resources


@dataclass(frozen=True, slots=True)
class Process:
    """A process that cannot be mistaken for another: its id, and its start time in clock ticks since boot."""

    pid: int
    start_ticks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """A process of the framework itself on this node, such as a NodeManager. All that runs below it is batch."""

    process: Process
    framework_node: str | None = None


class TaskState(StrEnum):
    """Where a task is in its life. A task that is terminating still holds its resources."""

    STARTING = "starting"
    RUNNING = "running"
    TERMINATING = "terminating"


class TaskRole(StrEnum):
    """`MASTER` for an application master or a driver: its end costs the application most."""

    MASTER = "master"
    WORKER = "worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """The gang of a task: fewer than `minimum` of its members are of no use. Those that are terminating are members
    too.
    """

    id: str
    minimum: int
    members: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The smallest thing that the framework can lose.

    A bigger `priority` is more important, whatever the framework's own sense. `progress` and `kept_share` are 0 to 1;
    `kept_share` is the part of its work that a checkpoint or shuffle service keeps when it is terminated. A task that
    is a pod has `pod_uid`. `cgroups` are directories relative to the cgroup root; `processes` are the leaders of a task
    without a cgroup; core measures its usage from either.
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
    """The answer of `list_tasks`. Only with `complete` does a missing task mean that there is none."""

    tasks: tuple[Task, ...]
    age_seconds: float
    complete: bool
    daemons: tuple[Daemon, ...] = ()
    incomplete_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KillOrder:
    """An exact list: every task is to end, in parallel. `force` false: gracefully; true: now.

    `reason` reaches the framework's user.
    """

    task_ids: tuple[str, ...]
    reason: str
    force: bool = False


class KillResult(StrEnum):
    """What became of one task of an order. `EVICT`: it is a pod, core uses the Eviction API."""

    TERMINATING = "terminating"
    ALREADY_GONE = "already gone"
    SPARED = "spared"
    EVICT = "evict"
    NO_ACCESS = "no access"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class KillAnswer:
    """What became of one task, and why where it is spared, without access, or failed."""

    result: KillResult
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KillOutcome:
    """The answer of `kill_tasks`: one entry for each task of the order, by task id."""

    answers: Mapping[str, KillAnswer] = field(default_factory=dict)
