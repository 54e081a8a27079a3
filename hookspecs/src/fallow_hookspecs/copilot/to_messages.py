"""From the values of the contract to messages.

Fields are set one by one, because that is the fastest way to fill a message: a report has thousands of rows, a list of
tasks is asked for every second. What is `None`, or what a missing field means, is left out.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from google.protobuf.message import Message

from fallow_hookspecs import (
    Capabilities,
    CapacityReport,
    Finding,
    KillOrder,
    KillOutcome,
    Node,
    Offer,
    OfferAnswer,
    Placement,
    Plugin,
    Process,
    ReportRow,
    ResourceCapability,
    Resources,
    Task,
    TaskList,
    TaskRole,
)
from fallow_hookspecs.copilot import enums
from fallow_hookspecs.copilot.v0 import copilot_pb2 as pb

_log = logging.getLogger("fallow.copilot")
_T = TypeVar("_T")


def description(plugin: Plugin, distribution: str, version: str, hooks: Iterable[str]) -> pb.DescribeResponse:
    """Who a plugin is. `hooks` are the names of those it implements."""
    lowest, highest = plugin.api_levels
    return pb.DescribeResponse(
        name=plugin.name,
        version=version,
        distribution=distribution,
        lowest_api_level=lowest,
        highest_api_level=highest,
        hooks=hooks,
        pod_selector=plugin.pod_selector,
    )


def report_request(nodes: Iterable[Node], offers: Iterable[Offer]) -> pb.ReportCapacityRequest:
    """The arguments of `report_capacity`."""
    message = pb.ReportCapacityRequest()
    for node in nodes:
        _node(message.nodes.add(), node)
    for offer in offers:
        target = message.offers.add(node=offer.node, framework_node=offer.framework_node)
        _resources(target.total, offer.total)
        for name, seconds in offer.take_back.items():
            setattr(target.take_back, f"{name}_notice_seconds", seconds)
    return message


def list_request(node: Node) -> pb.ListTasksRequest:
    """The argument of `list_tasks`."""
    message = pb.ListTasksRequest()
    _node(message.node, node)
    return message


def kill_request(node: Node, order: KillOrder) -> pb.KillTasksRequest:
    """The arguments of `kill_tasks`."""
    message = pb.KillTasksRequest(task_ids=order.task_ids, reason=order.reason, force=order.force)
    _node(message.node, node)
    return message


def place_request(node: Node, parent: str) -> pb.SetCgroupParentRequest:
    """The arguments of `set_cgroup_parent`."""
    message = pb.SetCgroupParentRequest(parent=parent)
    _node(message.node, node)
    return message


def diagnose_request(nodes: Iterable[Node]) -> pb.DiagnoseRequest:
    """The argument of `diagnose`."""
    message = pb.DiagnoseRequest()
    for node in nodes:
        _node(message.nodes.add(), node)
    return message


def capacity_report(report: CapacityReport) -> pb.CapacityReport:
    """A report. A row that cannot be carried is left with its names alone, and so is refused by core."""
    message = pb.CapacityReport(detail=report.detail)
    _capabilities(message.capabilities, report.capabilities)
    _fill(message.rows.add, report.rows, _row, ("node", "framework_node"))
    for answer in report.answers:
        _answer(message.answers.add(), answer)
    if report.pending is not None:
        message.pending.detail = report.pending.detail
        message.pending.SetInParent()
        _resources(message.pending.total, report.pending.total)
        _resources_if(message.pending, "smallest", report.pending.smallest)
        _resources_if(message.pending, "largest", report.pending.largest)
    _resources_if(message, "largest_elsewhere", report.largest_elsewhere)
    for each in report.applications:
        message.applications.add(
            id=each.id,
            name=each.name,
            user=each.user,
            queue=each.queue,
            kind=each.kind,
            priority=each.priority,
            progress=each.progress,
            master_task_ids=each.master_task_ids,
        )
    for gang in report.gangs:
        message.gangs.add(id=gang.id, minimum=gang.minimum, running=gang.running)
    return message


def task_list(listed: TaskList) -> pb.TaskList:
    """A list of tasks. A task that cannot be carried is left with its names alone, and so is refused by core."""
    message = pb.TaskList(
        age_seconds=listed.age_seconds, complete=listed.complete, incomplete_reason=listed.incomplete_reason
    )
    _fill(message.tasks.add, listed.tasks, _task, ("id", "application_id", "framework_node"))
    for daemon in listed.daemons:
        target = message.daemons.add(framework_node=daemon.framework_node)
        _process(target.process, daemon.process)
    return message


def kill_outcome(outcome: KillOutcome) -> pb.KillOutcome:
    """What became of the tasks of an order."""
    message = pb.KillOutcome()
    answers = message.answers
    for task_id, answer in outcome.answers.items():
        target = answers[task_id]
        target.result = enums.KILL_RESULT_NUMBERS[answer.result]  # type: ignore[assignment] # a number is one
        if answer.reason:
            target.reason = answer.reason
    return message


def placement(placed: Placement) -> pb.Placement:
    """Where tasks are in the cgroup tree."""
    message = pb.Placement(new_tasks_follow=placed.new_tasks_follow, reason=placed.reason)
    for task in placed.tasks:
        target = message.tasks.add(task_id=task.task_id, cgroups=task.cgroups, setting=task.setting)
        for process in task.movable:
            _process(target.movable.add(), process)
    return message


def findings(found: Iterable[Finding]) -> pb.DiagnoseResponse:
    """What an operator should know."""
    message = pb.DiagnoseResponse()
    for each in found:
        message.findings.add(subject=each.subject, ok=each.ok, detail=each.detail, advice=each.advice)
    return message


def _fill(add: Callable[[], Any], items: Iterable[_T], put: Callable[[Any, _T], None], names: tuple[str, ...]) -> None:
    """One message for each item; of one that cannot be put into a message only its names."""
    for item in items:
        message = add()
        try:
            put(message, item)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            _log.warning("not carried but for its names: %.300r: %s", item, error)
            message.Clear()
            for name in names:
                value = getattr(item, name, None)
                if isinstance(value, str) and value.isprintable():
                    setattr(message, name, value)


def _node(message: pb.Node, node: Node) -> None:
    message.name = node.name
    message.addresses.extend(node.addresses)
    message.labels.update(node.labels)
    message.annotations.update(node.annotations)
    for pod in node.pods:
        message.pods.add(
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            labels=pod.labels,
            annotations=pod.annotations,
            addresses=pod.addresses,
        )


def _resources(message: pb.Resources, amounts: Resources) -> None:
    message.cpu_milli = amounts.cpu_milli
    message.memory_bytes = amounts.memory_bytes


def _resources_if(message: Message, field: str, amounts: Resources | None) -> None:
    if amounts is not None:
        _resources(getattr(message, field), amounts)


def _capability(message: pb.ResourceCapability, capability: ResourceCapability) -> None:
    message.honoured = capability.honoured
    message.takes_back = capability.takes_back
    message.take_back_charged = capability.take_back_charged


def _capabilities(message: pb.Capabilities, capabilities: Capabilities) -> None:
    _capability(message.cpu, capabilities.cpu)
    _capability(message.memory, capabilities.memory)
    message.ends_single_tasks = capabilities.ends_single_tasks
    message.ends_gracefully = capabilities.ends_gracefully
    message.reports_progress = capabilities.reports_progress
    message.has_gangs = capabilities.has_gangs
    if capabilities.offer_lasts_seconds is not None:
        message.offer_lasts_seconds = capabilities.offer_lasts_seconds


def _answer(message: pb.OfferAnswer, answer: OfferAnswer) -> None:
    message.node = answer.node
    message.framework_node = answer.framework_node
    message.reason = answer.reason
    _resources_if(message, "accepted", answer.accepted)
    if answer.refusal is not None:
        message.refusal = enums.REFUSAL_NUMBERS[answer.refusal]  # type: ignore[assignment] # a number is one


def _row(message: pb.ReportRow, row: ReportRow) -> None:
    message.node = row.node
    message.framework_node = row.framework_node
    message.age_seconds = row.age_seconds
    message.state = enums.NODE_STATE_NUMBERS[row.state]  # type: ignore[assignment] # a number is one
    message.allocated_cpu_milli = row.allocated.cpu_milli
    message.allocated_memory_bytes = row.allocated.memory_bytes
    message.unit_cpu_milli = row.unit.cpu_milli
    message.unit_memory_bytes = row.unit.memory_bytes
    message.floor_cpu_milli = row.floor.cpu_milli
    message.floor_memory_bytes = row.floor.memory_bytes
    if row.in_force is not None:
        message.in_force_cpu_milli = row.in_force.cpu_milli
        message.in_force_memory_bytes = row.in_force.memory_bytes
    if row.maximum is not None:
        message.maximum_cpu_milli = row.maximum.cpu_milli
        message.maximum_memory_bytes = row.maximum.memory_bytes
    if row.started_age_seconds is not None:
        message.started_age_seconds = row.started_age_seconds


def _process(message: pb.Process, process: Process) -> None:
    message.pid = process.pid
    message.start_ticks = process.start_ticks


def _task(message: pb.Task, task: Task) -> None:  # noqa: C901 - one field after the other
    message.id = task.id
    message.application_id = task.application_id
    message.framework_node = task.framework_node
    message.state = enums.TASK_STATE_NUMBERS[task.state]  # type: ignore[assignment] # a number is one
    message.requested_cpu_milli = task.requested.cpu_milli
    message.requested_memory_bytes = task.requested.memory_bytes
    if task.role is not TaskRole.WORKER:
        message.role = enums.TASK_ROLE_NUMBERS[task.role]  # type: ignore[assignment] # a number is one
    if task.priority:
        message.priority = task.priority
    if task.opportunistic:
        message.opportunistic = task.opportunistic
    if task.kept_share:
        message.kept_share = task.kept_share
    if not task.may_be_ended:
        message.may_be_ended = False
    if task.age_seconds is not None:
        message.age_seconds = task.age_seconds
    if task.terminating_age_seconds is not None:
        message.terminating_age_seconds = task.terminating_age_seconds
    if task.progress is not None:
        message.progress = task.progress
    if task.ends_in_seconds is not None:
        message.ends_in_seconds = task.ends_in_seconds
    if task.grace_seconds is not None:
        message.grace_seconds = task.grace_seconds
    if task.pod_uid is not None:
        message.pod_uid = task.pod_uid
    if task.gang is not None:
        gang = message.gang
        gang.id, gang.minimum, gang.members = task.gang.id, task.gang.minimum, task.gang.members
        gang.SetInParent()
    if task.cgroups:
        message.cgroups.extend(task.cgroups)
    for process in task.processes:
        _process(message.processes.add(), process)
