"""Discovers the ids and web addresses of this host's NodeManagers, without a ResourceManager that lists them.

A NodeManager listens on few ports. One of them is its web port, and the page there has its id. An id is accepted only
if the same process also listens on the port of the id, so that no page can claim the id of another NodeManager. Only
processes that are proven to be NodeManagers (`proof`) are asked, each for a bounded time.
"""

import ipaddress
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from fallow_hookspecs import Process
from fallow_yarn.errors import YarnError
from fallow_yarn.http.loose_json import member, text
from fallow_yarn.model.node_matching import host_of, is_loopback
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.nm.containers import INFO, web_of
from fallow_yarn.nm.foreign import Foreign
from fallow_yarn.nm.procfs import PROC_ROOT, TURNS
from fallow_yarn.nm.sockets import displaceable, is_in_our_network, listening, reached_at
from fallow_yarn.security.web_access import WebAccess

WEB_PORTS: Final = (8042, 8044)
"""Hadoop's defaults, without and with TLS: they are tried first."""
UNREAD_ADVICE: Final = "run Fallow as root or as its user"
PORT_SECONDS: Final = 1.0
"""The time that a port has to answer: a debugger's port never does."""
MOST_PORTS: Final = 8
PROCESS_SECONDS: Final = 2.0
"""A NodeManager has five ports or six. One that does not tell its id is asked again in a later search."""


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
        self._silent: dict[Process, tuple[int, str]] = {}
        self._foreign = Foreign()

    def discover(self, running: Iterable[Process], wanted: Wanted, deadline: Deadline) -> list[str]:
        """Ask the running NodeManagers that are not known yet; the reasons why wanted ones remain unknown."""
        running = tuple(running)
        known = {process: self.known[process] for process in running if process in self.known}
        taken = {found.node_id: -1 for found in known.values()}
        unread: list[Process] = []
        problems: dict[Process, str] = {}
        asked: list[Process] = []
        self._foreign.start(running, wanted.ids)
        for process in running:
            if process in known or self._foreign.passes_over(process):
                continue
            turns, problem = self._silent.get(process, (0, ""))
            if turns:
                self._silent[process] = (turns - 1, problem)
                problems[process] = problem
                continue
            try:
                ports = listening(self._proc_root / str(process.pid))
            except PermissionError:
                unread.append(process)
                problems[process] = f"NodeManager process {process.pid}: its sockets may not be read; {UNREAD_ADVICE}"
                continue
            except OSError:
                continue  # it has ended since
            if wanted.ids and ports.keys().isdisjoint(map(_port, wanted.ids)):
                self._foreign.note(process)
                continue
            found = self._asked(process, ports, wanted, deadline.within(PROCESS_SECONDS))
            if isinstance(found, str):
                problems[process] = f"NodeManager process {process.pid} has not told its id: {found}"
                asked.append(process)
                continue
            rank = displaceable(ports[_port(found.node_id) or 0])
            if rank < taken.get(found.node_id, rank + 1):  # else a copy that starts, or another process on the port
                known = {each: local for each, local in known.items() if local.node_id != found.node_id}
                known[process], taken[found.node_id] = found, rank
        self._silent = {process: left for process, left in self._silent.items() if process in problems}
        self._silent |= {process: (TURNS, problems[process]) for process in asked if self._foreign.is_started(process)}
        self.known, self.unread = known, tuple(unread)
        return list(problems.values())

    def _asked(
        self, process: Process, ports: Mapping[int, str], wanted: Wanted, deadline: Deadline
    ) -> LocalNodeManager | str:
        """The NodeManager, from the first of its ports that has its id, or the reason why it remains unknown."""
        reason = "it listens nowhere yet"
        for web in islice(self._addresses(process, ports, wanted), MOST_PORTS):
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
