"""Taking nodes out of a cluster with a grace, through failovers of the ResourceManager.

A ResourceManager that becomes active reads its exclude file and refuses every NodeManager in it, whose containers end
at once: a failover makes nothing of a grace. So the hosts are in the file only for the moment in which the
ResourceManager reads it, and again from the end on, for good. One that has become active since then finds the nodes in
use, and is told again, with what is left of the grace.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from fallow_yarn.errors import YarnError
from fallow_yarn.ipc.deadline import Deadline
from fallow_yarn.lifecycle.lists import EXCLUDE_KEY, LifecycleError, Lists
from fallow_yarn.rm.active import Manager
from fallow_yarn.rm.admin import NodeUpdate
from fallow_yarn.rm.nodes import ACTIVE, Node, State
from fallow_yarn.rm.size import Size

CALL_SECONDS: Final = 10.0
MOST_IGNORED: Final = 5
"""How many times in a row a ResourceManager may be told and have the node in use all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far it is. `nodes` are those of the hosts as the ResourceManager lists them; `away`: why it does not.

    `told_again`: it had them in use, as after a failover.
    """

    nodes: tuple[Node, ...]
    left_seconds: float
    done: bool = False
    told_again: bool = False
    away: str = ""


def soon() -> Deadline:
    """The deadline of one call to the ResourceManager."""
    return Deadline.after(CALL_SECONDS)


class Decommissioning:
    """The hosts of one decommissioning. Hold the lock of the lists from before `begin` on."""

    def __init__(
        self, manager: Manager, lists: Lists, hosts: Collection[str], grace_seconds: int, clock: Callable[[], float]
    ) -> None:
        self._manager, self._lists = manager, lists
        self._hosts = tuple(hosts)
        self._clock = clock
        self._told_seconds = grace_seconds
        self._end = clock() + grace_seconds
        self._ignored = 0
        self._in_use: set[str] = set()  # the ids that have been

    def begin(self) -> None:
        """Tell the ResourceManager. If anything is wrong, nothing has changed.

        :raises LifecycleError: other nodes would be affected.
        :raises ListFileError: a file cannot be written.
        :raises YarnError: the ResourceManager cannot be asked, or refuses.
        """
        self._lists.check_writable()
        self._manager.check_rights(soon())
        nodes = self._manager.nodes(soon())
        self._in_use |= {node.node_id for node in self._active(nodes)}
        self._tell(nodes)
        self._lists.parked.remove_hosts(self._hosts)

    def look(self) -> Progress:
        """See how far it is, and tell the ResourceManager again if it does not know. To be called every second or so.

        It is done when each NodeManager that was in use has ended. One that is not listed may not have found the active
        ResourceManager yet, until the grace is over. That another entry has its host says nothing: a ResourceManager
        that becomes active lists each host that it has found in its exclude file as a decommissioned node.

        :raises LifecycleError: the ResourceManager reads other files than those that were written.
        """
        left = self._end - self._clock()
        try:
            nodes = self._manager.nodes(soon())
            active = self._active(nodes)
            self._in_use |= {node.node_id for node in active}
            unaware = [node for node in active if node.state is not State.DECOMMISSIONING]
            self._ignored = self._ignored + 1 if unaware else 0
            if self._ignored > MOST_IGNORED:
                raise self._why_ignored(unaware[0])
            if unaware:
                self._tell(nodes)
        except LifecycleError:
            raise
        except YarnError as error:
            return Progress(nodes=(), left_seconds=left, away=str(error))
        own = tuple(node for node in nodes if node.node_id in self._in_use)
        done = not active and (len(own) == len(self._in_use) or left <= 0)
        return Progress(nodes=own, left_seconds=left, done=done, told_again=bool(unaware))

    def settle(self) -> None:
        """Leave the hosts in the files, so that it stays so, and goes on without this; then tell the ResourceManager.

        :raises ListFileError: a file cannot be written.
        :raises YarnError: the ResourceManager was not told; the files are written.
        """
        self._lists.exclude(self._hosts, self._told_seconds)
        nodes = self._manager.nodes(soon())
        self._lists.check_others(nodes, self._hosts, self._told_seconds)
        self._manager.refresh_nodes(self._told_seconds, soon())

    def _active(self, nodes: Collection[Node]) -> list[Node]:
        return [node for node in nodes if node.host in self._hosts and node.state in ACTIVE]

    def _tell(self, nodes: Collection[Node]) -> None:
        seconds = max(0, math.ceil(self._end - self._clock()))
        self._lists.check_others(nodes, self._hosts, seconds)
        self._make_fit(nodes)
        with self._lists.excluded_meanwhile(self._hosts, seconds):
            self._manager.refresh_nodes(seconds, soon())
        self._told_seconds = seconds

    def _make_fit(self, nodes: Collection[Node]) -> None:
        """Give nodes that are smaller than what they have allocated that size.

        A ResourceManager that takes a node in again gives it the size of before, and ends at once what does not fit.
        """
        small = [
            NodeUpdate(node_id=node.node_id, size=_larger(node.capability, node.used), custom=node.custom)
            for node in nodes
            if node.host in self._hosts and node.state is State.RUNNING
            if node.capability != _larger(node.capability, node.used)
        ]
        if small:
            self._manager.update(small, soon())

    def _why_ignored(self, node: Node) -> LifecycleError:
        files = " and ".join(str(file) for file in self._lists.excludes)
        try:
            read = self._manager.setting(EXCLUDE_KEY, soon()) or "none"
        except YarnError:
            read = "one that it does not tell"
        return LifecycleError(
            f"{self._manager.place}: it was told {MOST_IGNORED} times and has node {node.node_id} {node.state} still:"
            f" it reads exclude file {read}, and {files} was written; say where its file is on this host with"
            " spec.excludeFiles, with one for each ResourceManager unless they share it"
        )


def _larger(one: Size, other: Size) -> Size:
    return Size(max(one.memory_mb, other.memory_mb), max(one.vcores, other.vcores))
