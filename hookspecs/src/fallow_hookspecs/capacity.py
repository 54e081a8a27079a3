"""What core and a plugin tell each other about capacity: nodes, offers, and the report.

Units: CPU in milli-cores, memory in bytes, both integers; every age in seconds, counted from when the request that
brought the value began. A missing value is `None`, never zero.
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
    """A pod on a node that matches the selector the plugin declared."""

    uid: str
    namespace: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A Kubernetes node, or a bare host in standalone mode. `addresses` are host names and IP addresses of it."""

    name: str
    addresses: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    pods: tuple[Pod, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The most that the framework may have allocated on one of its nodes, its own allocations included.

    It may be below what is allocated: then nothing new starts there, and nothing is terminated, except for a resource
    in `take_back`: there the framework's own scheduler is to end work, by its own choice, until it fits, and
    `take_back[resource]` is the notice in seconds, counted from when the size is in force.
    """

    node: str
    framework_node: str
    total: Resources
    take_back: Mapping[ResourceName, int] = field(default_factory=dict)


class Refusal(StrEnum):
    """Why an offer was not taken."""

    UNKNOWN_NODE = "unknown node"
    NOT_LEADER = "not leader"
    ACCESS_DENIED = "access denied"
    BAD_VALUE = "bad value"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferAnswer:
    """What became of one offer. `accepted` is the size that was taken, `None` if it was refused.

    `reason` says in words why it was refused, or why the size taken is not the one offered.
    """

    node: str
    framework_node: str
    accepted: Resources | None
    refusal: Refusal | None = None
    reason: str = ""


class NodeState(StrEnum):
    """State of a framework's node. `GONE`: lost, shut down or decommissioned; its scheduler promises nothing there."""

    NEW = "new"
    RUNNING = "running"
    UNHEALTHY = "unhealthy"
    DRAINING = "draining"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """What the framework says of one of its nodes.

    `in_force` is the size its scheduler really works with, not the one it was last sent; `None` where that is not
    known. Sizes are multiples of `unit`; `floor` is the smallest size at which the framework can keep the node, and an
    offer is below it only where pressure ends what runs in it again and again; `maximum` is the largest that it can
    use. `started_age_seconds`: when the framework's node started, where known.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What waits in the framework's queues: the sum, and the smallest and largest single request where known.

    Where no one request is the smallest of both resources, `smallest` is the smallest of each; so is `largest`.
    `detail` says in a few words whose it is.
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
    """A gang that spans nodes: it is useless with fewer than `minimum` members."""

    id: str
    minimum: int
    running: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceCapability:
    """What the framework does about one resource.

    `honoured`: its scheduler heeds the size at all. `takes_back`: it ends work that is above an offer when asked.
    `take_back_charged`: the application is charged with a failure for that.
    """

    honoured: bool
    takes_back: bool = False
    take_back_charged: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What the framework can do now. It may change with what the instance talks to; core plans nothing beyond it.

    `offer_lasts_seconds`: an offer must be sent again, changed by at least one unit, before it is that old; `None` if
    an offer never runs out.
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

    `answers` has one entry for each offer of the call; `rows` one for each of the framework's nodes that the plugin
    has news of on the nodes asked for. A node left out keeps growing older; it is not zero. `pending` is `None` where
    it is not known. `largest_elsewhere`: the framework's largest node that is not on the nodes asked for, where that
    is known: as long as it is large enough, no node here has to be. `detail` says in a few words whom the plugin talked
    to (address, version, leader).
    """

    capabilities: Capabilities
    rows: tuple[ReportRow, ...]
    answers: tuple[OfferAnswer, ...] = ()
    pending: Pending | None = None
    applications: tuple[Application, ...] = ()
    gangs: tuple[GangReport, ...] = ()
    detail: str = ""
    largest_elsewhere: Resources | None = None
