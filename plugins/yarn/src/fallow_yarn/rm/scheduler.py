"""Reads the scheduler's own values by REST: its totals, and the size and use of single nodes.

The node list of the IPC side has the ResourceManager's size of a node, which the scheduler adopts later. In the REST
entry of a node, used and available both come from the scheduler, and their sum is the size that it works with.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from msgspec import Struct, field

from fallow_yarn.errors import ProtocolError
from fallow_yarn.http.loose_json import Object, integer, is_object, member, text
from fallow_yarn.http.web import Web
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The scheduler's totals; None is a value that this release or scheduler does not report.

    `total`: the sum of the sizes of its nodes. `pending`: the sum of the pending requests, and `pending_containers` the
    number of containers in them.
    """

    total: Size | None
    pending: Size | None
    pending_containers: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerNode:
    """The size that the scheduler works with on one node, and what it has allocated there."""

    size: Size
    used: Size


class _Entry(Struct, rename="camel"):
    """The used fields of a node's entry; numbers may be text."""

    id: object = None
    used_memory: object = field(name="usedMemoryMB", default=None)
    used_virtual_cores: object = None
    available_memory: object = field(name="availMemoryMB", default=None)
    available_virtual_cores: object = None


class _Entries(Struct):
    """A list of one may be the bare entry; an empty one may be text."""

    node: list[_Entry] | _Entry | str | None = None


class _Node(Struct):
    """The page of one node."""

    node: _Entry | None = None


class _Nodes(Struct):
    """The page of all nodes."""

    nodes: _Entries | str | None


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


def read_scheduler_node(web: Web, node_id: str, deadline: Deadline) -> SchedulerNode | None:
    """The scheduler's values of one node; None if they are not reported. All are 0 while it lacks the node."""
    answer = web.decoded_if_found(f"/ws/v1/cluster/nodes/{quote(node_id, safe=':[]')}", deadline, _Node)
    return None if answer is None or answer.node is None else _scheduler_node(answer.node)


def read_scheduler_nodes(web: Web, deadline: Deadline) -> Mapping[str, SchedulerNode | None]:
    """The scheduler's values of all its nodes: one large answer (9 MB for 5,000 nodes)."""
    nodes = web.decoded("/ws/v1/cluster/nodes?states=RUNNING,DECOMMISSIONING", deadline, _Nodes).nodes
    entries = nodes.node if isinstance(nodes, _Entries) else None
    listed = entries if isinstance(entries, list) else [entries] if isinstance(entries, _Entry) else []
    return {text(entry.id): _scheduler_node(entry) for entry in listed}


def _scheduler_node(node: _Entry) -> SchedulerNode | None:
    used = _size(node.used_memory, node.used_virtual_cores)
    available = _size(node.available_memory, node.available_virtual_cores)
    if used is None or available is None:
        return None
    return SchedulerNode(size=Size(used.memory_mb + available.memory_mb, used.vcores + available.vcores), used=used)


def _total(metrics: Object) -> Size | None:
    """`totalMB` is available + allocated, with available at least 0: it is wrong while the cluster is overcommitted."""
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
