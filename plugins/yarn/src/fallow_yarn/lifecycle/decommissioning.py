"""Decommissions nodes with a grace that survives failovers of the ResourceManager.

A ResourceManager that becomes active reads its exclude file and refuses every NodeManager in it, whose containers end
at once: a failover ignores the grace. So the hosts are in the file only while the ResourceManager reads it, and
permanently once the decommissioning is done. A ResourceManager that becomes active before that has the nodes in use; it
is told again, with the rest of the grace.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from fallow_yarn.errors import YarnError
from fallow_yarn.lifecycle.lists import HostLists, LifecycleError
from fallow_yarn.model.size import largest_of
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.admin import NodeUpdate
from fallow_yarn.rm.manager import Manager
from fallow_yarn.rm.nodes import ACTIVE, Node, State
from fallow_yarn.settings.hadoop_conf import EXCLUDE_KEY

CALL_SECONDS: Final = 10.0
MOST_IGNORED: Final = 5
"""How many times in a row a ResourceManager may be told and still have the node in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress. `nodes`: those of the hosts, as the ResourceManager lists them; `unreachable`: why it does not.

    `told_again`: the ResourceManager had them in use, as after a failover.
    """

    nodes: tuple[Node, ...]
    left_seconds: float
    done: bool = False
    told_again: bool = False
    unreachable: str = ""


def soon() -> Deadline:
    """The deadline of one call to the ResourceManager."""
    return Deadline.after(CALL_SECONDS)


class Decommissioning:
    """The hosts of one decommissioning. Hold the lock of the lists from before `begin` on."""

    def __init__(
        self, manager: Manager, lists: HostLists, hosts: Collection[str], grace_seconds: int, clock: Callable[[], float]
    ) -> None:
        self._manager, self._lists = manager, lists
        self._hosts = tuple(hosts)
        self._clock = clock
        self._told_seconds = grace_seconds
        self._end = clock() + grace_seconds
        self._ignored = 0
        self._in_use: set[str] = set()  # all ids that have been in use since the begin

    def begin(self) -> None:
        """Tell the ResourceManager. If this raises, nothing has changed.

        :raises LifecycleError: other nodes would be affected.
        :raises ListFileError: a file cannot be written.
        :raises YarnError: the ResourceManager cannot be asked, or refuses.
        """
        self._lists.check_writable()
        self._manager.check_rights(soon())
        nodes = self._manager.nodes(soon())
        self._in_use |= {node.node_id for node in self._active(nodes)}
        self._tell(nodes)
        self._lists.removed.discard_hosts(self._hosts)

    def poll(self) -> Progress:
        """Read the progress, and tell the ResourceManager again if it does not know. Call it about once a second.

        It is done when each NodeManager that was in use has ended. Until the grace is over, one that is not listed may
        not have found the active ResourceManager yet. An entry with the same host and another id proves nothing: a
        ResourceManager that becomes active lists each host of its exclude file as a decommissioned node.

        :raises LifecycleError: the ResourceManager reads other files.
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
            return Progress(nodes=(), left_seconds=left, unreachable=str(error))
        own = tuple(node for node in nodes if node.node_id in self._in_use)
        done = not active and (len(own) == len(self._in_use) or left <= 0)
        return Progress(nodes=own, left_seconds=left, done=done, told_again=bool(unaware))

    def finish(self) -> None:
        """Exclude the hosts permanently, so that the decommissioning goes on without this process.

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
        self._grow_to_allocated(nodes)
        with self._lists.excluded_temporarily(self._hosts, seconds):
            self._manager.refresh_nodes(seconds, soon())
        self._told_seconds = seconds

    def _grow_to_allocated(self, nodes: Collection[Node]) -> None:
        """Resize nodes that are smaller than their allocation to that allocation.

        A ResourceManager that recommissions a node gives it its former size, and ends at once what does not fit.
        """
        small = [
            NodeUpdate(node_id=node.node_id, size=largest_of((node.capability, node.used)), custom=node.custom)
            for node in nodes
            if node.host in self._hosts and node.state is State.RUNNING
            if node.capability != largest_of((node.capability, node.used))
        ]
        if small:
            self._manager.update(small, soon())

    def _why_ignored(self, node: Node) -> LifecycleError:
        files = " and ".join(str(file) for file in self._lists.excludes)
        try:
            found = self._manager.setting(EXCLUDE_KEY, soon())
            read = f"{found!r:.200}" if found else "none"  # as a peer wrote it
        except YarnError:
            read = "one that it does not tell"
        return LifecycleError(
            f"{self._manager.addresses}: it was told {MOST_IGNORED} times, and {node.node_id} is still {node.state}:"
            f" it reads exclude file {read}, and {files} was written; set spec.excludeFiles to the paths of its files"
            " on this host, one for each ResourceManager unless they share it"
        )
