"""The answer to `tasks`: the tasks of a node, with what each uses and what its termination would cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from fallow_core.model.task import ObservedTask
from fallow_core.qos.harm import Harm
from fallow_core.qos.termination import Phase, Termination
from fallow_hookspecs import Resources, TaskRole, TaskState

if TYPE_CHECKING:
    from fallow_core.agent.eviction.evictor import Evictor


class TerminationStatus(Struct, frozen=True, kw_only=True):
    """How a task is terminated. `note`: why that failed, or what the newest answer complained of."""

    phase: Phase
    why: str
    note: str


class TaskStatus(Struct, frozen=True, kw_only=True):
    """A task. `used`: `None` where it is not measured. `harm`: the arithmetic of `harm_core_seconds`, the work that
    its termination would lose.
    """

    cluster: str
    task: str
    framework_node: str
    application: str
    name: str
    user: str
    queue: str
    role: TaskRole
    state: TaskState
    termination: TerminationStatus | None
    requested: Resources
    used: Resources | None
    age_seconds: float | None
    listed_ago_seconds: float
    harm_core_seconds: float
    harm: str

    @property
    def label(self) -> str:
        """The application's name, or its id where it has none."""
        return self.name or self.application

    @property
    def phase(self) -> str:
        """Its state, or how far its termination is."""
        return self.termination.phase if self.termination else self.state


class Tasks(Struct, frozen=True, kw_only=True):
    """The answer to `tasks`: masters last, and the cheapest to terminate first.

    `incomplete`: clusters whose list of tasks is not complete, and why. `terminations_error`: why terminations under
    way cannot be written; `terminations_lost`: why those of an earlier process could not be read. `restored`:
    clusters whose tasks are neither throttled nor terminated.
    """

    node: str
    tasks: tuple[TaskStatus, ...]
    incomplete: Mapping[str, str]
    terminations_error: str
    terminations_lost: str
    restored: tuple[str, ...] = ()


def tasks(agent: Evictor, now: float) -> Tasks:
    """All tasks of an agent's node."""
    harms = agent.harms(now)
    terminations = {termination.key: termination for termination in agent.terminations.active}
    ordered = sorted(agent.tasks, key=lambda task: (task.is_master, harms[task.key].total, task.key))
    return Tasks(
        node=agent.node.name,
        tasks=tuple(_task(task, harms[task.key], terminations.get(task.key), now) for task in ordered),
        incomplete=dict(agent.incomplete),
        terminations_error=agent.save_error,
        terminations_lost=agent.load_error,
        restored=tuple(sorted(agent.restored)),
    )


def _task(task: ObservedTask, harm: Harm, termination: Termination | None, now: float) -> TaskStatus:
    application, usage = task.application, task.usage
    return TaskStatus(
        cluster=task.cluster,
        task=task.task.id,
        framework_node=task.task.framework_node,
        application=task.task.application_id,
        name=application.name if application else "",
        user=application.user if application else "",
        queue=application.queue if application else "",
        role=TaskRole.MASTER if task.is_master else TaskRole.WORKER,
        state=task.task.state,
        termination=None
        if termination is None
        else TerminationStatus(phase=termination.phase, why=termination.reason, note=termination.note),
        requested=task.requested,
        used=None if usage is None else Resources(usage.cpu_milli, usage.memory_bytes),
        age_seconds=task.task.age_seconds,
        listed_ago_seconds=now - task.measured_at,
        harm_core_seconds=harm.total / 1000,
        harm=harm.arithmetic,
    )
