"""From messages to the values of the contract.

What a message lacks and the contract requires becomes `None`, never zero: core then refuses the row or the task by its
name, as it does for a plugin in its own process.

Rows and tasks, which come in thousands, are read by `many`.
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
    ResourceCapability,
    ResourceName,
    Resources,
    TaskList,
    TaskPlacement,
)
from fallow_hookspecs.copilot import enums
from fallow_hookspecs.copilot.many import Newest, if_set, process
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


def capacity_report(message: pb.CapacityReport, newest: Newest | None = None) -> CapacityReport:
    """A report. `newest` remembers its rows, whose ages are taken out of the message."""
    return CapacityReport(
        capabilities=_capabilities(message.capabilities),
        rows=(newest or Newest()).rows(message.rows),
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


def task_list(message: pb.TaskList, newest: Newest | None = None) -> TaskList:
    """A list of tasks. `newest` remembers them, and their ages are taken out of the message."""
    return TaskList(
        tasks=(newest or Newest()).tasks(message.tasks),
        age_seconds=if_set(message, "age_seconds"),
        complete=message.complete,
        daemons=tuple(
            Daemon(process=process(each.process), framework_node=if_set(each, "framework_node"))
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
                movable=tuple(map(process, each.movable)),
                setting=each.setting,
            )
            for each in message.tasks
        ),
        reason=message.reason,
    )


def findings(message: pb.DiagnoseResponse) -> tuple[Finding, ...]:
    """What an operator should know."""
    return tuple(
        Finding(subject=each.subject, ok=if_set(each, "ok"), detail=each.detail, advice=each.advice)
        for each in message.findings
    )


def _kill_answer(number: int, reason: str) -> KillAnswer:
    result: Any = enums.KILL_RESULTS.get(number)
    return KillAnswer(result=result, reason=reason)


def _resources(message: pb.Resources) -> Resources:
    return Resources(if_set(message, "cpu_milli"), if_set(message, "memory_bytes"))


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
        offer_lasts_seconds=if_set(message, "offer_lasts_seconds"),
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
        progress=if_set(message, "progress"),
        master_task_ids=tuple(message.master_task_ids),
    )
