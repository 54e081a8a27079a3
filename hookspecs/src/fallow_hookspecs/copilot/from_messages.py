"""From messages to the values of the contract.

What a message lacks and the contract requires becomes `None`, never zero: core then refuses the row or the task by its
name, as it does for a plugin in its own process.

Rows and tasks come in thousands, and are read in ways that are faster than they look: a field that is not zero is there
and need not be asked about, and a value is filled before it is frozen (see `_unfrozen`).
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from google.protobuf.message import Message

from fallow_hookspecs import (
    Application,
    Capabilities,
    CapacityReport,
    Daemon,
    Finding,
    Gang,
    GangReport,
    KillAnswer,
    KillOrder,
    KillOutcome,
    Node,
    Offer,
    OfferAnswer,
    Pending,
    Placement,
    Pod,
    Process,
    ReportRow,
    ResourceCapability,
    ResourceName,
    Resources,
    Task,
    TaskList,
    TaskPlacement,
    TaskRole,
)
from fallow_hookspecs.copilot import enums
from fallow_hookspecs.copilot.v0 import copilot_pb2 as pb


def nodes(messages: Iterable[pb.Node]) -> tuple[Node, ...]:
    """The nodes of a request."""
    return tuple(node(message) for message in messages)


def node(message: pb.Node) -> Node:
    """A node."""
    return Node(
        name=message.name,
        addresses=tuple(message.addresses),
        labels=dict(message.labels),
        annotations=dict(message.annotations),
        pods=tuple(
            Pod(
                uid=pod.uid,
                namespace=pod.namespace,
                name=pod.name,
                labels=dict(pod.labels),
                annotations=dict(pod.annotations),
                addresses=tuple(pod.addresses),
            )
            for pod in message.pods
        ),
    )


def offers(messages: Iterable[pb.Offer]) -> tuple[Offer, ...]:
    """The offers of a request."""
    return tuple(
        Offer(
            node=message.node,
            framework_node=message.framework_node,
            total=_resources(message.total),
            take_back=_take_back(message.take_back) if message.HasField("take_back") else {},
        )
        for message in messages
    )


def kill_order(message: pb.KillTasksRequest) -> KillOrder:
    """The order of a request."""
    return KillOrder(task_ids=tuple(message.task_ids), reason=message.reason, force=message.force)


def capacity_report(message: pb.CapacityReport) -> CapacityReport:
    """A report."""
    return CapacityReport(
        capabilities=_capabilities(message.capabilities),
        rows=_rows(message.rows),
        answers=tuple(
            OfferAnswer(
                node=each.node,
                framework_node=each.framework_node,
                accepted=_resources_if(each, "accepted"),
                refusal=enums.REFUSALS.get(each.refusal),
                reason=each.reason,
            )
            for each in message.answers
        ),
        pending=_pending(message.pending) if message.HasField("pending") else None,
        applications=tuple(_application(each) for each in message.applications),
        gangs=tuple(GangReport(id=each.id, minimum=each.minimum, running=each.running) for each in message.gangs),
        detail=message.detail,
        largest_elsewhere=_resources_if(message, "largest_elsewhere"),
    )


def task_list(message: pb.TaskList) -> TaskList:
    """A list of tasks."""
    return TaskList(
        tasks=_tasks(message.tasks),
        age_seconds=_if_set(message, "age_seconds"),
        complete=message.complete,
        daemons=tuple(
            Daemon(process=_process(each.process), framework_node=_if_set(each, "framework_node"))
            for each in message.daemons
        ),
        incomplete_reason=message.incomplete_reason,
    )


def kill_outcome(message: pb.KillOutcome) -> KillOutcome:
    """What became of the tasks of an order."""
    made = cache(_kill_answer)  # most are alike
    return KillOutcome(answers={task_id: made(each.result, each.reason) for task_id, each in message.answers.items()})


def placement(message: pb.Placement) -> Placement:
    """Where tasks are in the cgroup tree."""
    return Placement(
        new_tasks_follow=message.new_tasks_follow,
        tasks=tuple(
            TaskPlacement(
                task_id=each.task_id,
                cgroups=tuple(each.cgroups),
                movable=tuple(_process(process) for process in each.movable),
                setting=each.setting,
            )
            for each in message.tasks
        ),
        reason=message.reason,
    )


def findings(message: pb.DiagnoseResponse) -> tuple[Finding, ...]:
    """What an operator should know."""
    return tuple(
        Finding(subject=each.subject, ok=_if_set(each, "ok"), detail=each.detail, advice=each.advice)
        for each in message.findings
    )


def _if_set(message: Message, field: str) -> Any:
    """The value of a field, `None` where it is left out. `Any`: core checks what has to be there."""
    return getattr(message, field) if message.HasField(field) else None


def _kill_answer(number: int, reason: str) -> KillAnswer:
    result: Any = enums.KILL_RESULTS.get(number)
    return KillAnswer(result=result, reason=reason)


def _resources(message: pb.Resources) -> Resources:
    return Resources(_if_set(message, "cpu_milli"), _if_set(message, "memory_bytes"))


def _resources_if(message: Message, field: str) -> Resources | None:
    return _resources(getattr(message, field)) if message.HasField(field) else None


def _take_back(message: pb.TakeBack) -> dict[ResourceName, int]:
    notices: dict[ResourceName, int] = {}
    if message.HasField("cpu_notice_seconds"):
        notices["cpu"] = message.cpu_notice_seconds
    if message.HasField("memory_notice_seconds"):
        notices["memory"] = message.memory_notice_seconds
    return notices


def _capability(message: pb.ResourceCapability) -> ResourceCapability:
    charged = message.take_back_charged or not message.HasField("take_back_charged")
    return ResourceCapability(honoured=message.honoured, takes_back=message.takes_back, take_back_charged=charged)


def _capabilities(message: pb.Capabilities) -> Capabilities:
    return Capabilities(
        cpu=_capability(message.cpu),
        memory=_capability(message.memory),
        ends_single_tasks=message.ends_single_tasks,
        ends_gracefully=message.ends_gracefully,
        reports_progress=message.reports_progress,
        has_gangs=message.has_gangs,
        offer_lasts_seconds=_if_set(message, "offer_lasts_seconds"),
    )


def _pending(message: pb.Pending) -> Pending:
    return Pending(
        total=_resources(message.total),
        smallest=_resources_if(message, "smallest"),
        largest=_resources_if(message, "largest"),
        detail=message.detail,
    )


def _application(message: pb.Application) -> Application:
    return Application(
        id=message.id,
        name=message.name,
        user=message.user,
        queue=message.queue,
        kind=message.kind,
        priority=message.priority,
        progress=_if_set(message, "progress"),
        master_task_ids=tuple(message.master_task_ids),
    )


def _unfrozen(kind: type) -> Any:
    """A class with the same fields as a frozen dataclass, whose objects become that dataclass's by `__class__`.

    The constructor of a frozen dataclass sets each field by a call of its own, and that would be half of what reading a
    report costs.
    """
    return type(kind.__name__, (), {"__slots__": kind.__slots__})  # type: ignore[attr-defined] # each value has them


_UnfrozenResources, _UnfrozenRow = _unfrozen(Resources), _unfrozen(ReportRow)
_UnfrozenProcess, _UnfrozenTask = _unfrozen(Process), _unfrozen(Task)


def _rows(messages: Iterable[pb.ReportRow]) -> tuple[ReportRow, ...]:
    sizes = _Sizes()
    return tuple([_row(message, sizes) for message in messages])


def _row(message: pb.ReportRow, sizes: "_Sizes") -> ReportRow:
    row = _UnfrozenRow()
    row.node = message.node
    row.framework_node = message.framework_node
    row.age_seconds = message.age_seconds or _if_set(message, "age_seconds")
    row.state = enums.NODE_STATES.get(message.state)
    row.allocated = sizes.of(message, "allocated", message.allocated_cpu_milli, message.allocated_memory_bytes)
    row.in_force = sizes.of(message, "in_force", message.in_force_cpu_milli, message.in_force_memory_bytes)
    row.unit = sizes.of(message, "unit", message.unit_cpu_milli, message.unit_memory_bytes)
    row.floor = sizes.of(message, "floor", message.floor_cpu_milli, message.floor_memory_bytes)
    row.maximum = sizes.of(message, "maximum", message.maximum_cpu_milli, message.maximum_memory_bytes)
    row.started_age_seconds = message.started_age_seconds or _if_set(message, "started_age_seconds")
    row.__class__ = ReportRow
    made: ReportRow = row
    return made


class _Sizes:
    """The sizes of a report's rows, or of a list's tasks. Most are those of others too, and are made once."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, int], Resources] = {}

    def of(self, message: Message, name: str, cpu_milli: int, memory_bytes: int) -> Any:
        """The size of this name; `None` where neither of its fields is set."""
        if cpu_milli and memory_bytes:
            key = (cpu_milli, memory_bytes)
            found = self._made.get(key)
            if found is None:
                found = self._made[key] = _resources_of(cpu_milli, memory_bytes)
            return found
        cpu, memory = _if_set(message, f"{name}_cpu_milli"), _if_set(message, f"{name}_memory_bytes")
        return None if cpu is None and memory is None else Resources(cpu, memory)


