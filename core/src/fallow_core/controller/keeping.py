"""Before no node of a cluster is as large as its largest task: says so, or holds one; see `ledger.keep_largest`."""

import logging
from collections.abc import Iterable, Mapping, Sequence

from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.largest_node import keep_largest
from fallow_core.log import event
from fallow_core.model.task import ObservedTask
from fallow_core.plugins.session import ClusterSession
from fallow_hookspecs import Resources

log = logging.getLogger("fallow.keep_largest")


class Keeping:
    """Remembers what was said of each cluster, so that it is said once."""

    def __init__(self) -> None:
        self.warnings: dict[str, str] = {}

    def step(
        self, due: Sequence[DueOffer], clusters: Mapping[str, ClusterSession], tasks: Iterable[ObservedTask]
    ) -> list[DueOffer]:
        """What is due, without the fall of nodes that are held."""
        tasks = tuple(tasks)
        found: list[DueOffer] = []
        for name, cluster in clusters.items():
            own = [d for d in due if d.key.cluster == name]
            kept = keep_largest(
                own,
                tuple(cluster.rows.values()),
                _largest(cluster, tasks),
                cluster.policy.keep_largest,
                cluster.largest_elsewhere,
            )
            found += kept.due
            if kept.warning and kept.warning != self.warnings.get(name):
                event(log, logging.WARNING, "largest_node", cluster=name, reason=kept.warning)
            self.warnings[name] = kept.warning
        return found


def _largest(cluster: ClusterSession, tasks: Sequence[ObservedTask]) -> Resources:
    """The largest task that runs or waits, in each resource."""
    sizes = [task.task.requested for task in tasks if task.cluster == cluster.name]
    if cluster.pending is not None and cluster.pending.largest is not None:
        sizes.append(cluster.pending.largest)
    return Resources(
        max((size.cpu_milli for size in sizes), default=0), max((size.memory_bytes for size in sizes), default=0)
    )
