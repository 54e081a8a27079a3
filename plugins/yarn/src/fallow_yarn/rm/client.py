"""One ResourceManager as one object, with all calls that this plugin makes to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from fallow_yarn.ipc.connection import Finish
from fallow_yarn.ipc.wire import MAX_FRAME_BYTES
from fallow_yarn.model.container_id import ContainerId
from fallow_yarn.model.size import ZERO
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.admin import ADMIN_PROTOCOL, NodeUpdate, UpdateAnswer, send, update_node_resources
from fallow_yarn.rm.applications import RunningApplication, read_applications
from fallow_yarn.rm.facts import Identity, Setup, read_identity, read_setting, read_setup
from fallow_yarn.rm.history import SizeHistory
from fallow_yarn.rm.in_force import Possible, in_scheduler, is_consistent, is_open, is_proven
from fallow_yarn.rm.labels import read_labels
from fallow_yarn.rm.nodes import CLIENT_PROTOCOL, IN_SCHEDULER, Node, list_nodes, updatable_ids
from fallow_yarn.rm.readings import Facts, NodeReading, Reading
from fallow_yarn.rm.refresh import refresh_nodes
from fallow_yarn.rm.scheduler import SchedulerNode, read_metrics, read_scheduler_node, read_scheduler_nodes
from fallow_yarn.rm.signal import signal_container
from fallow_yarn.rm.status import HA_PROTOCOL, Status, read_status
from fallow_yarn.security.access import Access
from fallow_yarn.settings.rm_addresses import RmAddresses, Server, server

FEW_NODES: Final = 16  # up to here, and up to one node in 50, reading single entries costs less than reading all
NOTHING: Final = SchedulerNode(size=ZERO, used=ZERO)


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptSetup:
    """A setup read earlier, with the start of the ResourceManager and the vcores of its cluster at that time."""

    started_on: int
    vcores: int
    setup: Setup


class ResourceManager:
    """One ResourceManager. Use it from one thread; objects for the same one in other threads share `history`.

    Every method keeps its deadline and raises YarnErrors.
    """

    def __init__(self, addresses: RmAddresses, access: Access, history: SizeHistory | None = None) -> None:
        self.addresses = addresses
        self._client = access.connection(addresses.client, CLIENT_PROTOCOL, MAX_FRAME_BYTES)
        self._admin = access.connection(addresses.admin, ADMIN_PROTOCOL)
        self._states = access.connection(addresses.admin, HA_PROTOCOL)
        self._web = access.web(addresses.web, secure=addresses.secure_web)
        self._history = history or SizeHistory()
        self._setup: _KeptSetup | None = None

    @classmethod
    def at(cls, *, client: str, admin: str, web: str, user: str, history: SizeHistory | None = None) -> Self:
        """The one at these addresses, each `host:port`, with SIMPLE authentication; ValueError for another form."""
        addresses = RmAddresses(
            client=server(Server.CLIENT, client, "spec.resourceManager.client"),
            admin=server(Server.ADMIN, admin, "spec.resourceManager.admin"),
            web=server(Server.WEB, web, "spec.resourceManager.web"),
        )
        return cls(addresses, Access.simple(user), history)

    def status(self, deadline: Deadline) -> Status:
        """The HA state: one call over a new connection, so that a new address of its name is used."""
        try:
            return read_status(self._states.call, self._web, deadline)
        finally:
            self._states.close()

    def states(self, _deadline: Deadline) -> tuple[()]:
        """Empty: it is the only one."""
        return ()

    def nodes(self, deadline: Deadline) -> tuple[Node, ...]:
        """All nodes, as the ResourceManager lists them: one call. For sizes in force use `read`."""
        return list_nodes(self._client.call, str(self._client.endpoint), deadline)

    def read(self, deadline: Deadline) -> Reading:
        """All nodes with the sizes in force: one call and one small page, and more only after changes."""
        moment = self._history.begin()
        nodes = self.nodes(deadline)
        possible = self._history.seen(nodes, moment)
        metrics = read_metrics(self._web, deadline)
        scheduled: Mapping[str, SchedulerNode | None] = {}
        if not is_proven(nodes, possible, metrics.total):
            scheduled = self._scheduler_nodes(nodes, possible, deadline)
        readings = {node.node_id: _reading(node, scheduled) for node in nodes}
        sizes = {node_id: reading.in_force for node_id, reading in readings.items() if reading.in_force is not None}
        self._history.settle(nodes, sizes, moment)
        return Reading(nodes=readings, metrics=metrics)

    def identity(self, deadline: Deadline) -> Identity:
        """The identity: one small page."""
        return read_identity(self._web, deadline)

    def facts(self, deadline: Deadline) -> Facts:
        """The identity: one small page. The scheduler's settings are read once for each start of it.

        If the calculator remains unknown they are read again when the cluster has grown.
        """
        identity = self.identity(deadline)
        if identity.started_on is None:
            return Facts(identity=identity, setup=None)
        kept = self._setup
        if kept is None or kept.started_on != identity.started_on or not kept.setup.is_complete:
            total = read_metrics(self._web, deadline).total
            vcores = 0 if total is None else total.vcores
            if kept is None or kept.started_on != identity.started_on or kept.vcores < vcores:
                setup = read_setup(self._web, total, deadline)
                self._setup = kept = _KeptSetup(started_on=identity.started_on, vcores=vcores, setup=setup)
        return Facts(identity=identity, setup=kept.setup)

    def update(self, updates: Sequence[NodeUpdate], deadline: Deadline) -> tuple[UpdateAnswer, ...]:
        """Send new sizes, all in one call (see `admin.update_node_resources`). They are in force only later."""
        self._history.sent({update.node_id: update.size for update in updates})
        return update_node_resources(self._admin.call, updates, self._updatable_ids, deadline)

    def begin(self, updates: Sequence[NodeUpdate], deadline: Deadline) -> Finish:
        """Send new sizes in one call that the ResourceManager takes whole or not at all, and do not wait for it."""
        self._history.sent({update.node_id: update.size for update in updates})
        return send(self._admin.begin, updates, deadline)

    def check_rights(self, deadline: Deadline) -> None:
        """Show, without a change, that the user may change sizes; AccessDeniedError or another YarnError if not."""
        send(self._admin.call, (), deadline)

    def refresh_nodes(self, grace_seconds: int, deadline: Deadline) -> None:
        """Have it read its exclude and include files again (see `refresh.refresh_nodes`)."""
        refresh_nodes(self._admin.call, grace_seconds, deadline)

    def setting(self, key: str, deadline: Deadline) -> str | None:
        """One of its settings; None if it is not set or not shown to this user."""
        return read_setting(self._web, key, deadline)

    def applications(self, deadline: Deadline, *, requests: bool = False) -> tuple[RunningApplication, ...]:
        """The applications: one page. With `requests` it is larger and has their pending requests."""
        return read_applications(self._web, deadline, requests=requests)

    def labels(self, deadline: Deadline) -> Mapping[str, bool]:
        """The node labels of the cluster, and whether each is exclusive: one small page."""
        return read_labels(self._web, deadline)

    def signal(self, container: ContainerId, deadline: Deadline, *, force: bool) -> None:
        """Have a container signalled by its NodeManager, at its next heartbeat: SIGTERM, or with `force` SIGKILL."""
        signal_container(self._client.call, container, deadline, force=force)

    def close(self) -> None:
        """Close the kept connections. Safe to repeat; a later call opens them again."""
        self._client.close()
        self._admin.close()
        self._states.close()

    def _updatable_ids(self, deadline: Deadline) -> frozenset[str]:
        return updatable_ids(self.nodes(deadline))

    def _scheduler_nodes(
        self, nodes: Sequence[Node], possible: Possible, deadline: Deadline
    ) -> Mapping[str, SchedulerNode | None]:
        """The scheduler's values of the nodes that have to be read: the open ones, or all."""
        counted = in_scheduler(nodes)
        to_read = [node for node in counted if is_open(node, possible)]
        if len(to_read) <= max(FEW_NODES, len(counted) // 50):
            scheduled = {node.node_id: read_scheduler_node(self._web, node.node_id, deadline) for node in to_read}
            sizes = {node_id: entry.size if entry else ZERO for node_id, entry in scheduled.items()}
            if is_consistent(nodes, sizes, read_metrics(self._web, deadline).total):
                return self._confirmed(to_read, scheduled, possible, deadline)
        return self._confirmed(counted, read_scheduler_nodes(self._web, deadline), possible, deadline)

    def _confirmed(
        self,
        nodes: Sequence[Node],
        scheduled: Mapping[str, SchedulerNode | None],
        possible: Possible,
        deadline: Deadline,
    ) -> Mapping[str, SchedulerNode | None]:
        """The entries with a possible size; the others count only if a second reading confirms them.

        Size 0 counts only if the ResourceManager's record has it too, and if it is read twice.
        """
        confirmed: dict[str, SchedulerNode | None] = {}
        again_left = FEW_NODES
        for node in nodes:
            entry = scheduled.get(node.node_id)
            plausible = possible.get(node.node_id, frozenset()) | {node.capability}
            if entry in (None, NOTHING) or entry.size not in plausible:
                again = read_scheduler_node(self._web, node.node_id, deadline) if again_left > 0 else None
                again_left -= 1
                is_same = entry is not None and again is not None and again.size == entry.size
                entry = again if is_same or (again is not None and again.size in plausible) else None
                if entry == NOTHING and not (is_same and node.capability == ZERO):
                    entry = None
            confirmed[node.node_id] = entry
        return confirmed


def _reading(node: Node, scheduled: Mapping[str, SchedulerNode | None]) -> NodeReading:
    if node.state not in IN_SCHEDULER:
        return NodeReading(node=node, in_force=None, used=None)
    if node.node_id not in scheduled:
        return NodeReading(node=node, in_force=node.capability, used=node.used)
    entry = scheduled[node.node_id]
    return NodeReading(node=node, in_force=entry.size if entry else None, used=entry.used if entry else None)
