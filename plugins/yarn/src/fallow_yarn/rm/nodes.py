"""Reads the ResourceManager's list of nodes, by IPC (getClusterNodes)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from google.protobuf.message import DecodeError

from fallow_yarn.errors import ProtocolError
from fallow_yarn.ipc.protos import yarn_pb2
from fallow_yarn.model.host_name import LARGEST_PORT, is_host
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline

CLIENT_PROTOCOL: Final = "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB"
IN_FIELDS: Final = (b"memory-mb", b"vcores")  # types with fields of their own, which Java writes twice

Call = Callable[[str, bytes, Deadline], bytes]
"""A remote call: method, encoded request, deadline to encoded reply (`ipc.connection.Connection.call`)."""


class State(StrEnum):
    """State of a node at the ResourceManager; UNKNOWN is a state that this plugin does not know."""

    NEW = "NEW"
    RUNNING = "RUNNING"
    UNHEALTHY = "UNHEALTHY"
    DECOMMISSIONED = "DECOMMISSIONED"
    LOST = "LOST"
    REBOOTED = "REBOOTED"
    DECOMMISSIONING = "DECOMMISSIONING"
    SHUTDOWN = "SHUTDOWN"
    UNKNOWN = "UNKNOWN"


IN_SCHEDULER: Final = frozenset({State.RUNNING, State.DECOMMISSIONING})
ACTIVE: Final = IN_SCHEDULER | {State.NEW, State.UNHEALTHY}  # those whose size can be updated
GONE: Final = frozenset({State.DECOMMISSIONED, State.LOST, State.REBOOTED, State.SHUTDOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomResource:
    """One further resource type of a node, such as GPUs. An update without it sets it to 0.

    `message` is the entry as the ResourceManager wrote it, with units and tags, to be sent back unchanged.
    """

    name: str
    value: int
    message: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node. `node_id` is the ResourceManager's own name for it, `host:port` of the NodeManager.

    `capability` is the ResourceManager's size of the node; its scheduler may still work with an earlier one. `used` and
    `containers` are the scheduler's, and both are 0 too while the node is not in its table. `grace_seconds`: the grace
    of a node that is being decommissioned, from the start of that; -1: without end. `label`: its partition, of which a
    node has one; empty: the default partition.
    """

    node_id: str
    host: str
    http_address: str
    state: State
    capability: Size
    custom: tuple[CustomResource, ...]
    used: Size
    containers: int
    grace_seconds: int | None = None
    label: str = ""


def list_nodes(call: Call, where: str, deadline: Deadline) -> tuple[Node, ...]:
    """All nodes in all states; of two entries with the same id the active one. An entry whose host is no host name is
    left out, alone: a NodeManager chooses its name itself.

    `where` names the server in the message of a ProtocolError.
    """
    request = yarn_pb2.GetClusterNodesRequest()
    reply = call("getClusterNodes", request.SerializeToString(), deadline)
    response = yarn_pb2.GetClusterNodesResponse()
    try:
        response.ParseFromString(reply)
    except DecodeError as error:
        raise ProtocolError(f"{where}: the list of nodes is not readable: {error}") from None
    nodes: dict[str, Node] = {}
    for report in response.reports:
        if not (report.node_id.host and report.node_id.port and report.HasField("capability")):
            raise ProtocolError(f"{where}: an entry in the list of nodes lacks its id or its size")
        node = _node(report)
        if not (is_host(node.host) and 0 < report.node_id.port <= LARGEST_PORT):
            continue
        if node.node_id not in nodes or node.state in ACTIVE:
            nodes[node.node_id] = node
    return tuple(nodes.values())


def updatable_ids(nodes: Iterable[Node]) -> frozenset[str]:
    """The ids whose size the ResourceManager lets change."""
    return frozenset(node.node_id for node in nodes if node.state in ACTIVE)


def _node(report: yarn_pb2.NodeReport) -> Node:
    host = _text(report.node_id.host)
    return Node(
        node_id=f"{host}:{report.node_id.port}",
        host=host,
        http_address=_web_address(host, _text(report.http_address)),
        state=State(yarn_pb2.NodeState.Name(report.state)) if report.HasField("state") else State.UNKNOWN,
        capability=_size(report.capability),
        custom=tuple(
            CustomResource(name=_text(entry.key), value=entry.value, message=entry.SerializeToString())
            for entry in report.capability.values
            if entry.key not in IN_FIELDS
        ),
        used=_size(report.used),
        containers=report.containers,
        grace_seconds=_grace(report),
        label=next(map(_text, report.labels), ""),
    )


def _web_address(host: str, reported: str) -> str:
    """The address of the node's web pages: on the host of its id, as Hadoop makes it, at the reported port.

    So nothing that is reported sends this plugin, and a Kerberos proof, to another host. Empty without a port.
    """
    port = reported.rpartition(":")[2]
    return "" if not port.isdecimal() else f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _grace(report: yarn_pb2.NodeReport) -> int | None:
    if not report.HasField("decommissioning_timeout"):
        return None
    given = report.decommissioning_timeout
    return given if given < 1 << 31 else -1


def _size(resource: yarn_pb2.Resource) -> Size:
    return Size(resource.memory_mb, resource.virtual_cores)


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
