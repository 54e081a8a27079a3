"""From messages to values, for what comes in thousands: the rows of a report, and the tasks of a list.

They are read in ways that are faster than they look. What is as it was in the newest answer, but for its age, is not
read again. A field that is not zero is there, and need not be asked about. A value is filled before it is frozen.
"""

from collections.abc import Iterable
from typing import Any

from google.protobuf.message import Message

from fallow_hookspecs import Gang, Process, ReportRow, Resources, Task, TaskRole
from fallow_hookspecs.copilot import enums
from fallow_hookspecs.copilot.v0 import copilot_pb2 as pb


def if_set(message: Message, field: str) -> Any:
    """The value of a field, `None` where it is left out. `Any`: core checks what has to be there."""
    return getattr(message, field) if message.HasField(field) else None


def _unfrozen(kind: type) -> Any:
    """A class with the same fields as a frozen dataclass, whose objects become that dataclass's by `__class__`.

    The constructor of a frozen dataclass sets each field by a call of its own, and that would be half of what reading a
    report costs.
    """
    return type(kind.__name__, (), {"__slots__": kind.__slots__})  # type: ignore[attr-defined] # each value has them


_UnfrozenResources, _UnfrozenRow = _unfrozen(Resources), _unfrozen(ReportRow)
_UnfrozenProcess, _UnfrozenTask = _unfrozen(Process), _unfrozen(Task)


class Newest:
    """Reads the rows and tasks of one copilot, and remembers the newest of them, by their bytes without their ages."""

    def __init__(self) -> None:
        self._rows: dict[bytes, ReportRow] = {}
        self._tasks: dict[bytes, Task] = {}

    def rows(self, messages: Iterable[pb.ReportRow]) -> tuple[ReportRow, ...]:
        """The rows of a report. Their ages are taken out of the messages."""
        known, newest, sizes, made = self._rows, {}, _Sizes(), []
        for message in messages:
            age = message.age_seconds or if_set(message, "age_seconds")
            started_age = message.started_age_seconds or if_set(message, "started_age_seconds")
            message.ClearField("age_seconds")
            message.ClearField("started_age_seconds")
            data = message.SerializeToString()
            row = newest[data] = known.get(data) or _row(message, sizes)
            made.append(_aged_row(row, age, started_age))
        self._rows = newest
        return tuple(made)

    def tasks(self, messages: Iterable[pb.Task]) -> tuple[Task, ...]:
        """The tasks of a list. Their ages are taken out of the messages."""
        known, newest, sizes, made = self._tasks, {}, _Sizes(), []
        for message in messages:
            age = message.age_seconds or if_set(message, "age_seconds")
            message.ClearField("age_seconds")
            data = message.SerializeToString()
            task = newest[data] = known.get(data) or _task(message, sizes)
            made.append(_aged_task(task, age))
        self._tasks = newest
        return tuple(made)


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
                found = self._made[key] = Resources(cpu_milli, memory_bytes)
            return found
        cpu, memory = if_set(message, f"{name}_cpu_milli"), if_set(message, f"{name}_memory_bytes")
        return None if cpu is None and memory is None else Resources(cpu, memory)


def _row(message: pb.ReportRow, sizes: _Sizes) -> ReportRow:
    row = _UnfrozenRow()
    row.node = message.node
    row.framework_node = message.framework_node
    row.age_seconds = row.started_age_seconds = None
    row.state = enums.NODE_STATES.get(message.state)
    row.allocated = sizes.of(message, "allocated", message.allocated_cpu_milli, message.allocated_memory_bytes)
    row.in_force = sizes.of(message, "in_force", message.in_force_cpu_milli, message.in_force_memory_bytes)
    row.unit = sizes.of(message, "unit", message.unit_cpu_milli, message.unit_memory_bytes)
    row.floor = sizes.of(message, "floor", message.floor_cpu_milli, message.floor_memory_bytes)
    row.maximum = sizes.of(message, "maximum", message.maximum_cpu_milli, message.maximum_memory_bytes)
    row.__class__ = ReportRow
    made: ReportRow = row
    return made


def _aged_row(row: ReportRow, age_seconds: float, started_age_seconds: float | None) -> ReportRow:
    aged = _UnfrozenRow()
    aged.node = row.node
    aged.framework_node = row.framework_node
    aged.age_seconds = age_seconds
    aged.state = row.state
    aged.allocated = row.allocated
    aged.in_force = row.in_force
    aged.unit = row.unit
    aged.floor = row.floor
    aged.maximum = row.maximum
    aged.started_age_seconds = started_age_seconds
    aged.__class__ = ReportRow
    made: ReportRow = aged
    return made


def process(message: pb.Process) -> Process:
    """A process."""
    made = _UnfrozenProcess()
    made.pid = message.pid or if_set(message, "pid")
    made.start_ticks = message.start_ticks or if_set(message, "start_ticks")
    made.__class__ = Process
    frozen: Process = made
    return frozen


def _task(message: pb.Task, sizes: _Sizes) -> Task:
    task, has = _UnfrozenTask(), message.HasField
    cgroups, processes = message.cgroups, message.processes
    task.id = message.id
    task.application_id = message.application_id
    task.framework_node = message.framework_node
    task.state = enums.TASK_STATES.get(message.state)
    task.requested = sizes.of(message, "requested", message.requested_cpu_milli, message.requested_memory_bytes)
    task.role = enums.TASK_ROLES.get(message.role, TaskRole.WORKER)
    task.age_seconds = None
    task.terminating_age_seconds = message.terminating_age_seconds if has("terminating_age_seconds") else None
    task.priority = message.priority
    task.opportunistic = message.opportunistic
    task.progress = message.progress if has("progress") else None
    task.ends_in_seconds = message.ends_in_seconds if has("ends_in_seconds") else None
    task.kept_share = message.kept_share
    task.gang = _gang(message.gang) if has("gang") else None
    task.pod_uid = message.pod_uid if has("pod_uid") else None
    task.cgroups = tuple(cgroups) if cgroups else ()
    # A slice is a list, which is faster to go through than the field.
    task.processes = tuple([process(each) for each in processes[:]]) if processes else ()
    task.may_be_ended = message.may_be_ended or not has("may_be_ended")
    task.grace_seconds = message.grace_seconds if has("grace_seconds") else None
    task.__class__ = Task
    made: Task = task
    return made


def _aged_task(task: Task, age_seconds: float | None) -> Task:
    aged = _UnfrozenTask()
    aged.id = task.id
    aged.application_id = task.application_id
    aged.framework_node = task.framework_node
    aged.state = task.state
    aged.requested = task.requested
    aged.role = task.role
    aged.age_seconds = age_seconds
    aged.terminating_age_seconds = task.terminating_age_seconds
    aged.priority = task.priority
    aged.opportunistic = task.opportunistic
    aged.progress = task.progress
    aged.ends_in_seconds = task.ends_in_seconds
    aged.kept_share = task.kept_share
    aged.gang = task.gang
    aged.pod_uid = task.pod_uid
    aged.cgroups = task.cgroups
    aged.processes = task.processes
    aged.may_be_ended = task.may_be_ended
    aged.grace_seconds = task.grace_seconds
    aged.__class__ = Task
    made: Task = aged
    return made


def _gang(message: pb.Gang) -> Gang:
    return Gang(id=message.id, minimum=message.minimum, members=message.members)
