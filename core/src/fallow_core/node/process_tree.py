"""Which processes are batch: the daemons of frameworks, and all that runs below them. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from fallow_core.node.procfs import ProcessStat
from fallow_hookspecs import Process


def batch_processes(
    processes: Mapping[int, ProcessStat], daemons: Iterable[Process], before: AbstractSet[Process]
) -> frozenset[Process]:
    """The daemons that live, those that were batch `before` and still live, and all descendants of both.

    A task whose daemon was killed becomes a child of init; it stays batch because it was batch before. A pid that
    has another start time now is another process, and is batch only if something above it is.
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
            # Nobody is older than a parent: such a one was read when the pid of its parent was still another's.
            pending.extend(child for child in children[stat.pid] if child.start_ticks >= stat.start_ticks)
    return frozenset(batch.values())


def alive(processes: Mapping[int, ProcessStat], process: Process | ProcessStat) -> ProcessStat | None:
    """The process in this pass, unless it has ended or its pid is another's now."""
    stat = processes.get(process.pid)
    return stat if stat is not None and stat.start_ticks == process.start_ticks else None


def line_of(processes: Mapping[int, ProcessStat], pid: int) -> frozenset[int]:
    """The pids of a process and of all above it."""
    line: set[int] = set()
    stat = processes.get(pid)
    while stat is not None and stat.pid not in line:
        line.add(stat.pid)
        stat = processes.get(stat.parent_pid)
    return frozenset(line)
