"""Clusters that were removed from the configuration while Fallow runs.

Such a cluster gets the size to leave behind, as at an orderly stop, and no other one. Its rows count in the ledger
until its scheduler can promise nothing any more that others are lent.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from fallow_core.ledger.rows import Row
from fallow_core.model.event import Event
from fallow_core.model.policy import AccountPolicy, PublishingMode, SwitchState, TakeBack
from fallow_core.planner.observations import ClusterObservation
from fallow_core.planner.sizes_left_behind import still_counts
from fallow_core.planner.state import PlannerState, forget_cluster

SILENT_SECONDS = 600.0
"""A framework that has said nothing for so long after its cluster was removed is not waited for."""


def account_of_removed(policy: AccountPolicy) -> AccountPolicy:
    """The policy of a cluster that was removed: it gets no more, and nothing is taken back of it."""
    return replace(policy, switch=SwitchState.DRAIN, take_back=TakeBack.NEVER)


def let_go(
    state: PlannerState, clusters: Mapping[str, ClusterObservation], busy: Collection[str], now: float
) -> tuple[list[str], list[Event]]:
    """Forget the removed clusters that can promise nothing any more. Returns their names.

    :param busy: clusters to which a size is being sent, or that have yet to take one.
    """
    gone: list[str] = []
    events: list[Event] = []
    if not state.removed:
        return gone, events
    daemons = {each.started(key) for name, each in clusters.items() if name in state.names for key in each.rows} - {""}
    for name in sorted(state.removed.keys() - state.left_behind.keys()):
        cluster = clusters[name]
        reason = _reason(state, name, cluster, daemons, now)
        state.removal_reasons[name] = reason
        if not reason and name not in busy and not cluster.publishing:
            forget_cluster(state, name)
            state.look_at_all()
            gone.append(name)
            events.append(Event(logger="controller", name="cluster_removed", fields={"cluster": name}))
    return gone, events


def _reason(state: PlannerState, name: str, cluster: ClusterObservation, daemons: Collection[str], now: float) -> str:
    """Why a removed cluster still counts; empty if it does not."""
    silent = now - state.removed[name].since >= SILENT_SECONDS
    is_known = cluster.reported and not any(key.cluster == name for key in state.awaited)
    if not (silent or is_known):
        return "its framework has not reported yet"
    lends = state.publishing.mode is PublishingMode.ENFORCE
    reasons = (
        still_counts(row, cluster.started(row.key), daemons, now, lends=lends)
        for row in _rows_here(state, cluster.rows.values())
    )
    return next((reason for reason in reasons if reason), "")


def _rows_here(state: PlannerState, rows: Iterable[Row]) -> Iterable[Row]:
    """The rows on nodes of ours, with no less allocated than is seen there."""
    for row in rows:
        node = state.nodes.get(row.key.node)
        if node is not None and node.ledger is not None:
            yield node.observation.seen(row)
