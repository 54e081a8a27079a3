"""Offers that are not made, as nothing that waits would fit; see `ledger.too_small`. Keeps why, to be shown."""

from collections.abc import Iterable, Mapping

from fallow_core.controller.cluster import Cluster
from fallow_core.ledger.publishing import Due
from fallow_core.ledger.rows import RowKey
from fallow_core.ledger.too_small import too_small


class Withheld:
    """`reasons` of the newest round of each node, by row."""

    def __init__(self) -> None:
        self.reasons: dict[RowKey, str] = {}

    def step(self, node: str, due: Iterable[Due], clusters: Mapping[str, Cluster]) -> list[Due]:
        """What is due on a node, without those. Before take-backs are added: what they send is always sent."""
        self.reasons = {key: why for key, why in self.reasons.items() if key.node != node}
        made = []
        for each in due:
            cluster = clusters[each.key.cluster]
            reason = too_small(each, cluster.rows[each.key], cluster.pending, cluster.capabilities)
            if reason:
                self.reasons[each.key] = reason
            else:
                made.append(each)
        return made
