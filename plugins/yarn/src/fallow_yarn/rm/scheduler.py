"""What the scheduler itself works with, by REST: its totals, and the size and use of single nodes.

The node list of the IPC side has the ResourceManager's value of a node's size, which the scheduler follows later. In
the REST entry of a node, used and available both come from the scheduler, and their sum is the size it works with.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from fallow_yarn.errors import ProtocolError
from fallow_yarn.ipc.deadline import Deadline
from fallow_yarn.rest import Web
from fallow_yarn.rm.size import Size
from fallow_yarn.shapes import Object, integer, is_object, member, objects, text

HELD: Final = ("usedMemoryMB", "usedVirtualCores", "availMemoryMB", "availableVirtualCores")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The cluster as its scheduler sees it; None is what this release or scheduler does not tell.

    `total`: the sum of the sizes of the nodes in the scheduler. `pending`: the sum of what applications wait for, and
    `pending_containers` the number of containers that it is.
    """

    total: Size | None
    pending: Size | None
    pending_containers: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The size that the scheduler works with on one node, and what it has allocated there."""

    size: Size
    used: Size


def read_metrics(web: Web, deadline: Deadline) -> Metrics:
    """The scheduler's totals now."""
    metrics = member(web.json("/ws/v1/cluster/metrics", deadline), "clusterMetrics")
    if not is_object(metrics):
        raise ProtocolError(f"{web.endpoint}: the cluster's metrics lack clusterMetrics; is it a ResourceManager?")
    return Metrics(
        total=_total(metrics),
        pending=_size(metrics.get("pendingMB"), metrics.get("pendingVirtualCores")),
        pending_containers=integer(metrics.get("containersPending")),
    )


def read_held(web: Web, node_id: str, deadline: Deadline) -> Held | None:
    """What the scheduler has for one node; None if it has not got the node, or not at this moment."""
    answer = web.json_if_found(f"/ws/v1/cluster/nodes/{quote(node_id, safe=':[]')}", deadline)
    node = member(answer, "node")
    return _held(node) if is_object(node) else None


def read_all_held(web: Web, deadline: Deadline) -> Mapping[str, Held | None]:
    """What the scheduler has for each of its nodes: one large answer (9 MB for 5,000 nodes)."""
    answer = web.json(
        "/ws/v1/cluster/nodes?states=RUNNING,DECOMMISSIONING", deadline, keep=("nodes", "node", "id", *HELD)
    )
    if not (is_object(answer) and "nodes" in answer):
        raise ProtocolError(f"{web.endpoint}: the list of nodes lacks nodes; is it a ResourceManager?")
    return {text(node.get("id")): _held(node) for node in objects(member(answer, "nodes", "node"))}


def _held(node: Object) -> Held | None:
    """While the scheduler changes a node's size it has the node out of its table: all is 0 then, and means nothing."""
    used, available = _size(*map(node.get, HELD[:2])), _size(*map(node.get, HELD[2:]))
    if used is None or available is None or used == available == Size(0, 0):
        return None
    return Held(size=Size(used.memory_mb + available.memory_mb, used.vcores + available.vcores), used=used)


def _total(metrics: Object) -> Size | None:
    """`totalMB` is available + allocated, and available is cut at 0: it is wrong while the cluster is overcommitted."""
    exact = metrics.get("totalClusterResourcesAcrossPartition")
    if is_object(exact):
        return _size(exact.get("memory"), exact.get("vCores"))
    available = _size(metrics.get("availableMB"), metrics.get("availableVirtualCores"))
    if available is None or available.memory_mb <= 0 or available.vcores <= 0:
        return None
    return _size(metrics.get("totalMB"), metrics.get("totalVirtualCores"))


def _size(memory: object, vcores: object) -> Size | None:
    memory_mb, cores = integer(memory), integer(vcores)
    return None if memory_mb is None or cores is None else Size(memory_mb, cores)
