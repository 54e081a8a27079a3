"""The NodeManager processes of this host, and which of the ResourceManager's nodes each of them is.

A process counts if NodeManager's main class is one of its arguments and, where its open sockets can be read, if it
listens on the port of one of the nodes asked for. A process whose sockets cannot be read (another user's, without
root) counts without a node.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from fallow_hookspecs import Daemon, Process

MAIN_CLASS = b"org.apache.hadoop.yarn.server.nodemanager.NodeManager"
LISTENING = "0A"


def node_managers(
    node_ids: Collection[str], before: Iterable[Daemon] = (), proc_root: Path = Path("/proc")
) -> tuple[Daemon, ...]:
    """The daemons of the nodes with these ids (`host:port`); of every NodeManager on this host if there are none.

    `before` is an earlier answer: the sockets of what was found then are not read again, which on a host with many
    connections takes long.
    """
    ports = {int(node_id.rpartition(":")[2]): node_id for node_id in node_ids}
    known = {daemon.process: daemon for daemon in before if daemon.framework_node in node_ids}
    found = (known.get(process) or _daemon(process, ports, proc_root) for process in _candidates(proc_root))
    return tuple(daemon for daemon in found if daemon is not None)


def _daemon(process: Process, ports: Mapping[int, str], proc_root: Path) -> Daemon | None:
    if not ports:
        return Daemon(process=process)
    try:
        listening = _listening_ports(proc_root / str(process.pid))
    except PermissionError:
        return Daemon(process=process)
    except OSError:
        return None  # it ended while we looked
    own = next((ports[port] for port in sorted(listening & ports.keys())), None)
    return None if own is None else Daemon(process=process, framework_node=own)


def _candidates(proc_root: Path) -> Iterator[Process]:
    for entry in proc_root.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if MAIN_CLASS not in (entry / "cmdline").read_bytes().split(b"\0"):
                continue
            start_ticks = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[19])
        except (OSError, ValueError, IndexError):
            continue  # it ended while we looked, or is hidden from this user
        yield Process(int(entry.name), start_ticks)


def _listening_ports(process: Path) -> set[int]:
    """The TCP ports that a process listens on, in its own network namespace. OSError if they cannot be read."""
    links = set(_links(process / "fd"))
    tables = [line.split() for name in ("tcp", "tcp6") for line in _lines(process / "net" / name)]
    return {
        int(fields[1].rpartition(":")[2], 16)
        for fields in tables
        if len(fields) > 9 and fields[3] == LISTENING and f"socket:[{fields[9]}]" in links
    }


def _links(descriptors: Path) -> Iterator[str]:
    for descriptor in descriptors.iterdir():
        with suppress(FileNotFoundError):  # closed while we looked
            yield str(descriptor.readlink())


def _lines(table: Path) -> list[str]:
    return table.read_text().splitlines()[1:] if table.exists() else []
