"""From messages to the values of the contract.

What a message lacks and the contract requires becomes `None`, never zero: core then refuses the row or the task by its
name, as it does for a plugin in its own process. The order of tests is for speed: a field that is not zero is there.
"""

from collections.abc import Iterable
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
    )


def task_list(message: pb.TaskList) -> TaskList:
    """A list of tasks."""
    return TaskList(
        tasks=tuple([_task(each) for each in message.tasks]),
        age_seconds=_number(message, "age_seconds"),
        complete=message.complete,
        daemons=tuple(
            Daemon(process=_process(each.process), framework_node=_if_set(each, "framework_node"))
            for each in message.daemons
        ),
        incomplete_reason=message.incomplete_reason,
    )


def kill_outcome(message: pb.KillOutcome) -> KillOutcome:
    """What became of the tasks of an order."""
    return KillOutcome(
        answers={
            task_id: KillAnswer(result=_known(enums.KILL_RESULTS, answer.result), reason=answer.reason)
            for task_id, answer in message.answers.items()
        }
    )


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


_number = _if_set


def _known(values: dict[int, Any], number: int) -> Any:
    return values.get(number)


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


def _rows(messages: Iterable[pb.ReportRow]) -> tuple[ReportRow, ...]:
    sizes = _Sizes()
    return tuple(
        [
            ReportRow(
                node=row.node,
                framework_node=row.framework_node,
                age_seconds=row.age_seconds or _number(row, "age_seconds"),
                state=_known(enums.NODE_STATES, row.state),
                allocated=sizes.of(row, "allocated", row.allocated_cpu_milli, row.allocated_memory_bytes),
                in_force=sizes.of(row, "in_force", row.in_force_cpu_milli, row.in_force_memory_bytes),
                unit=sizes.of(row, "unit", row.unit_cpu_milli, row.unit_memory_bytes),
                floor=sizes.of(row, "floor", row.floor_cpu_milli, row.floor_memory_bytes),
                maximum=sizes.of(row, "maximum", row.maximum_cpu_milli, row.maximum_memory_bytes),
                started_age_seconds=row.started_age_seconds or _if_set(row, "started_age_seconds"),
            )
            for row in messages
        ]
    )


class _Sizes:
    """The sizes of a report's rows. Most are those of other rows too, and are made once."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, int], Resources] = {}

    def of(self, row: pb.ReportRow, name: str, cpu_milli: int, memory_bytes: int) -> Any:
        """The size of this name; `None` where neither of its fields is set."""
        if cpu_milli and memory_bytes:
            key = (cpu_milli, memory_bytes)
            found = self._made.get(key)
            if found is None:
                found = self._made[key] = Resources(cpu_milli, memory_bytes)
            return found
        cpu, memory = _if_set(row, f"{name}_cpu_milli"), _if_set(row, f"{name}_memory_bytes")
        return None if cpu is None and memory is None else Resources(cpu, memory)


def _process(message: pb.Process) -> Process:
    return Process(_if_set(message, "pid"), _if_set(message, "start_ticks"))


def _task(task: pb.Task) -> Task:
    return Task(
        id=task.id,
        application_id=task.application_id,
        framework_node=task.framework_node,
        state=_known(enums.TASK_STATES, task.state),
        requested=_requested(task),
        role=enums.TASK_ROLES.get(task.role, TaskRole.WORKER),
        age_seconds=task.age_seconds or _if_set(task, "age_seconds"),
        ending_age_seconds=task.ending_age_seconds or _if_set(task, "ending_age_seconds"),
        priority=task.priority,
        opportunistic=task.opportunistic,
        progress=task.progress or _if_set(task, "progress"),
        ends_in_seconds=task.ends_in_seconds or _if_set(task, "ends_in_seconds"),
        kept_share=task.kept_share,
        gang=_gang(task.gang) if task.HasField("gang") else None,
        pod_uid=task.pod_uid or _if_set(task, "pod_uid"),
        cgroups=tuple(task.cgroups),
        processes=tuple([_process(each) for each in task.processes]),
        may_be_ended=task.may_be_ended or not task.HasField("may_be_ended"),
        grace_seconds=task.grace_seconds or _if_set(task, "grace_seconds"),
    )


def _requested(task: pb.Task) -> Resources:
    return Resources(
        task.requested_cpu_milli or _number(task, "requested_cpu_milli"),
        task.requested_memory_bytes or _number(task, "requested_memory_bytes"),
    )


def _gang(message: pb.Gang) -> Gang:
    return Gang(id=message.id, minimum=message.minimum, members=message.members)
