"""What a running Fallow shows of itself, as plain values for JSON: milli-cores, bytes, and ages in seconds."""

from dataclasses import asdict
from typing import Any

from fallow_core.api import shared_view
from fallow_core.controller.controller import Controller
from fallow_core.ledger.node_ledger import NodeLedger
from fallow_core.ledger.rows import Row
from fallow_core.model.policy import SwitchState
from fallow_core.plugins.session import ClusterSession
from fallow_hookspecs import RESOURCE_NAMES, Resources

View = dict[str, Any]


def status(controller: Controller, now: float) -> View:
    """Nodes, each cluster with its rows, and the take-backs that began within the time of the blast radius."""
    return {
        "mode": controller.state.publishing.mode,
        "journal_error": controller.journal_error,
        "journal_lost": controller.journal.lost,
        "switches": shared_view.switches(controller),
        "refused": shared_view.refused(controller),
        "nodes": [_node(controller, ledger) for ledger in controller.ledgers.values()],
        "clusters": [_cluster(controller, cluster, now) for _, cluster in sorted(controller.clusters.items())],
        "take_backs": [
            {
                "cluster": cluster,
                "resource": resource,
                "amount": started.amount,
                "ago_seconds": now - started.at,
            }
            for (cluster, resource), found in sorted(controller.state.take_backs.started.items())
            for started in found
        ],
    }


def explanation(controller: Controller, node: str, now: float) -> View:
    """Every input and every step of the offers of one node."""
    ledger = controller.ledgers[node]
    return {
        "node": node,
        "mode": controller.state.publishing.mode,
        "switches": [
            {"cluster": name, "scope": scope, **asdict(switch)}
            for name in controller.names
            for scope, switch in [controller.state.switch_at(name, node)]
            if switch.state is not SwitchState.LEND
        ],
        "resources": {name: asdict(ledger.of(name)) for name in RESOURCE_NAMES},
        "take_backs": [
            {
                "key": key._asdict(),
                "resource": name,
                "mode": controller.state.take_back.mode,
                "overdraft": decision.overdraft,
                "active": None if decision.state.active is None else asdict(decision.state.active),
                "why": decision.why,
            }
            for (key, name), decision in controller.state.nodes[node].decisions.items()
            if decision.overdraft or decision.state.active is not None
        ],
        "pending": [
            {"cluster": name, **asdict(cluster.pending)}
            for name, cluster in sorted(controller.clusters.items())
            if cluster.pending is not None and any(key.node == node for key in cluster.rows)
        ],
        "withheld": [{"key": key._asdict(), "why": why} for key, why in controller.state.nodes[node].withheld.items()],
        "floors_given_up": [
            {"key": key._asdict(), "left_seconds": until - now}
            for key, until in sorted(controller.state.nodes[node].floors_given_up.items())
        ],
        "due": [
            {
                "key": d.key._asdict(),
                "size": asdict(d.size),
                "urgent": d.urgent,
                "why": d.why,
                "take_back": dict(d.take_back),
            }
            for d in controller.state.due.values()
            if d.key.node == node
        ],
    }


def _node(controller: Controller, ledger: NodeLedger) -> View:
    return {
        "node": ledger.node,
        "pool": controller.state.pool(ledger.node),
        **{name: shared_view.resource(ledger.of(name)) for name in RESOURCE_NAMES},
        "awaited": [key._asdict() for key in controller.awaited(ledger.node)],
    }


def _cluster(controller: Controller, cluster: ClusterSession, now: float) -> View:
    return {
        "cluster": cluster.name,
        "switch": asdict(controller.switch(cluster.name)),
        **shared_view.health(cluster, now),
        "detail": cluster.detail,
        "report_age_seconds": None if cluster.reported_at is None else now - cluster.reported_at,
        "capabilities": asdict(cluster.capabilities) if cluster.capabilities is not None else None,
        "pending": asdict(cluster.pending) if cluster.pending is not None else None,
        "rows": [_row(controller, row, now) for _, row in sorted(cluster.rows.items())],
    }


def _row(controller: Controller, row: Row, now: float) -> View:
    original = controller.original(row.key)
    due = controller.state.due.get(row.key)
    return {
        "node": row.key.node,
        "framework_node": row.key.framework_node,
        "state": row.state,
        "age_seconds": now - row.measured_at,
        "allocated": asdict(row.allocated),
        "in_force": _size(row.in_force),
        "in_flight": [asdict(sent.size) for sent in row.in_flight],
        "newest": _size(row.newest_size),
        "belief": asdict(Resources(row.belief("cpu"), row.belief("memory"))),
        "floor": asdict(row.floor),
        "offer": _size(_wanted(controller, row)),
        "due": None if due is None else {"size": asdict(due.size), "why": due.why},
        "original": None if original is None else asdict(original.size),
        "changed_by_others": _size(row.foreign),
        "refusal": row.refusal,
    }


def _wanted(controller: Controller, row: Row) -> Resources | None:
    """The size that the ledger wants for a row now, before dead band and hold."""
    ledger = controller.ledgers.get(row.key.node)
    entries = zip(ledger.cpu.rows, ledger.memory.rows, strict=True) if ledger is not None else ()
    return next((Resources(cpu.size, memory.size) for cpu, memory in entries if cpu.key == row.key), None)


def _size(size: Resources | None) -> View | None:
    return None if size is None else asdict(size)
