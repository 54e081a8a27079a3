"""Which of the due offers are sent now: by mode, by interval, and where only sizes to leave behind are sent."""

from collections.abc import Iterable, Mapping

from fallow_core.ledger import rows as ledger_rows
from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.ledger.sharing import beyond_dead_band
from fallow_core.model.event import Event
from fallow_core.model.policy import PublishingMode
from fallow_core.planner.observations import ClusterObservation
from fallow_core.planner.sizes_left_behind import to_leave, within_room
from fallow_core.planner.state import PlannerState
from fallow_hookspecs import RESOURCE_NAMES

EARLY_SECONDS = 0.05
"""Rounds are not exact: what is due by so much later is sent now, and need not wait for another round."""


def to_send(
    state: PlannerState, clusters: Mapping[str, ClusterObservation], now: float
) -> tuple[dict[str, list[DueOffer]], set[str]]:
    """The offers of each cluster to send in this round, and the removed clusters that have yet to take a size.

    Removed clusters come last: what the others are sent in this round is not in the ledger yet.
    """
    by_cluster: dict[str, list[DueOffer]] = {}
    for each in state.due.values():
        by_cluster.setdefault(each.key.cluster, []).append(each)
    found: dict[str, list[DueOffer]] = {}
    waiting: set[str] = set()
    for name in sorted(clusters, key=lambda name: (name in state.removed, name)):
        cluster = clusters[name]
        due = by_cluster.get(name, [])
        if not cluster.reported:  # an instance that has just succeeded another one knows no node yet
            due = []
        elif name in state.left_behind:
            due = _to_leave(state, name, cluster)
        else:
            if state.publishing.mode is PublishingMode.OBSERVE:
                due = []
            if name in state.removed and not due:
                due = _of_removed(state, name, clusters, found, now)
        if name in state.removed and due:
            waiting.add(name)
        urgent = name in state.left_behind or any(d.urgent for d in due)
        if due and cluster.may_publish and _is_time(state, cluster, now, urgent=urgent):
            found[name] = due
    return found, waiting


def is_published(state: PlannerState, key: RowKey) -> bool:
    """Whether the sizes of the ledger are for this row."""
    return key.cluster not in state.removed and not state.restored(key.cluster)


def tell_due(state: PlannerState) -> list[Event]:
    """The events for offers that observe mode does not send; one is repeated after a change beyond the dead band."""
    events = []
    for d in state.due.values():
        told = state.told.get(d.key)
        changes = () if told is None else ((told.amount(name), d.size.amount(name)) for name in RESOURCE_NAMES)
        if told is None or any(beyond_dead_band(old, new, state.publishing.dead_band_percent) for old, new in changes):
            state.told[d.key] = d.size
            names = {"mode": "observe", "cluster": d.key.cluster, "node": d.key.framework_node}
            sizes = {"cpu_milli": d.size.cpu_milli, "memory_bytes": d.size.memory_bytes, "why": d.why}
            events.append(Event(logger="controller", name="offer_not_sent", fields=names | sizes))
    return events


def _is_time(state: PlannerState, cluster: ClusterObservation, now: float, *, urgent: bool) -> bool:
    limits = state.publishing
    pause = limits.urgent_interval_seconds if urgent else limits.publish_interval_seconds
    return cluster.published_at is None or now - cluster.published_at >= pause - EARLY_SECONDS


def _to_leave(state: PlannerState, name: str, cluster: ClusterObservation) -> list[DueOffer]:
    if cluster.publishing:
        return []
    due = to_leave(cluster.rows.values(), state.originals, state.left_behind[name])
    if not due:
        del state.left_behind[name]
    return due


def _of_removed(
    state: PlannerState,
    name: str,
    clusters: Mapping[str, ClusterObservation],
    sent: Mapping[str, Iterable[DueOffer]],
    now: float,
) -> list[DueOffer]:
    """The sizes that a removed cluster leaves behind; they grow only out of what nobody may promise."""
    cluster = clusters[name]
    if cluster.publishing or state.publishing.mode is PublishingMode.OBSERVE:
        return []
    ledgers = {node.name: node.ledger for node in state.nodes.values() if node.ledger is not None}
    own = [row for row in cluster.rows.values() if row.key.node in ledgers]
    due = to_leave(own, state.originals, state.removed[name])
    if not due:
        return []
    rows: dict[RowKey, Row] = {key: row for each in clusters.values() for key, row in each.rows.items()}
    for d in (d for offers in sent.values() for d in offers):
        rows[d.key] = ledger_rows.sent(rows[d.key], d.size, now)
    return within_room(due, rows, ledgers)
