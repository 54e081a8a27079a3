"""What a ResourceManager answered: its nodes, its totals and its own settings, as values. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fallow_yarn.model.size import ZERO, Size
from fallow_yarn.rm.facts import Identity, Setup
from fallow_yarn.rm.nodes import GONE, Node
from fallow_yarn.rm.scheduler import Metrics

DEFAULT_MINIMUM: Final = Size(memory_mb=1024, vcores=1)
"""Hadoop's default minimum allocation, used where the ResourceManager does not show its setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReading:
    """A node with its scheduler's values; None is a value that this reading could not determine.

    `in_force`: the size that the scheduler works with. `used`: its allocation. Both are None for a node that is not in
    the scheduler, such as an unhealthy one; its containers may still run.
    """

    node: Node
    in_force: Size | None
    used: Size | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All nodes by id, and the scheduler's totals."""

    nodes: Mapping[str, NodeReading]
    metrics: Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The identity, and the scheduler's settings (None while it is not active)."""

    identity: Identity
    setup: Setup | None


def floor_of(facts: Facts) -> Size:
    """The smallest size of a node with which its NodeManager survives a restart of the ResourceManager.

    From 3.3 on a NodeManager registers with the size that it was sent last; below the scheduler's minimum allocation it
    is refused when the ResourceManager restarts, and exits. Before 3.3 no size is sent to it.
    """
    if not facts.identity.takes_back:
        return ZERO
    return (facts.setup.minimum if facts.setup is not None else None) or DEFAULT_MINIMUM


def live(node_ids: Iterable[str], readings: Mapping[str, NodeReading]) -> list[str]:
    """The ids without those of NodeManagers that are gone: lost, shut down, decommissioned."""
    return [node_id for node_id in node_ids if readings[node_id].node.state not in GONE]
