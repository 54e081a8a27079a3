"""Finds the processes of each container on this host.

A NodeManager starts a launcher for each container: a shell script, or the setuid program container-executor. It stays
in the NodeManager's session; the container is its child, in a session of its own. Below that child the kernel's own
records are proof: no process can join another session or choose its parent. So it has to be proven only that a *root*,
a session leader or what it left behind, belongs to a container. Any of these proves it:

- it is the child of a launcher of one of our NodeManagers that names the container;
- it is in a cgroup directory named by the container's id;
- its environment is a container's, and it is below a NodeManager, or it or its launcher is an orphan. Its user has to
  be that of the container's other roots: a task of another user cannot claim to be part of the container;
- its environment is a container's, and its parent is a container engine's monitor that runs as root.

A command line that names a container proves nothing by itself (a user may read its log), nor does a pid file, which
tasks can write. What was proven once holds until the process ends.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fallow_hookspecs import Process
from fallow_yarn.nm.procfs import (
    PROC_ROOT,
    SETTLED_TICKS,
    Stat,
    container_of,
    now_ticks,
    read_all,
    read_cgroups,
    read_environment,
    read_named,
    read_user,
)
from fallow_yarn.tasks.process_tree import MONITORS, Processes, ProcessTree, living


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """What one search leaves for the next. By pid, with the start time that identifies the process: `owners`, the
    container of a process, and `strangers`, leaders that belong to no container and are not examined again.

    `launched`: roots that were proven by their launchers. `daemon_sessions`: see `ProcessTree`. `stats`: all processes.
    `is_settled`: the same processes would give the same result.
    """

    owners: Mapping[int, tuple[int, str]] = field(default_factory=dict)
    strangers: Mapping[int, int] = field(default_factory=dict)
    launched: frozenset[Process] = frozenset()
    found: Mapping[str, Processes] = field(default_factory=dict)
    daemons: frozenset[Process] = frozenset()
    daemon_sessions: frozenset[int] = frozenset()
    stats: Mapping[int, Stat] = field(default_factory=dict)
    is_settled: bool = False


class ContainerProcesses:
    """Finds the processes of containers, and remembers what was proven.

    Threads may share one without waiting for each other: of two searches at the same time the later result stays.
    """

    def __init__(self, proc_root: Path = PROC_ROOT, clock: Callable[[], int] = now_ticks) -> None:
        self._proc_root = proc_root
        self._clock = clock
        self._memory = _Memory()

    def find(self, daemons: Iterable[Process], stats: Mapping[int, Stat] | None = None) -> Mapping[str, Processes]:
        """The containers that have living processes, by id.

        `daemons` are all NodeManagers of this host; `stats` are all its processes, where they have been read already.
        """
        stats, memory = read_all(self._proc_root) if stats is None else stats, self._memory
        daemons = living(daemons, stats)
        if not (memory.is_settled and stats == memory.stats and daemons == memory.daemons):
            tree = ProcessTree(stats, daemons, memory.daemon_sessions)
            self._memory = memory = _Search(self._proc_root, memory, tree).result(self._clock())
        return memory.found

    def __contains__(self, process: object) -> bool:
        """Whether a process was found to belong to a container, in the newest search that saw it."""
        if not isinstance(process, Process):
            return False
        start_ticks, _ = self._memory.owners.get(process.pid, (None, ""))
        return start_ticks == process.start_ticks

    @property
    def found(self) -> Mapping[str, Processes]:
        """The result of the newest search."""
        return self._memory.found


class _Search:
    """One search through all processes."""

    def __init__(self, proc_root: Path, before: _Memory, tree: ProcessTree) -> None:
        self._proc_root = proc_root
        self._before = before
        self._tree = tree
        self._owners = {
            pid: owner
            for pid, (start_ticks, owner) in before.owners.items()
            if (stat := tree.stats.get(pid)) is not None and stat.start_ticks == start_ticks
        }
        self._launched = {process for process in before.launched if tree.has(process)}

    def result(self, now: int) -> _Memory:
        """The container of each process that is proven to belong to one, now or before."""
        tree = self._tree
        # After a change of the NodeManagers a stranger may be below a new one.
        strangers = self._before.strangers if tree.daemons == self._before.daemons else {}
        new = [s for s in tree.leaders() if s.pid not in self._owners and strangers.get(s.pid) != s.start_ticks]
        for leader in new:
            if (container_id := self._launched_as(leader)) is not None:
                self._unmask(leader, container_id)
                self._launched.add(leader.process)
                tree.assign(leader, container_id)
        for pid, owner in self._owners.items():
            tree.assign(tree.stats[pid], owner)
        for leader in new:
            if leader.pid not in tree.owners and (container_id := self._named_as(leader)) is not None:
                tree.assign(leader, container_id)
        strange = {s.pid: s.start_ticks for s in new if s.pid not in tree.owners}
        settled = {pid: start_ticks for pid, start_ticks in strange.items() if start_ticks < now - SETTLED_TICKS}
        kept = {pid: start_ticks for pid, start_ticks in strangers.items() if tree.has(Process(pid, start_ticks))}
        return _Memory(
            owners={pid: (tree.stats[pid].start_ticks, owner) for pid, owner in tree.owners.items()},
            strangers=kept | settled,
            launched=frozenset(self._launched),
            found=tree.found(),
            daemons=tree.daemons,
            daemon_sessions=tree.daemon_sessions,
            stats=tree.stats,
            is_settled=settled == strange,
        )

    def _launched_as(self, leader: Stat) -> str | None:
        """The container of a session leader, proven by its launcher."""
        launcher = self._tree.launcher_of(leader)
        named = set() if launcher is None else read_named(self._proc_root, launcher.pid)
        return named.pop() if len(named) == 1 else None

    def _named_as(self, leader: Stat) -> str | None:
        """The container of a session leader, proven by its cgroup or its environment."""
        container_id = container_of(read_cgroups(self._proc_root, leader.pid)) or self._claimed_by(leader)
        if container_id is None or self._is_run_by_engine(leader):
            return container_id
        users = self._users_of(container_id)
        return container_id if not users or read_user(self._proc_root, leader.pid) in users else None

    def _claimed_by(self, leader: Stat) -> str | None:
        """The container that a leader's environment names, if the leader's position in the tree makes that possible."""
        environment = read_environment(self._proc_root, leader.pid)
        if environment is None or (self._tree.is_left(leader) and self._tree.may_be_launcher(leader)):
            return None
        launcher = self._tree.orphan_above(leader)
        named = set() if launcher is None else read_named(self._proc_root, launcher.pid)
        is_possible = self._tree.is_possible(leader) or environment.container_id in named
        return environment.container_id if is_possible or self._is_run_by_engine(leader) else None

    def _is_run_by_engine(self, leader: Stat) -> bool:
        """Whether its parent is a container engine's monitor of root, which no task can be."""
        parent = self._tree.orphan_above(leader)
        return parent is not None and parent.name in MONITORS and read_user(self._proc_root, parent.pid) == 0

    def _unmask(self, leader: Stat, container_id: str) -> None:
        """Forget processes of another user that claimed the container before its own root was launched."""
        if self._users_of(container_id) - {read_user(self._proc_root, leader.pid)}:
            launched = {process.pid for process in self._launched}
            masked = (pid for pid, owner in self._owners.items() if owner == container_id and pid not in launched)
            for pid in list(masked):
                del self._owners[pid]

    def _users_of(self, container_id: str) -> set[int | None]:
        known = self._before.found.get(container_id)
        roots = () if known is None else (stat for stat in known.roots if self._owners.get(stat.pid) == container_id)
        return {read_user(self._proc_root, stat.pid) for stat in roots} - {None}
