"""Which policy a node has, and when: for all nodes, for pools, for single nodes, and by schedule."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from fallow_core.model.policy import NodePolicy, OnlineRule, ResourcePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceChange:
    """What is different for one resource; the fields are those of `ResourcePolicy`, `None` where nothing is."""

    watermark_percent: int | None = None
    rule: OnlineRule | None = None
    reserved: int | None = None
    reserved_percent: int | None = None
    reserved_per_daemon: int | None = None
    cap_percent: int | None = None
    overcommit_percent: int | None = None

    def applied(self, policy: ResourcePolicy) -> ResourcePolicy:
        """The policy with what is different."""
        found: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        changes = {name: value for name, value in found.items() if value is not None}
        return replace(policy, **changes) if changes else policy


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """What is different for a node."""

    cpu: ResourceChange = field(default_factory=ResourceChange)
    memory: ResourceChange = field(default_factory=ResourceChange)

    def applied(self, policy: NodePolicy) -> NodePolicy:
        """The policy with what is different."""
        if self == NO_CHANGE:
            return policy
        return replace(policy, cpu=self.cpu.applied(policy.cpu), memory=self.memory.applied(policy.memory))


NO_CHANGE = NodeChange()


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A part of some days, from one minute of the day to another; up to the next day where `to` is not after `from`.

    `days` are those on which it begins, Monday is 0. `change` is what is different then: watermarks and overcommit.
    """

    days: frozenset[int]
    from_minute: int
    to_minute: int
    change: NodeChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Windows in a time zone; where two overlap the first one counts. A change takes `ramp_seconds` from then on."""

    time_zone: str
    windows: tuple[Window, ...]
    ramp_seconds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What is different always, and by schedule."""

    change: NodeChange = field(default_factory=NodeChange)
    schedule: Schedule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The nodes that have all these labels, and what is different for them."""

    name: str
    node_selector: Mapping[str, str]
    layer: Layer = field(default_factory=Layer)

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels belongs to the pool, unless an earlier pool has it."""
        return all(labels.get(name) == value for name, value in self.node_selector.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePolicies:
    """The policies of all nodes. A narrower layer counts over a wider one with its schedule: node, pool, all.

    `default` is the policy of all nodes and `schedule` its schedule; `nodes` go by name.
    """

    default: NodePolicy = field(default_factory=NodePolicy)
    schedule: Schedule | None = None
    pools: tuple[Pool, ...] = ()
    nodes: Mapping[str, Layer] = field(default_factory=dict)

    def pool_of(self, labels: Mapping[str, str]) -> Pool | None:
        """The first pool, in the order of the file, that selects a node with these labels."""
        return next((pool for pool in self.pools if pool.selects(labels)), None)