def _resources_of(cpu_milli: int, memory_bytes: int) -> Resources:
    resources = _UnfrozenResources()
    resources.cpu_milli = cpu_milli
    resources.memory_bytes = memory_bytes
    resources.__class__ = Resources
    made: Resources = resources
    return made


def _process(message: pb.Process) -> Process:
    process = _UnfrozenProcess()
    process.pid = message.pid or _if_set(message, "pid")
    process.start_ticks = message.start_ticks or _if_set(message, "start_ticks")
    process.__class__ = Process
    made: Process = process
    return made


def _tasks(messages: Iterable[pb.Task]) -> tuple[Task, ...]:
    sizes = _Sizes()
    return tuple([_task(message, sizes) for message in messages])


def _task(message: pb.Task, sizes: "_Sizes") -> Task:
    task, has = _UnfrozenTask(), message.HasField
    cgroups, processes = message.cgroups, message.processes
    task.id = message.id
    task.application_id = message.application_id
    task.framework_node = message.framework_node
    task.state = enums.TASK_STATES.get(message.state)
    task.requested = sizes.of(message, "requested", message.requested_cpu_milli, message.requested_memory_bytes)
    task.role = enums.TASK_ROLES.get(message.role, TaskRole.WORKER)
    task.age_seconds = message.age_seconds or _if_set(message, "age_seconds")
    task.ending_age_seconds = message.ending_age_seconds if has("ending_age_seconds") else None
    task.priority = message.priority
    task.opportunistic = message.opportunistic
    task.progress = message.progress if has("progress") else None
    task.ends_in_seconds = message.ends_in_seconds if has("ends_in_seconds") else None
    task.kept_share = message.kept_share
    task.gang = _gang(message.gang) if has("gang") else None
    task.pod_uid = message.pod_uid if has("pod_uid") else None
    task.cgroups = tuple(cgroups) if cgroups else ()
    # A slice is a list, which is faster to go through than the field.
    task.processes = tuple([_process(each) for each in processes[:]]) if processes else ()
    task.may_be_ended = message.may_be_ended or not has("may_be_ended")
    task.grace_seconds = message.grace_seconds if has("grace_seconds") else None
    task.__class__ = Task
    made: Task = task
    return made


def _gang(message: pb.Gang) -> Gang:
    return Gang(id=message.id, minimum=message.minimum, members=message.members)
