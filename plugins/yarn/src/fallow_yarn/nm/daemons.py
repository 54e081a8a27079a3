"""Finds the NodeManager processes of this host, and the node id of each.

A process counts if the NodeManager's main class is one of its arguments and, where its open sockets can be read, if it
listens on the port of one of the given nodes. A process whose sockets cannot be read (of another user, without root)
counts without a node id.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from fallow_hookspecs import Daemon, Process
from fallow_yarn.nm.foreign import Foreign
from fallow_yarn.nm.procfs import PROC_ROOT, SETTLED_TICKS, TURNS, Stat, now_ticks, read_all, read_command
from fallow_yarn.nm.sockets import listening

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
    earlier searches found of other clusters.
    """
    foreign = foreign or Foreign()
    ports = {int(node_id.rpartition(":")[2]): node_id for node_id in node_ids}
    known = {daemon.process: daemon for daemon in before if daemon.framework_node in node_ids}
    processes = RunningNodeManagers(proc_root).find(read_all(proc_root)) if running is None else running
    foreign.start(processes, node_ids)
    found = (known.get(process) or _daemon(process, ports, proc_root, foreign) for process in processes)
    return tuple(daemon for daemon in found if daemon is not None)


class RunningNodeManagers:
    """Finds the NodeManagers of this host, of any cluster.

    A start script becomes a NodeManager by exec. So the command line of every other process is read again: at every
    search while the process is young, and later once in `TURNS` searches.
    """

    def __init__(self, proc_root: Path = PROC_ROOT, clock: Callable[[], int] = now_ticks) -> None:
        self._proc_root = proc_root
        self._clock = clock
        self._others: dict[int, int] = {}
        self._turn = 0

    def find(self, stats: Mapping[int, Stat]) -> tuple[Process, ...]:
        """The NodeManagers among all processes of this host."""
        self._turn = (self._turn + 1) % TURNS
        unread = [s for s in stats.values() if self._others.get(s.pid) == s.start_ticks and s.pid % TURNS != self._turn]
        others = {stat.pid: stat.start_ticks for stat in unread}
        settled = self._clock() - SETTLED_TICKS
        found = []
        for stat in stats.values():
            if stat.pid in others:
                continue
            if MAIN_CLASS in read_command(self._proc_root, stat.pid):
                found.append(stat.process)
            elif stat.start_ticks < settled:
                others[stat.pid] = stat.start_ticks
        self._others = others
        return tuple(found)


def _daemon(process: Process, ports: Mapping[int, str], proc_root: Path, foreign: Foreign) -> Daemon | None:
    if not ports:
        return Daemon(process=process)
    if foreign.passes_over(process):
        return None
    try:
        ports_of_process = listening(proc_root / str(process.pid)).keys()
    except PermissionError:
        return Daemon(process=process)
    except OSError:
        return None  # it has ended since
    own = next((ports[port] for port in sorted(ports_of_process & ports.keys())), None)
    if own is None:
        foreign.note(process)
        return None
    return Daemon(process=process, framework_node=own)
