"""What each task uses: the processes below its leaders, from the pass over /proc that was made anyway. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from fallow_core.model.task import TaskKey, TaskUsage
from fallow_core.node.process_tree import alive
from fallow_core.node.procfs import ProcessStat
from fallow_hookspecs import Process, Resources

Owners = Mapping[Process, TaskKey]
"""Which task a process belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPass:
    """One pass over all processes, and which of them are batch.

    Of each batch process milli-cores since the pass before, and private resident bytes.
    """

    at: float = 0.0
    processes: Mapping[int, ProcessStat] = field(default_factory=dict)
    batch: frozenset[Process] = frozenset()
    cpu_milli: Mapping[Process, float] = field(default_factory=dict)
    private_bytes: Mapping[Process, int] = field(default_factory=dict)


def owners(
    processes: Mapping[int, ProcessStat], leaders: Mapping[TaskKey, Collection[Process]], before: Owners
) -> dict[Process, TaskKey]:
    """The task of each process: that of its nearest ancestor which leads one, or the one it belonged to before.

    A process stays with its task when its parent ends, so that nothing a task started gets lost.
    """
    leading = {
        process.pid: key for key, group in leaders.items() for process in group if alive(processes, process) is not None
    }
    found: dict[int, TaskKey | None] = {}  # by pid, which within one pass says as much and is far cheaper to look up
    for stat in processes.values():
        path: list[ProcessStat] = []
        current: ProcessStat | None = stat
        owner: TaskKey | None = None
        while current is not None and current.pid not in found:
            path.append(current)
            owner = leading.get(current.pid)
            if owner is not None:
                break
            parent = processes.get(current.parent_pid)
            # Nobody is older than a parent: such a one was read when the pid of its parent was still another's.
            current = parent if parent is not None and parent.start_ticks <= current.start_ticks else None
        if owner is None and current is not None:
            owner = found.get(current.pid)
        for each in reversed(path):
            owner = leading.get(each.pid) or owner or _still(before.get(each.process), leaders)
            found[each.pid] = owner
    return {processes[pid].process: owner for pid, owner in found.items() if owner is not None}


def _still(key: TaskKey | None, leaders: Mapping[TaskKey, Collection[Process]]) -> TaskKey | None:
    return key if key in leaders else None


def unattributed(pass_: BatchPass, owned: Owners, daemons: Collection[Process]) -> Resources:
    """What batch processes used in one pass that belong to no known task: it cannot be told whose they are.

    The daemons themselves are left out. A process that lost its task stays with it as long as that is listed.
    """
    nobodys = [p for p in {*pass_.cpu_milli, *pass_.private_bytes} if p not in owned and p not in daemons]
    return Resources(
        cpu_milli=round(sum(pass_.cpu_milli.get(process, 0.0) for process in nobodys)),
        memory_bytes=sum(pass_.private_bytes.get(process, 0) for process in nobodys),
    )


def usages(pass_: BatchPass, owned: Owners) -> dict[TaskKey, TaskUsage]:
    """What each task used in one pass; a task without a living process is left out."""
    cpu: dict[TaskKey, float] = {}
    memory: dict[TaskKey, int] = {}
    for process, key in owned.items():
        stat = alive(pass_.processes, process)
        if stat is not None and not stat.ended:
            cpu[key] = cpu.get(key, 0.0) + pass_.cpu_milli.get(process, 0.0)
            memory[key] = memory.get(key, 0) + pass_.private_bytes.get(process, 0)
    return {key: TaskUsage(measured_at=pass_.at, cpu_milli=round(cpu[key]), memory_bytes=memory[key]) for key in cpu}
