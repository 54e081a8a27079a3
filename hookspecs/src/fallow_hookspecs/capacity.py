"""What core and a plugin tell each other about capacity: nodes, offers, and the report.

Units: CPU in milli-cores and memory in bytes, both integers. Ages are in seconds, counted from the start of the request
that returned the value. A missing value is `None`, never zero.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

ResourceName = Literal["cpu", "memory"]
RESOURCE_NAMES: tuple[ResourceName, ...] = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class Resources:
    """An amount of each resource. Amounts may be negative where they are differences."""

    cpu_milli: int
    memory_bytes: int

    def amount(self, name: ResourceName) -> int:
        """The amount of one resource, in its own unit."""
        return self.cpu_milli if name == "cpu" else self.memory_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod on a node that matches `Plugin.pod_selector`. Only core on Kubernetes makes pods."""

    uid: str
    namespace: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A Kubernetes node, or a bare host in standalone mode. `addresses` are its host names and IP addresses.

    `pods` are filled on Kubernetes only; elsewhere they are empty. `lendable`: what could be lent there now, to all
    frameworks together; known to `diagnose` only, and `None` if it could not be measured.
    """

    name: str
    addresses: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    pods: tuple[Pod, ...] = ()
    lendable: Resources | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The most that the framework may have allocated on one of its nodes, its present allocations included.

    The offer may be smaller than the allocations. Then nothing new starts there, and nothing is terminated, except for
    the resources in `take_back`: at once the framework's own scheduler chooses and terminates whole tasks until no more
    than `take_back[resource]` is allocated, in milli-cores or bytes. That is never less than the offer; what then is
    still above the offer goes on. Core has offered less than what is allocated for a while before, so that a framework
    that can warn its tasks has done so.
    """

    node: str
    framework_node: str
    total: Resources
    take_back: Mapping[ResourceName, int] = field(default_factory=dict)


class Refusal(StrEnum):
    """Why an offer was refused."""

    UNKNOWN_NODE = "unknown node"
    NOT_LEADER = "not leader"
    ACCESS_DENIED = "access denied"
    BAD_VALUE = "bad value"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferAnswer:
    """The answer to one offer. `accepted` is the accepted size, `None` if the offer was refused.

    `reason` says why the offer was refused, or why the accepted size differs from the offered one.
    """

    node: str
    framework_node: str
    accepted: Resources | None
    refusal: Refusal | None = None
    reason: str = ""


class NodeState(StrEnum):
    """State of a framework's node. `GONE`: lost, shut down or decommissioned; the scheduler places nothing there."""

    NEW = "new"
    RUNNING = "running"
    UNHEALTHY = "unhealthy"
    DRAINING = "draining"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """The state of one of the framework's nodes.

    `in_force` is the size that the scheduler works with, not the one it was last sent; `None` if it is unknown. Sizes
    are multiples of `unit`. `floor` is the smallest size at which the framework can keep the node. Core offers less
    only if pressure terminates the tasks in the floor repeatedly. `maximum` is the largest size that the node can use.
    `started_age_seconds`: how long ago the framework's node started, if that is known. `partitions`: the partitions of
    the framework's nodes (such as YARN's node labels) whose pending requests this node can serve; the empty name is the
    default partition. Empty: it can serve all.
    """

    node: str
    framework_node: str
    age_seconds: float
    state: NodeState
    allocated: Resources
    in_force: Resources | None
    unit: Resources
    floor: Resources
    maximum: Resources | None = None
    started_age_seconds: float | None = None
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """The pending requests in the framework's queues: the sum, and the smallest and largest request if known.

    If no single request is the smallest of both resources, `smallest` is the minimum of each resource. `largest` is the
    maximum in the same way. `detail` says in a few words which applications they belong to.
    """

    total: Resources
    smallest: Resources | None = None
    largest: Resources | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A running application. A bigger `priority` is more important; `progress` is 0 to 1."""

    id: str
    name: str
    user: str
    queue: str
    kind: str
    priority: int = 0
    progress: float | None = None
    master_task_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GangReport:
    """A gang that spans nodes and is useless with fewer than `minimum` members. Core on Kubernetes will use it; today
    core ignores it.
    """

    id: str
    minimum: int
    running: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceCapability:
    """What the framework does about one resource.

    `honoured`: the scheduler respects the size. `takes_back`: it terminates tasks above an offer when it is asked to.
    `take_back_charged`: such a termination counts as a failure of the application.
    """

    honoured: bool
    takes_back: bool = False
    take_back_charged: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What the framework can do now. Core relies on nothing else. The values may change, for example after an upgrade.

    `offer_lasts_seconds`: core must send an offer again, changed by at least one unit, before it is that old. `None`:
    an offer never expires.
    """

    cpu: ResourceCapability
    memory: ResourceCapability
    ends_single_tasks: bool = False
    ends_gracefully: bool = False
    reports_progress: bool = False
    has_gangs: bool = False
    offer_lasts_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReport:
    """The answer of `report_capacity`.

    `answers` has one entry for each offer of the call. `rows` has one entry for each of the framework's nodes on the
    requested nodes that the plugin has news of. A missing row means no news, not zero: the row from before ages.
    `pending` is `None` if it is unknown. `pending_by_partition` is the part of each partition of a framework that has
    several; a partition that is missing there is unknown, not zero. `largest_elsewhere` is the framework's largest node
    outside the requested nodes, if that is known: while it fits the largest task, no node here has to. `gangs` that
    span nodes are for core on Kubernetes; today core ignores them. `detail` names the peer of the plugin (address,
    version, leader). `scheduler_start` tells one start of the framework's scheduler from another: it changes when the
    scheduler is started anew or another one takes over; empty if unknown.
    """

    capabilities: Capabilities
    rows: tuple[ReportRow, ...]
    answers: tuple[OfferAnswer, ...] = ()
    pending: Pending | None = None
    pending_by_partition: Mapping[str, Pending] = field(default_factory=dict)
    applications: tuple[Application, ...] = ()
    gangs: tuple[GangReport, ...] = ()
    detail: str = ""
    largest_elsewhere: Resources | None = None
    scheduler_start: str = ""
