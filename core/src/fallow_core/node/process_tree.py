"""Finds the batch processes: the daemons of frameworks and their descendants. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from fallow_core.node.procfs import ProcessStat
from fallow_hookspecs import Process


def batch_processes(
    processes: Mapping[int, ProcessStat], daemons: Iterable[Process], before: AbstractSet[Process]
) -> frozenset[Process]:
    """The living daemons, the living processes that were batch `before`, and all descendants of both.

    A task whose daemon was killed becomes a child of init, and stays batch because it was batch before. A pid with
    another start time is another process, which is batch only if an ancestor is.
    """
    children: defaultdict[int, list[ProcessStat]] = defaultdict(list)
    for stat in processes.values():
        children[stat.parent_pid].append(stat)
    pending = [root for process in (*daemons, *before) if (root := alive(processes, process)) is not None]
    batch: dict[int, Process] = {}
    while pending:
        stat = pending.pop()
        if stat.pid not in batch:
            batch[stat.pid] = stat.process
            # No process is older than its parent: such a pair was read before and after the pid was reused.
            pending.extend(child for child in children[stat.pid] if child.start_ticks >= stat.start_ticks)
    return frozenset(batch.values())


def alive(processes: Mapping[int, ProcessStat], process: Process | ProcessStat) -> ProcessStat | None:
    """The process in this pass; `None` if it has ended, even if its pid was reused."""
    stat = processes.get(process.pid)
    return stat if stat is not None and stat.start_ticks == process.start_ticks else None


def self_and_ancestors(processes: Mapping[int, ProcessStat], pid: int) -> frozenset[int]:
    """The pids of a process and of all its ancestors."""
    pids: set[int] = set()
    stat = processes.get(pid)
    while stat is not None and stat.pid not in pids:
        pids.add(stat.pid)
        stat = processes.get(stat.parent_pid)
    return frozenset(pids)
