"""Finds the NodeManager processes of this host, and the node id of each.

A process counts if the NodeManager's main class is one of its arguments, if it is proven to be a NodeManager (`proof`)
and, where its open sockets can be read, if it listens on the port of one of the given nodes. A process whose sockets
cannot be read (of another user, without root) counts without a node id.
"""

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from pathlib import Path

from fallow_hookspecs import Daemon, Process
from fallow_yarn.nm.foreign import Foreign
from fallow_yarn.nm.procfs import PROC_ROOT, SETTLED_TICKS, TURNS, Stat, now_ticks, read_all, read_command
from fallow_yarn.nm.proof import Proof
from fallow_yarn.nm.sockets import displaceable, listening

MAIN_CLASS = b"org.apache.hadoop.yarn.server.nodemanager.NodeManager"


def node_managers(
    node_ids: Collection[str],
    before: Iterable[Daemon] = (),
    proc_root: Path = PROC_ROOT,
    running: Collection[Process] | None = None,
    foreign: Foreign | None = None,
) -> tuple[Daemon, ...]:
    """The daemons of the nodes with these ids (`host:port`); of every NodeManager on this host if there are none.

    `before` is an earlier result: the sockets of its processes are not read again, which takes long on a host with many
    connections. `running`: the NodeManager processes of this host, where they are known already. `foreign`: what
    earlier searches found of other clusters. Of several processes with one port the one that was known stays, else the
    one beside which no other process could listen.
    """
    foreign = foreign or Foreign()
    running = RunningNodeManagers(proc_root).find(read_all(proc_root)) if running is None else running
    ports = {int(node_id.rpartition(":")[2]): node_id for node_id in node_ids}
    known = {daemon.process: daemon for daemon in before if daemon.framework_node in node_ids}
    foreign.start(running, node_ids)
    found: list[tuple[int, int, Daemon]] = []
    for process in running:
        if process in known:
            found.append((-1, process.start_ticks, known[process]))
        elif (new := _daemon(process, ports, proc_root, foreign)) is not None:
            found.append((new[0], process.start_ticks, new[1]))
    first: dict[str | Process, Daemon] = {}
    for _, _, daemon in sorted(found, key=lambda each: each[:2]):
        first.setdefault(daemon.framework_node or daemon.process, daemon)
    return tuple(first.values())


class RunningNodeManagers:
    """Finds the NodeManagers of this host, of any cluster.

    A start script becomes a NodeManager by exec. So the command line of every other process is read again: at every
    search while the process is young, and later once in `TURNS` searches. `uid`: the user they run as, if configured.
    """

    def __init__(
        self, proc_root: Path = PROC_ROOT, clock: Callable[[], int] = now_ticks, uid: int | None = None
    ) -> None:
        self._proc_root = proc_root
        self._proof = Proof(proc_root, uid)
        self._clock = clock
        self._others: dict[int, int] = {}
        self._turn = 0

    @property
    def unsure(self) -> str:
        """Why the newest search proved no NodeManager although some processes look like one; empty otherwise."""
        return self._proof.unsure

    def find(self, stats: Mapping[int, Stat], of_containers: Container[Process] = ()) -> tuple[Process, ...]:
        """The NodeManagers among all processes of this host. `of_containers`: those known to belong to containers."""
        self._turn = (self._turn + 1) % TURNS
        unread = [s for s in stats.values() if self._others.get(s.pid) == s.start_ticks and s.pid % TURNS != self._turn]
        others = {stat.pid: stat.start_ticks for stat in unread}
        settled = self._clock() - SETTLED_TICKS
        found = []
        for stat in stats.values():
            if stat.pid in others:
                continue
            if _looks_like_one(read_command(self._proc_root, stat.pid)):
                found.append(stat)
            elif stat.start_ticks < settled:
                others[stat.pid] = stat.start_ticks
        self._others = others
        return self._proof.proven(found, stats, of_containers)


def _looks_like_one(command: Sequence[bytes]) -> bool:
    """Whether it runs the main class itself; a wrapper such as sudo has the whole command as its arguments."""
    return MAIN_CLASS in command and not any(each.rpartition(b"/")[2] == b"java" for each in command[1:])


def _daemon(process: Process, ports: Mapping[int, str], proc_root: Path, foreign: Foreign) -> tuple[int, Daemon] | None:
    """The daemon, after how easily another process could listen beside it (see `displaceable`)."""
    if not ports:
        return 0, Daemon(process=process)
    if foreign.passes_over(process):
        return None
    try:
        addresses = listening(proc_root / str(process.pid))
    except PermissionError:
        return 0, Daemon(process=process)
    except OSError:
        return None  # it has ended since
    port = min(addresses.keys() & ports.keys(), default=None)
    if port is None:
        foreign.note(process)
        return None
    return displaceable(addresses[port]), Daemon(process=process, framework_node=ports[port])
