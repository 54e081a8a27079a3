"""Which processes of this host belong to which container.

A NodeManager starts a launcher for each container: a shell script, or the setuid program container-executor. It stays
in the NodeManager's session; the container itself is its child, in a session of its own. Below that child the kernel's
own records are proof: nobody can join another's session, and nobody chooses a parent. So what has to be shown is only
that a *root*, a session leader, is a container's. Any of these shows it:

- it is the child of a launcher of one of our NodeManagers that names the container;
- it is in a cgroup directory named by the container's id;
- its environment is a container's, and it is below a NodeManager, or it or its launcher is an orphan. Its user has to
  be that of the container's other roots: another user's task cannot write itself into a container.

A command line that names a container shows nothing by itself (somebody may read its log), nor does a pid file, which
tasks can write. What was shown once stays so as long as the process lives, whatever ends around it.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import Lock

from fallow_hookspecs import Process
from fallow_yarn.nm.processes import (
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
from fallow_yarn.nm.tree import Found, Tree


class Containers:
    """Finds the processes of containers, and remembers what was shown. Threads may share one.

    What is remembered is by pid, with the start time that makes it one process.
    """

    def __init__(self, proc_root: Path = PROC_ROOT, clock: Callable[[], int] = now_ticks) -> None:
        self._proc_root = proc_root
        self._clock = clock
        self._lock = Lock()
        self._owners: dict[int, tuple[int, str]] = {}
        self._strangers: dict[int, int] = {}
        self._launched: set[Process] = set()
        self._found: dict[str, Found] = {}
        self._daemons: frozenset[Process] = frozenset()

    def find(self, daemons: Iterable[Process], stats: Mapping[int, Stat] | None = None) -> dict[str, Found]:
        """The containers that have living processes, by id.

        `daemons` are all NodeManagers of this host; `stats` are all its processes, where they have been read already.
        """
        with self._lock:
            tree = Tree(read_all(self._proc_root) if stats is None else stats, daemons)
            if tree.daemons != self._daemons:  # who was nobody's may be below the new one
                self._daemons = tree.daemons
                self._strangers.clear()
            new = [s for s in tree.leaders() if self._owner(s) is None and self._strangers.get(s.pid) != s.start_ticks]
            for leader in new:
                if (container_id := self._launched_as(leader, tree)) is not None:
                    self._unmask(leader, container_id)
                    self._launched.add(leader.process)
                    tree.give(leader, container_id)
            for pid in self._owners:
                stat = tree.stats.get(pid)
                if stat is not None and (remembered := self._owner(stat)) is not None:
                    tree.give(stat, remembered)
            for leader in new:
                if leader.pid not in tree.owners and (container_id := self._named_as(leader, tree)) is not None:
                    tree.give(leader, container_id)
            self._remember(new, tree)
            return self._found

    def _owner(self, stat: Stat) -> str | None:
        """The container that a process was shown to belong to."""
        start_ticks, container_id = self._owners.get(stat.pid, (None, None))
        return container_id if start_ticks == stat.start_ticks else None

    def _launched_as(self, leader: Stat, tree: Tree) -> str | None:
        """The container of a session leader, by its launcher."""
        launcher = tree.launcher_of(leader)
        named = set() if launcher is None else read_named(self._proc_root, launcher.pid)
        return named.pop() if len(named) == 1 else None

    def _named_as(self, leader: Stat, tree: Tree) -> str | None:
        """The container of a session leader, by its cgroup or its environment."""
        container_id = container_of(read_cgroups(self._proc_root, leader.pid)) or self._says(leader, tree)
        if container_id is None:
            return None
        users = self._users_of(container_id)
        return container_id if not users or read_user(self._proc_root, leader.pid) in users else None

    def _says(self, leader: Stat, tree: Tree) -> str | None:
        """The container that the environment of a session leader names, if it is where a container's process can be."""
        environment = read_environment(self._proc_root, leader.pid)
        if environment is None:
            return None
        launcher = tree.orphan_above(leader)
        named = set() if launcher is None else read_named(self._proc_root, launcher.pid)
        is_placed = tree.is_placed(leader) or environment.container_id in named
        return environment.container_id if is_placed else None

    def _unmask(self, leader: Stat, container_id: str) -> None:
        """Forget what another user's processes passed for before the container's own root was launched."""
        if self._users_of(container_id) - {read_user(self._proc_root, leader.pid)}:
            self._owners = {
                pid: (start_ticks, owner)
                for pid, (start_ticks, owner) in self._owners.items()
                if owner != container_id or Process(pid, start_ticks) in self._launched
            }

    def _users_of(self, container_id: str) -> set[int | None]:
        known = self._found.get(container_id)
        roots = () if known is None else (stat for stat in known.roots if self._owner(stat) == container_id)
        return {read_user(self._proc_root, stat.pid) for stat in roots} - {None}

    def _remember(self, looked_at: Iterable[Stat], tree: Tree) -> None:
        self._owners = {pid: (tree.stats[pid].start_ticks, owner) for pid, owner in tree.owners.items()}
        self._launched = {process for process in self._launched if tree.has(process)}
        self._found = tree.found()
        settled = self._clock() - SETTLED_TICKS  # whoever started before that is what it will be
        strangers = {s.pid: s.start_ticks for s in looked_at if s.start_ticks < settled and s.pid not in tree.owners}
        kept = {pid: start for pid, start in self._strangers.items() if tree.has(Process(pid, start))}
        self._strangers = kept | strangers
