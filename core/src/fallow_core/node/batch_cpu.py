"""CPU time of batch between two passes over the processes. Pure.

    used = Σ (now − before) over the batch processes that live
         − Σ what those that ended had used at the pass before

When a process ends, all CPU time that it ever used is added to its parent's counter of reaped time, of which the part
up to the pass before was counted already. The subtraction is done for each parent, so it never exceeds what that parent
reaped. If no process of the tree reaped it (the parent ended first, and init waited for the process), its time is in no
counter. Then its last rate is assumed for one more interval, so that the last moments of a task do not count as use of
the system.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from fallow_core.errors import SampleError
from fallow_core.node.process_tree import alive
from fallow_core.node.procfs import ProcessStat
from fallow_hookspecs import Process


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCpu:
    """Batch at one pass, and the CPU time that it used since the pass before.

    `rates`: ticks a second of each batch process. `owed`: ticks of ended children that a process had not reaped when it
    was read; it may have been read just before it waited for them.
    """

    processes: Mapping[int, ProcessStat]
    batch: frozenset[Process]
    used_ticks: float = 0.0
    rates: Mapping[Process, float] = field(default_factory=dict)
    owed: Mapping[Process, int] = field(default_factory=dict)


def next_batch_cpu(
    before: BatchCpu, processes: Mapping[int, ProcessStat], batch: frozenset[Process], elapsed_seconds: float
) -> BatchCpu:
    """What batch used in the `elapsed_seconds` since `before`.

    :raises SampleError: a counter went backwards.
    """
    ended = _ended_by_ancestor(before, processes, batch)
    newest_start = max((stat.start_ticks for stat in before.processes.values()), default=0)
    ticks: dict[Process, int] = {}
    owed: dict[Process, int] = {}
    unreaped = ended.pop(None, [])
    for process in batch:
        own, reaped = _grown(before, processes[process.pid], newest_start)
        children = ended.get(process, [])
        counted = sum(before.processes[child.pid].total_ticks for child in children)
        if reaped < counted:
            owed[process] = counted - reaped
            unreaped += children
        ticks[process] = own + max(0, reaped - counted - before.owed.get(process, 0))
    assumed_ticks = sum(before.rates.get(process, 0.0) for process in unreaped) * elapsed_seconds
    return BatchCpu(
        processes=processes,
        batch=batch,
        used_ticks=sum(ticks.values()) + assumed_ticks,
        rates={process: grown / elapsed_seconds for process, grown in ticks.items()},
        owed=owed,
    )


def _ended_by_ancestor(
    before: BatchCpu, processes: Mapping[int, ProcessStat], batch: frozenset[Process]
) -> dict[Process | None, list[Process]]:
    """The ended processes by their nearest living ancestor; by `None` if that one is not batch.

    Processes that were not batch are included: below a batch ancestor they may be batch of a daemon that was not known.
    """
    ended: defaultdict[Process | None, list[Process]] = defaultdict(list)
    for stat in before.processes.values():
        if alive(processes, stat) is not None:
            continue
        ancestor = before.processes.get(stat.parent_pid)
        while ancestor is not None and alive(processes, ancestor) is None:
            ancestor = before.processes.get(ancestor.parent_pid)
        owner = ancestor.process if ancestor is not None and ancestor.process in batch else None
        ended[owner].append(stat.process)
    return ended


def _grown(before: BatchCpu, stat: ProcessStat, newest_start: int) -> tuple[int, int]:
    """Own and reaped ticks since the pass before.

    A new process counts in full. If it is older than a process of the pass before, it was hidden then, and its time is
    not of this interval.
    """
    last = alive(before.processes, stat)
    if last is None:
        return (stat.own_ticks, stat.reaped_ticks) if stat.start_ticks >= newest_start else (0, 0)
    own, reaped = stat.own_ticks - last.own_ticks, stat.reaped_ticks - last.reaped_ticks
    if own < 0 or reaped < 0:
        raise SampleError(
            f"process {stat.pid}: its CPU time went backwards, from {last.total_ticks} to {stat.total_ticks} ticks"
        )
    return own, reaped
