"""All processes at one time as a tree, and the part of it that belongs to each container. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fallow_hookspecs import Process
from fallow_yarn.nm.procfs import Stat, ancestors, parent_of

INIT_PID: Final = 1
MONITORS: Final = frozenset({b"containerd-shim", b"conmon"})
"""What a container engine starts for each of its containers, by the names of programs as the kernel cuts them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """The living processes of one container, the oldest first; `roots` are those without an ancestor among them."""

    members: tuple[Stat, ...]
    roots: tuple[Stat, ...]


class ProcessTree:
    """All processes at one time. `owners`: the containers found for them, by pid.

    `daemons`: those of the given NodeManagers that are alive. `daemon_sessions`: the sessions of NodeManagers, where
    launchers are, also of ended ones as far as these are given and still have processes.
    """

    def __init__(
        self, stats: Mapping[int, Stat], daemons: Iterable[Process], daemon_sessions: Iterable[int] = ()
    ) -> None:
        self.stats = stats
        self.owners: dict[int, str] = {}
        self._children: defaultdict[int, list[Stat]] = defaultdict(list)
        self._sessions: defaultdict[int, list[Stat]] = defaultdict(list)
        for stat in stats.values():
            self._children[stat.parent_pid].append(stat)
            self._sessions[stat.session].append(stat)
        self.daemons = living(daemons, stats)
        self._daemons = {daemon.pid for daemon in self.daemons}
        kept = {session for session in daemon_sessions if session in self._sessions and session not in stats}
        self.daemon_sessions = frozenset({stats[pid].session for pid in self._daemons} | kept)
        self._spread: set[int] = {0, *self.daemon_sessions}  # 0: a session led by a process of another namespace
        above = (ancestors(stats[pid], stats) for pid in self._daemons)
        self._adopters = {INIT_PID}.union(*({stat.pid for stat in chain} for chain in above))

    def has(self, process: Process) -> bool:
        """Whether exactly this process is among them."""
        stat = self.stats.get(process.pid)
        return stat is not None and stat.start_ticks == process.start_ticks

    def leaders(self) -> list[Stat]:
        """The first process of each session, the oldest first, without the NodeManagers.

        That is the session's leader, or, once it has ended, each process that it left to init.
        """
        leaders = (
            s for s in self.stats.values() if (s.leads_session or self.is_left(s)) and s.pid not in self._daemons
        )
        return sorted(leaders, key=_age)

    def is_left(self, stat: Stat) -> bool:
        """Whether the leader of its session has ended, and its parent is of another session."""
        leader, parent = self.stats.get(stat.session), self.stats.get(stat.parent_pid)
        if stat.session == 0 or stat.session in self.daemon_sessions:
            return False
        if leader is not None and leader.start_ticks <= stat.start_ticks:
            return False
        return parent is None or parent.session != stat.session

    def may_be_launcher(self, stat: Stat) -> bool:
        """Whether a child of it leads a session, as the root of a container does below its launcher."""
        return any(child.leads_session for child in self._children[stat.pid])

    def launcher_of(self, leader: Stat) -> Stat | None:
        """Its parent, if that is a child of a NodeManager in the NodeManager's session."""
        parent = parent_of(leader, self.stats)
        above = None if parent is None else parent_of(parent, self.stats)
        if parent is None or above is None or above.pid not in self._daemons:
            return None
        return parent if parent.session == above.session and parent.pid not in self._daemons else None

    def is_possible(self, leader: Stat) -> bool:
        """Whether its position is possible for a container's process: below a NodeManager, or adopted."""
        if leader.parent_pid in self._adopters:
            return True
        return any(stat.pid in self._daemons for stat in ancestors(leader, self.stats))

    def orphan_above(self, leader: Stat) -> Stat | None:
        """Its parent, if that was adopted: the launcher of a container whose NodeManager has ended."""
        parent = parent_of(leader, self.stats)
        return parent if parent is not None and parent.parent_pid in self._adopters else None

    def assign(self, stat: Stat, container_id: str) -> None:
        """Assign a process, its session and its descendants to a container, except those that have one already."""
        waiting = [stat]
        while waiting:
            current = waiting.pop()
            if current.pid in self.owners or current.pid in self._daemons:
                continue
            self.owners[current.pid] = container_id
            # A child is not older than its parent: if it seems to be, it was read before its parent's pid was reused.
            waiting.extend(c for c in self._children[current.pid] if c.start_ticks >= current.start_ticks)
            if not self.is_left(current):  # else its session may be that of an ended NodeManager
                waiting.extend(self._session_of(current))

    def found(self) -> dict[str, Processes]:
        """The living processes of each container."""
        members: defaultdict[str, dict[int, Stat]] = defaultdict(dict)
        for pid, owner in self.owners.items():
            if self.stats[pid].is_alive:
                members[owner][pid] = self.stats[pid]
        return {
            owner: Processes(
                members=tuple(sorted(stats.values(), key=_age)),
                roots=tuple(sorted((s for s in stats.values() if s.parent_pid not in stats), key=_age)),
            )
            for owner, stats in members.items()
        }

    def _session_of(self, stat: Stat) -> list[Stat]:
        """All processes of its session, once; none if the session's number has been reused."""
        leader = self.stats.get(stat.session)
        if stat.session in self._spread or (leader is not None and leader.start_ticks > stat.start_ticks):
            return []
        self._spread.add(stat.session)
        return self._sessions[stat.session]


def living(processes: Iterable[Process], stats: Mapping[int, Stat]) -> frozenset[Process]:
    """Those of some processes that are among all processes."""
    return frozenset(each for each in processes if (stat := stats.get(each.pid)) is not None and stat.process == each)


def _age(stat: Stat) -> tuple[int, int]:
    return stat.start_ticks, stat.pid
