"""The health of a cluster's plugin instance, as plain values for JSON; the same of `fallow run` and `fallow agent`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fallow_core.controller.cluster import Cluster
    from fallow_core.plugins.lanes import LaneHealth


def health(cluster: Cluster, now: float) -> dict[str, Any]:
    """Where the plugin comes from, what of it fails, and the state of its lanes."""
    found = cluster.instance.health()
    return {
        "plugin": asdict(cluster.instance.source),
        "failing": dict(cluster.failing),
        "wrappers": dict(found.wrappers),
        "reads": _lane(found.reads, now),
        "acts": _lane(found.acts, now),
    }


def _lane(lane: LaneHealth, now: float) -> dict[str, Any]:
    return {
        "state": lane.state,
        "reason": lane.reason,
        "failures": lane.failures,
        "failing_for_seconds": None if lane.failing_since is None else now - lane.failing_since,
        "next_try_in_seconds": None if lane.next_try_at is None else max(0.0, lane.next_try_at - now),
    }
