"""What `fallow run` and `fallow agent` show in the same way, as plain values for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fallow_core.model.policy import SwitchState

if TYPE_CHECKING:
    from fallow_core.agent.remote_ledger import RemoteLedger
    from fallow_core.controller.controller import Controller
    from fallow_core.ledger.entries import ResourceLedger
    from fallow_core.plugins.lanes import LaneHealth
    from fallow_core.plugins.session import ClusterSession

View = dict[str, Any]


def switches(ledgers: Controller | RemoteLedger) -> list[View]:
    """Every switch that does not simply lend, with who set it, when and why."""
    stored = sorted(ledgers.journal.memory.switches.items())
    return [{"scope": scope, **asdict(switch)} for scope, switch in stored if switch.state is not SwitchState.LEND]


def refused(ledgers: Controller | RemoteLedger) -> list[str]:
    """What was refused because it cannot be true."""
    every = [ledgers.refused, *(cluster.refused for _, cluster in sorted(ledgers.clusters.items()))]
    return [line for each in every for line in each.lines()]


def resource(ledger: ResourceLedger) -> View:
    """What a node has of a resource, and what of it is used, lent and promised."""
    capacity = ledger.capacity
    names = ("capacity", "used", "batch_used", "batch")
    return {
        **{name: None if capacity is None else getattr(capacity, name) for name in names},
        "sample_age_seconds": ledger.sample_age_seconds,
        "allocated": ledger.allocated,
        "believed": ledger.believed,
        "exposure": ledger.exposure,
        "overdraft": ledger.overdraft,
    }


def health(cluster: ClusterSession, now: float) -> View:
    """Where the plugin comes from, what of it fails, and the state of its lanes."""
    found = cluster.instance.health()
    return {
        "plugin": asdict(cluster.instance.source),
        "failing": dict(cluster.failing),
        "wrappers": dict(found.wrappers),
        "reads": _lane(found.reads, now),
        "acts": _lane(found.acts, now),
    }


def _lane(lane: LaneHealth, now: float) -> View:
    return {
        "state": lane.state,
        "reason": lane.reason,
        "failures": lane.failures,
        "failing_for_seconds": None if lane.failing_since is None else now - lane.failing_since,
        "next_try_in_seconds": None if lane.next_try_at is None else max(0.0, lane.next_try_at - now),
    }
