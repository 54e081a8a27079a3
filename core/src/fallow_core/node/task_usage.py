"""The use of each task: the sum over its processes, from one pass over /proc. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from fallow_core.model.task import TaskKey, TaskUsage
from fallow_core.node.process_tree import alive
from fallow_core.node.procfs import ProcessStat
from fallow_hookspecs import Process, Resources

Owners = Mapping[Process, TaskKey]
"""The task that each process belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPass:
    """One pass over all processes, and which of them are batch.

    `cpu_milli`: the use of each batch process since the pass before. `memory_bytes`: its resident memory.
    """

    at: float = 0.0
    processes: Mapping[int, ProcessStat] = field(default_factory=dict)
    batch: frozenset[Process] = frozenset()
    cpu_milli: Mapping[Process, float] = field(default_factory=dict)
    memory_bytes: Mapping[Process, int] = field(default_factory=dict)


def owners(
    processes: Mapping[int, ProcessStat], leading: Mapping[TaskKey, Collection[Process]], before: Owners
) -> dict[Process, TaskKey]:
    """The task of each process: that of its nearest ancestor in `leading`, or the task that it belonged to before.

    A process stays with its task after its parent has ended.
    """
    by_pid = {
        process.pid: key for key, group in leading.items() for process in group if alive(processes, process) is not None
    }
    found: dict[int, TaskKey | None] = {}  # pids are unique within a pass, and much cheaper to look up
    for stat in processes.values():
        path: list[ProcessStat] = []
        current: ProcessStat | None = stat
        owner: TaskKey | None = None
        while current is not None and current.pid not in found:
            path.append(current)
            owner = by_pid.get(current.pid)
            if owner is not None:
                break
            parent = processes.get(current.parent_pid)
            # No process is older than its parent: such a pair was read before and after the pid was reused.
            current = parent if parent is not None and parent.start_ticks <= current.start_ticks else None
        if owner is None and current is not None:
            owner = found.get(current.pid)
        for each in reversed(path):
            owner = by_pid.get(each.pid) or owner or _still(before.get(each.process), leading)
            found[each.pid] = owner
    return {processes[pid].process: owner for pid, owner in found.items() if owner is not None}


def _still(key: TaskKey | None, leading: Mapping[TaskKey, Collection[Process]]) -> TaskKey | None:
    return key if key in leading else None


def unattributed(pass_: BatchPass, owned: Owners, daemons: Collection[Process]) -> Resources:
    """The use of batch processes in one pass that belong to no known task, without that of the daemons."""
    unknown = [p for p in {*pass_.cpu_milli, *pass_.memory_bytes} if p not in owned and p not in daemons]
    return Resources(
        cpu_milli=round(sum(pass_.cpu_milli.get(process, 0.0) for process in unknown)),
        memory_bytes=sum(pass_.memory_bytes.get(process, 0) for process in unknown),
    )


def usages(pass_: BatchPass, owned: Owners) -> dict[TaskKey, TaskUsage]:
    """The use of each task in one pass, without tasks that have no living process."""
    cpu: dict[TaskKey, float] = {}
    memory: dict[TaskKey, int] = {}
    for process, key in owned.items():
        stat = alive(pass_.processes, process)
        if stat is not None and not stat.ended:
            cpu[key] = cpu.get(key, 0.0) + pass_.cpu_milli.get(process, 0.0)
            memory[key] = memory.get(key, 0) + pass_.memory_bytes.get(process, 0)
    return {key: TaskUsage(measured_at=pass_.at, cpu_milli=round(cpu[key]), memory_bytes=memory[key]) for key in cpu}
