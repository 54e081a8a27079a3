"""The largest-node guard: before no node of a cluster is as large as its largest task, this is said, or one keeps its
size; see `ledger.largest_node`.
"""

from collections.abc import Iterable

from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.largest_node import keep_largest
from fallow_core.ledger.rows import larger
from fallow_core.model.event import Event
from fallow_core.planner.observations import ClusterObservation
from fallow_core.planner.state import ClusterState
from fallow_hookspecs import Resources


def guard(
    name: str, cluster: ClusterState, observation: ClusterObservation, due: Iterable[DueOffer]
) -> tuple[tuple[DueOffer, ...], list[Event]]:
    """Drop the shrink of the node that keeps its size from the due offers of a cluster. Return a new warning once."""
    kept = keep_largest(
        tuple(due),
        observation.rows,
        _largest(cluster, observation),
        observation.policy.keep_largest,
        observation.largest_elsewhere,
    )
    is_new = kept.warning and kept.warning != cluster.warning
    cluster.warning = kept.warning
    fields = {"cluster": name, "reason": kept.warning}
    return kept.due, [Event(logger="keep_largest", name="largest_node", fields=fields, warning=True)] if is_new else []


def _largest(cluster: ClusterState, observation: ClusterObservation) -> Resources:
    """The largest task that runs or is pending, in each resource."""
    pending = observation.pending
    largest = None if pending is None else pending.largest
    if largest is None:
        return cluster.sums.largest
    return larger(cluster.sums.largest, largest)
