"""Before no node of a cluster is as large as its largest task: says so, or holds one; see `ledger.keep_largest`."""

import logging
from collections.abc import Iterable, Mapping, Sequence

from fallow_core.controller.cluster import Cluster
from fallow_core.ledger.keep_largest import keep_largest
from fallow_core.ledger.publishing import Due
from fallow_core.log import event
from fallow_core.model.task import SeenTask
from fallow_hookspecs import Resources

log = logging.getLogger("fallow.keep_largest")


class Keeping:
    """Remembers what was said of each cluster, so that it is said once."""

    def __init__(self) -> None:
        self.warnings: dict[str, str] = {}

    def step(self, due: Sequence[Due], clusters: Mapping[str, Cluster], tasks: Iterable[SeenTask]) -> list[Due]:
        """What is due, without the fall of nodes that are held."""
        tasks = tuple(tasks)
        found: list[Due] = []
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


def _largest(cluster: Cluster, tasks: Sequence[SeenTask]) -> Resources:
    """The largest task that runs or waits, in each resource."""
    sizes = [task.task.requested for task in tasks if task.cluster == cluster.name]
    if cluster.pending is not None and cluster.pending.largest is not None:
        sizes.append(cluster.pending.largest)
    return Resources(
        max((size.cpu_milli for size in sizes), default=0), max((size.memory_bytes for size in sizes), default=0)
    )
