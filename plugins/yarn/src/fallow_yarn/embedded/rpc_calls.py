"""Handles the remote calls that this plugin makes to a ResourceManager, and those of high availability."""

from collections.abc import Callable
from typing import Final

from fallow_yarn.embedded.ipc_server import Protocols, refused
from fallow_yarn.embedded.node_lists import NodeLists
from fallow_yarn.embedded.node_state import NodeState
from fallow_yarn.embedded.scheduler import Scheduler, UnknownNode, Update
from fallow_yarn.ipc.protos import yarn_pb2
from fallow_yarn.model.size import Size
from fallow_yarn.rm.admin import ADMIN_PROTOCOL
from fallow_yarn.rm.nodes import CLIENT_PROTOCOL
from fallow_yarn.rm.signal import EPOCH_SHIFT
from fallow_yarn.rm.status import HA_PROTOCOL

YARN_EXCEPTION: Final = "org.apache.hadoop.yarn.exceptions.YarnException"
ACCESS_CONTROL: Final = "org.apache.hadoop.security.AccessControlException"
COUNTABLE_UNITS: Final = b"\x1a\x02Mi"  # field 3 of an entry of a resource: its units


def client_protocol(state: Callable[[], Scheduler], clock: Callable[[], float]) -> Protocols:
    """The calls of clients. `state` raises a `Refusal` while there is none."""

    def get_cluster_nodes(argument: bytes, _user: str) -> bytes:
        scheduler, now = state(), clock()
        scheduler.tick(now)
        wanted = {yarn_pb2.NodeState.Name(s) for s in yarn_pb2.GetClusterNodesRequest.FromString(argument).states}
        nodes = [node for node in scheduler.nodes.values() if not wanted or node.state in wanted]
        return yarn_pb2.GetClusterNodesResponse(reports=[_report(node, now) for node in nodes]).SerializeToString()

    def signal_to_container(argument: bytes, _user: str) -> bytes:
        request = yarn_pb2.SignalContainerRequest.FromString(argument)
        container_id = _container_id(request.container)
        scheduler = state()
        scheduler.tick(clock())
        if not scheduler.signal(container_id, force=request.command == yarn_pb2.FORCEFUL_SHUTDOWN):
            raise refused(YARN_EXCEPTION, f"Trying to signal an absent container {container_id}")
        return b""

    return {CLIENT_PROTOCOL: {"getClusterNodes": get_cluster_nodes, "signalToContainer": signal_to_container}}


def admin_protocol(
    state: Callable[[], Scheduler], may_change: Callable[[str], bool], lists: NodeLists, clock: Callable[[], float]
) -> Protocols:
    """The calls of administrators; the rights of the user are checked first."""

    def check(user: str, method: str) -> None:
        if not may_change(user):
            text = f"User {user} doesn't have permission to call '{method}'"
            raise refused(YARN_EXCEPTION, f"{ACCESS_CONTROL}: {text}")

    def update_node_resource(argument: bytes, user: str) -> bytes:
        check(user, "updateNodeResource")
        scheduler = state()
        updates = [_update(entry) for entry in yarn_pb2.UpdateNodeResourceRequest.FromString(argument).nodes]
        try:
            scheduler.update(updates, clock())
        except UnknownNode as error:
            text = "Resource update get failed on all nodes due to change resource on an unrecognized node"
            raise refused(YARN_EXCEPTION, f"{text}: {error}") from None
        return b""

    def refresh_nodes(argument: bytes, user: str) -> bytes:
        check(user, "refreshNodes")
        scheduler, now = state(), clock()
        request = yarn_pb2.RefreshNodesRequest.FromString(argument)
        if request.kind == yarn_pb2.FORCEFUL:
            scheduler.end_decommissioning(now)
            return b""
        lists.read()
        if request.kind == yarn_pb2.GRACEFUL:
            scheduler.refresh(request.timeout if request.HasField("timeout") else None, now)
        else:
            scheduler.refresh_now(now)
        return b""

    return {ADMIN_PROTOCOL: {"updateNodeResource": update_node_resource, "refreshNodes": refresh_nodes}}


def ha_protocol(state: Callable[[], int], transition: Callable[[bool], None]) -> Protocols:
    """The calls of high availability. `state` is 0 while it starts, 1 if active, 2 if it is a standby."""

    def get_service_status(_argument: bytes, _user: str) -> bytes:
        return bytes((0x08, state(), 0x10, 1))  # field 1: state; field 2: ready to become active

    def to_active(_argument: bytes, _user: str) -> bytes:
        transition(True)
        return b""

    def to_standby(_argument: bytes, _user: str) -> bytes:
        transition(False)
        return b""

    return {
        HA_PROTOCOL: {
            "getServiceStatus": get_service_status,
            "transitionToActive": to_active,
            "transitionToStandby": to_standby,
        }
    }


def _update(entry: yarn_pb2.NodeResource) -> Update:
    resource = entry.option.resource
    return Update(
        node_id=f"{entry.node_id.host.decode(errors='replace')}:{entry.node_id.port}",
        size=Size(resource.memory_mb, resource.virtual_cores),
        over_commit_timeout_ms=entry.option.over_commit_timeout,  # 0 where it is left out, and that ends at once
        custom={value.key.decode(errors="replace"): value.value for value in resource.values},
    )


def _report(node: NodeState, now: float) -> yarn_pb2.NodeReport:
    host, _, port = node.id.rpartition(":")
    is_known = node.is_in_table(now)
    report = yarn_pb2.NodeReport(
        http_address=node.web.encode(),
        containers=len(node.containers) if is_known else 0,
        state=node.state,
    )
    if node.grace_seconds is not None and node.is_running:
        report.decommissioning_timeout = node.grace_seconds & 0xFFFFFFFF
    report.node_id.host, report.node_id.port = host.encode(), int(port)
    used = node.used if is_known else Size(0, 0)
    report.used.memory_mb, report.used.virtual_cores = used.memory_mb, used.vcores
    capability = report.capability
    capability.memory_mb, capability.virtual_cores = node.capability.memory_mb, node.capability.vcores
    memory = capability.values.add(key=b"memory-mb", value=node.capability.memory_mb)
    memory.MergeFromString(COUNTABLE_UNITS)
    capability.values.add(key=b"vcores", value=node.capability.vcores)
    for name, value in node.custom.items():
        capability.values.add(key=name.encode(), value=value)
    return report


def _container_id(message: yarn_pb2.ContainerId) -> str:
    """The id as text."""
    application = message.attempt.application
    epoch, number = message.id >> EPOCH_SHIFT, message.id & ((1 << EPOCH_SHIFT) - 1)
    prefix = "container_" if epoch == 0 else f"container_e{epoch:02d}_"
    return f"{prefix}{application.cluster_timestamp}_{application.id:04d}_{message.attempt.attempt:02d}_{number:06d}"
