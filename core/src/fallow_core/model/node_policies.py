"""The policies of nodes: for all nodes, for pools, for single nodes, and by schedule."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from fallow_core.model.policy import NodePolicy, OnlineRule, ResourcePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceChange:
    """Changes to the policy of one resource; the fields are those of `ResourcePolicy`, `None`: unchanged."""

    watermark_percent: int | None = None
    rule: OnlineRule | None = None
    reserved: int | None = None
    reserved_percent: int | None = None
    reserved_per_daemon: int | None = None
    cap_percent: int | None = None
    overcommit_percent: int | None = None

    def applied(self, policy: ResourcePolicy) -> ResourcePolicy:
        """The policy with these changes."""
        found: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        changes = {name: value for name, value in found.items() if value is not None}
        return replace(policy, **changes) if changes else policy


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """Changes to the policy of a node."""

    cpu: ResourceChange = field(default_factory=ResourceChange)
    memory: ResourceChange = field(default_factory=ResourceChange)

    def applied(self, policy: NodePolicy) -> NodePolicy:
        """The policy with these changes."""
        if self == NO_CHANGE:
            return policy
        return replace(policy, cpu=self.cpu.applied(policy.cpu), memory=self.memory.applied(policy.memory))


NO_CHANGE = NodeChange()


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A time window on some days, from one minute of the day to another; if `to` is not after `from`, to the next day.

    `days`: the days on which it begins, Monday is 0. `change`: the changes of watermarks and overcommit meanwhile.
    """

    days: frozenset[int]
    from_minute: int
    to_minute: int
    change: NodeChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Windows in a time zone; of overlapping windows the first one applies. A change takes `ramp_seconds`."""

    time_zone: str
    windows: tuple[Window, ...]
    ramp_seconds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Permanent changes, and changes by schedule."""

    change: NodeChange = field(default_factory=NodeChange)
    schedule: Schedule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The nodes that have all these labels, and the changes for them."""

    name: str
    node_selector: Mapping[str, str]
    layer: Layer = field(default_factory=Layer)

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether the pool contains a node with these labels, unless an earlier pool does."""
        return all(labels.get(name) == value for name, value in self.node_selector.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePolicies:
    """The policies of all nodes. A narrower layer with its schedule overrides a wider one: node, pool, all.

    `default` is the policy of all nodes and `schedule` its schedule; the keys of `nodes` are names.
    """

    default: NodePolicy = field(default_factory=NodePolicy)
    schedule: Schedule | None = None
    pools: tuple[Pool, ...] = ()
    nodes: Mapping[str, Layer] = field(default_factory=dict)

    def pools_of(self, labels: Mapping[str, str]) -> tuple[Pool, ...]:
        """The pools that a node with these labels matches, in the order of the file: the first one counts."""
        return tuple(pool for pool in self.pools if pool.selects(labels))
