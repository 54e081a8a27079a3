"""The state of an active ResourceManager: nodes, allocations, and size changes under way. Pure.

A size change passes two queues, as in the real one: the record of the node (`capability`) has it at once, the scheduler
(`total`) gets to it one change after the other, and has the node out of its table for a moment then. What is allocated
on a node is free again when its NodeManager has confirmed the end, two heartbeats after it was decided.

`now` is in seconds of any clock; each call first brings the state up to it (`tick`).
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fallow_yarn.embedded.application import LOST, PREEMPTED, Application, Container
from fallow_yarn.embedded.decommissioning import heard, refreshed
from fallow_yarn.embedded.node_lists import NodeLists
from fallow_yarn.embedded.node_state import NodeState, Orders, Registration, Status
from fallow_yarn.embedded.settings import Settings
from fallow_yarn.model.size import Size

ABSENT_SECONDS: Final = 0.001
"""How long a node is out of the scheduler's table when its size is changed."""

PREEMPTED_TEXT: Final = "Container preempted by scheduler"
LOST_TEXT: Final = "Container released on a *lost* node"
MOST_TAKEN: Final = 10_000


class UnknownNode(Exception):  # noqa: N818 - an answer of the ResourceManager
    """The ResourceManager does not know the node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """A new size for a node. `over_commit_timeout_ms` below 0: no deadline is set, and none is moved."""

    node_id: str
    size: Size
    over_commit_timeout_ms: int
    custom: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Change:
    due: float
    node: NodeState
    update: Update


class Scheduler:
    """Nodes and applications of one term of an active ResourceManager. `epoch` counts its starts.

    `taken` are the newest size updates, each with the time at which it was answered. `lists`: whose nodes it takes.
    """

    def __init__(
        self, settings: Settings, applications: Sequence[Application], epoch: int, lists: NodeLists | None = None
    ) -> None:
        self.settings = settings
        self._lists = lists or NodeLists(None, None)
        self.nodes: dict[str, NodeState] = {}
        self.applications = list(applications)
        self._epoch = epoch
        self.taken: deque[tuple[float, Update]] = deque(maxlen=MOST_TAKEN)
        self._changes: deque[_Change] = deque()

    def submit(self, application: Application, now: float) -> None:
        """A new application, behind the others in the queue."""
        self.applications.append(application)
        self.tick(now)

    def register(self, registration: Registration, now: float) -> str:
        """Register a NodeManager. The reason why it has to exit; empty if it may stay."""
        self.tick(now)
        minimum, size = self.settings.minimum, registration.size
        node, host = self.nodes.get(registration.node_id), registration.node_id.rpartition(":")[0]
        if not self._lists.takes(host) and (node is None or node.decommissioning_since is None or not node.is_running):
            return f"Disallowed NodeManager from  {host}, Sending SHUTDOWN signal to the NodeManager."
        if size.memory_mb < minimum.memory_mb or size.vcores < minimum.vcores:
            return f"NodeManager from {registration.node_id} doesn't satisfy minimum allocations"
        if node is not None and node.is_running and (node.containers or node.decommissioning_since is not None):
            # It comes back with work: the size it says is a change like any other, and a deadline stays.
            node.come_back(registration, now)
            update = Update(node_id=node.id, size=size, over_commit_timeout_ms=-1, custom=registration.custom)
            self._queue(node, update, now)
        else:
            node = NodeState(registration, now)
            node.absent_until = now + ABSENT_SECONDS
            self.nodes[node.id] = node
        self._recover(node, registration.containers)
        self.tick(now)
        return ""

    def unregister(self, node_id: str, now: float) -> None:
        """A NodeManager ends, and its containers with it."""
        self.tick(now)
        if (node := self.nodes.get(node_id)) is not None and node.is_running:
            self._remove(node, "SHUTDOWN")

    def heartbeat(self, node_id: str, statuses: Iterable[Status], now: float) -> Orders | None:
        """Take the report of a NodeManager, and return its orders; None if it has to register (again)."""
        node = self.nodes.get(node_id)
        if node is None or not node.is_running:
            return None
        node.heard_at = now
        confirmed = [status.container for status in statuses if self._note(node, status)]
        self.tick(now)
        if heard(node, now, is_needed=any(app.id in node.users and not app.is_over for app in self.applications)):
            self._remove(node, "DECOMMISSIONED")
            return None
        if node.deadline is not None and now >= node.deadline:
            self._take_back(node, now, kill=True)
        self._allocate([node], now)
        return node.orders(confirmed, tells_size=self.settings.release.takes_back)

    def update(self, updates: Sequence[Update], now: float) -> None:
        """New sizes, all or none. Raises `UnknownNode` with the id of an unknown node."""
        self.tick(now)
        for update in updates:
            if update.node_id not in self.nodes or not self.nodes[update.node_id].is_running:
                raise UnknownNode(update.node_id)
        for update in updates:
            self.taken.append((now, update))
            self._queue(self.nodes[update.node_id], update, now)

    def refresh(self, grace_seconds: int | None, now: float) -> None:
        """Refresh the lists of hosts gracefully; None is the ResourceManager's own grace."""
        self.tick(now)
        for node in self.nodes.values():
            if node.is_running:
                refreshed(node, self._lists, grace_seconds, now)

    def refresh_now(self, now: float) -> None:
        """Refresh the lists of hosts at once."""
        self.refresh(0, now)
        self.end_decommissioning(now)

    def end_decommissioning(self, now: float) -> None:
        """Decommission at once all nodes that are being decommissioned."""
        self.tick(now)
        for node in self.nodes.values():
            if node.state == "DECOMMISSIONING":
                self._remove(node, "DECOMMISSIONED")

    def signal(self, container_id: str, *, force: bool) -> bool:
        """Have the NodeManager signal a container with its next heartbeat; false if there is none."""
        for node in self.nodes.values():
            if container_id in node.containers and container_id not in node.ending:
                if node.decommissioning_since is None:  # the real one ignores this while a node is leaving
                    node.signals.append((container_id, force))
                return True
        return False

    def tick(self, now: float) -> None:
        """Advance the state to a time: apply due size changes, and remove nodes that were silent too long."""
        while self._changes and self._changes[0].due <= now:
            change = self._changes.popleft()
            self._apply(change.node, change.update, change.due)
        for node in self.nodes.values():
            if node.is_running and now - node.heard_at > self.settings.expiry_seconds:
                self._remove(node, "LOST")
        if self.settings.release.is_asynchronous:
            self._allocate(list(self.nodes.values()), now)

    def in_table(self, now: float) -> list[NodeState]:
        """The nodes that the scheduler has in its table at this moment."""
        return [node for node in self.nodes.values() if node.is_in_table(now)]

    @property
    def largest(self) -> Size:
        """The maximum allocation in effect: the configured one, and no more than the largest node has."""
        maximum = self.settings.maximum
        totals = [node.total for node in self.nodes.values() if node.is_running]
        if not totals:
            return maximum
        memory_mb = min(maximum.memory_mb, max(total.memory_mb for total in totals))
        return Size(memory_mb, min(maximum.vcores, max(total.vcores for total in totals)))

    def _queue(self, node: NodeState, update: Update, now: float) -> None:
        node.resize(update.size, update.custom)
        start = max(now, self._changes[-1].due) if self._changes else now
        self._changes.append(_Change(start + self.settings.change_seconds, node, update))

    def _apply(self, node: NodeState, update: Update, now: float) -> None:
        # The same size again is ignored, and its timeout with it.
        if self.nodes.get(node.id) is not node or not node.is_running or node.total == update.size:
            return
        node.total = update.size
        node.absent_until = now + ABSENT_SECONDS
        if not self.settings.release.takes_back:
            return
        timeout_ms = update.over_commit_timeout_ms
        if timeout_ms >= 0:
            node.deadline = now + timeout_ms / 1000
        if node.deadline is not None:
            self._take_back(node, now, kill=timeout_ms == 0)

    def _take_back(self, node: NodeState, now: float, *, kill: bool) -> None:
        """Warn or end the newest containers, masters last, until the others fit."""
        over = node.available
        for victim in node.victims():
            if over.memory_mb >= 0 and over.vcores >= 0:
                return
            if kill and node.deadline is not None and now >= node.deadline:
                self._end(victim, PREEMPTED, PREEMPTED_TEXT)
            elif not kill and victim.id not in node.ending:
                victim.application.warn(victim)
            # One that is ending already counts: nobody else has to go for it.
            over = Size(over.memory_mb + victim.size.memory_mb, over.vcores + victim.size.vcores)

    def _allocate(self, nodes: Sequence[NodeState], now: float) -> None:
        """Allocate the requests of the applications in their order, while they fit."""
        totals = [node.total for node in self.nodes.values() if node.is_running]
        for application in self.applications:
            while (wanted := application.wanted())[1] > 0:
                size = self._clamped(wanted[0]) if application.master is None else wanted[0]
                fitting = [node for node in nodes if node.takes_work(now) and _fits(size, node.available)]
                if not fitting:
                    if any(_fits(size, total) for total in totals):
                        return  # whoever is first in the queue waits for room, and the others behind it
                    break
                node = max(fitting, key=lambda node: node.available)
                node.give(application.take(node.id, size, self._epoch))

    def _clamped(self, size: Size) -> Size:
        return Size(min(size.memory_mb, self.largest.memory_mb), min(size.vcores, self.largest.vcores))

    def _note(self, node: NodeState, status: Status) -> bool:
        """Take the status of a container; whether it has ended."""
        container = node.containers.get(status.container)
        if container is None:
            if status.exit_code is None:
                node.ending.add(status.container)  # nobody's any more
            return status.exit_code is not None
        if status.exit_code is None:
            if not container.begun:
                container.application.begin(container)
            return False
        node.drop(container)
        self._end(container, status.exit_code, status.diagnostics)
        return True

    def _recover(self, node: NodeState, statuses: Iterable[Status]) -> None:
        """Compare the containers of a registering NodeManager with those that the applications expect."""
        reported = {status.container for status in statuses}
        believed = [
            container
            for application in self.applications
            for container in application.containers
            if container.node_id == node.id
        ]
        for container in believed:
            if container.id in reported:
                node.containers[container.id] = container
                node.users.add(container.application.id)
            elif container.begun:
                node.drop(container)
                self._end(container, LOST, LOST_TEXT)
            else:
                node.drop(container)
                container.application.give_back(container)
        for container in tuple(node.containers.values()):
            if container.id not in reported:
                node.drop(container)
        for status in statuses:
            self._note(node, status)

    def _end(self, container: Container, exit_code: int, diagnostics: str) -> None:
        """End a container for its application; it stays on its node until the NodeManager confirms the end."""
        others = container.application.end(container, exit_code, diagnostics)
        for ended in (container, *others):
            if (node := self.nodes.get(ended.node_id)) is not None and ended.id in node.containers:
                node.ending.add(ended.id)

    def _remove(self, node: NodeState, state: str) -> None:
        node.state = state
        containers = tuple(node.containers.values())
        node.forget()
        for container in containers:
            self._end(container, LOST, LOST_TEXT)


def _fits(size: Size, room: Size) -> bool:
    return size.memory_mb <= room.memory_mb and size.vcores <= room.vcores
