"""Discovers the ids and web addresses of this host's NodeManagers, without a ResourceManager that lists them.

A NodeManager listens on few ports. One of them is its web port, and the page there has its id. An id is accepted only
if the same process also listens on the port of the id, so that no page can claim the id of another NodeManager. A
process of a container is never a NodeManager, whatever its command line.
"""

import ipaddress
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fallow_hookspecs import Process
from fallow_yarn.errors import YarnError
from fallow_yarn.http.loose_json import member, text
from fallow_yarn.model.node_matching import host_of, is_loopback
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.nm.containers import INFO, web_of
from fallow_yarn.nm.foreign import Foreign
from fallow_yarn.nm.procfs import PROC_ROOT, container_of, read_cgroups, read_environment
from fallow_yarn.nm.sockets import is_in_our_network, listening, reached_at
from fallow_yarn.security.web_access import WebAccess

WEB_PORTS: Final = (8042, 8044)
"""Hadoop's defaults, without and with TLS: they are tried first."""
UNREAD_ADVICE: Final = "run Fallow as root or as its user"
PORT_SECONDS: Final = 1.0
"""The time that a port has to answer: a debugger's port never does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalNodeManager:
    """One NodeManager: `node_id` is as the ResourceManager names it, `web` is `host:port`."""

    node_id: str
    web: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to discover: on a host with these names, the NodeManagers with these ids, or all if there are none."""

    host: Collection[str]
    ids: Collection[str] = ()


class Discovery:
    """Discovers NodeManagers, and asks each process only once. `known` has them by process.

    `unread`: the processes whose sockets this user may not read, so that their ids remain unknown.
    """

    def __init__(self, access: WebAccess, proc_root: Path = PROC_ROOT) -> None:
        self.known: Mapping[Process, LocalNodeManager] = {}
        self.unread: tuple[Process, ...] = ()
        self._access = access
        self._proc_root = proc_root
        self._strangers: frozenset[Process] = frozenset()
        self._foreign = Foreign()

    def discover(self, running: Iterable[Process], wanted: Wanted, deadline: Deadline) -> list[str]:
        """Ask the running NodeManagers that are not known yet; the reasons why wanted ones remain unknown."""
        running = tuple(running)
        known = {process: self.known[process] for process in running if process in self.known}
        strangers = self._strangers.intersection(running)
        unread: list[Process] = []
        problems: list[str] = []
        self._foreign.start(running, wanted.ids)
        for process in running:
            if process in known or process in strangers or self._foreign.passes_over(process):
                continue
            if self._is_of_a_container(process):
                strangers |= {process}
                continue
            try:
                ports = listening(self._proc_root / str(process.pid))
            except PermissionError:
                unread.append(process)
                problems.append(f"NodeManager process {process.pid}: its sockets may not be read; {UNREAD_ADVICE}")
                continue
            except OSError:
                continue  # it has ended since
            if wanted.ids and ports.keys().isdisjoint(map(_port, wanted.ids)):
                self._foreign.note(process)
                continue
            found = self._asked(process, ports, wanted, deadline)
            if isinstance(found, str):
                problems.append(f"NodeManager process {process.pid} has not told its id: {found}")
            elif found.node_id not in {each.node_id for each in known.values()}:  # else it is a copy that starts
                known[process] = found
        self.known, self.unread, self._strangers = known, tuple(unread), strangers
        return problems

    def _is_of_a_container(self, process: Process) -> bool:
        if read_environment(self._proc_root, process.pid) is not None:
            return True
        return container_of(read_cgroups(self._proc_root, process.pid)) is not None

    def _asked(
        self, process: Process, ports: Mapping[int, str], wanted: Wanted, deadline: Deadline
    ) -> LocalNodeManager | str:
        """The NodeManager, from the first of its ports that has its id, or the reason why it remains unknown."""
        reason = "it listens nowhere yet"
        for web in self._addresses(process, ports, wanted):
            try:
                answer = web_of(web, self._access).json(INFO, deadline.within(PORT_SECONDS))
            except YarnError as error:
                reason = str(error)
                continue
            node_id = text(member(answer, "nodeInfo", "id"))
            if _port(node_id) in ports:
                return LocalNodeManager(node_id=node_id, web=web)
            reason = f"{web} has the id {node_id!r}, on whose port the process does not listen"
        return reason

    def _addresses(self, process: Process, ports: Mapping[int, str], wanted: Wanted) -> Iterator[str]:
        """The possible web addresses, the most likely first."""
        is_here = is_in_our_network(self._proc_root, process.pid)
        by_name = (
            self._access.secure_nodes or self._access.authentication is not None
        )  # certificates and tickets are for names
        for port in sorted(ports, key=lambda port: (port not in WEB_PORTS, port)):
            if not is_here:
                hosts = sorted(set(map(host_of, wanted.ids)))
            elif by_name:
                hosts = sorted(filter(_is_name, wanted.host), key=lambda name: (-len(name), name))
            else:
                hosts = [reached_at(ports[port])]
            for host in hosts:
                yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _port(node_id: str) -> int | None:
    port = node_id.rpartition(":")[2]
    return int(port) if port.isascii() and port.isdigit() else None


def _is_name(host: str) -> bool:
    """Whether it is a host name that is valid on other hosts too."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return not is_loopback(host)
    return False
