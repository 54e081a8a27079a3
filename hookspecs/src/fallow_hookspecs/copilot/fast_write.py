"""The rows of a report and the tasks of a list as messages, written field by field: that is faster than `codec`.

A report of 5,000 nodes is to take 50 ms through the copilot, and 100 listed tasks 1 ms. What is `None`, or what a
missing field means, is left out.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from fallow_hookspecs.capacity import NodeState, ReportRow
from fallow_hookspecs.copilot.codec import numbers
from fallow_hookspecs.copilot.v0 import copilot_pb2 as pb
from fallow_hookspecs.tasks import Task, TaskRole, TaskState

_log = logging.getLogger("fallow.copilot")
_T = TypeVar("_T")

_NODE_STATE_NUMBERS = numbers(NodeState, pb.DESCRIPTOR.enum_types_by_name["NodeState"])
_TASK_STATE_NUMBERS = numbers(TaskState, pb.DESCRIPTOR.enum_types_by_name["TaskState"])
_TASK_ROLE_NUMBERS = numbers(TaskRole, pb.DESCRIPTOR.enum_types_by_name["TaskRole"])


def put_tolerantly(
    add: Callable[[], Any], put: Callable[[Any, _T], None], items: Iterable[_T], names: tuple[str, ...]
) -> None:
    """One message for each item. The message of an item that messages cannot carry has only its names."""
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


def put_row(message: pb.ReportRow, row: ReportRow) -> None:
    """Fill a new message."""
    message.node = row.node
    message.framework_node = row.framework_node
    message.age_seconds = row.age_seconds
    message.state = _NODE_STATE_NUMBERS[row.state]  # type: ignore[assignment] # a number is one
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
    if row.partitions:
        message.partitions.extend(row.partitions)


def put_task(message: pb.Task, task: Task) -> None:  # noqa: C901 - one field after the other
    """Fill a new message."""
    message.id = task.id
    message.application_id = task.application_id
    message.framework_node = task.framework_node
    message.state = _TASK_STATE_NUMBERS[task.state]  # type: ignore[assignment] # a number is one
    message.requested_cpu_milli = task.requested.cpu_milli
    message.requested_memory_bytes = task.requested.memory_bytes
    if task.role is not TaskRole.WORKER:
        message.role = _TASK_ROLE_NUMBERS[task.role]  # type: ignore[assignment] # a number is one
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
        target = message.processes.add()
        target.pid, target.start_ticks = process.pid, process.start_ticks
