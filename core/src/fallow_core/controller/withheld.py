"""Offers that are not made, as nothing that waits would fit; see `ledger.too_small`. Keeps why, to be shown."""

from collections.abc import Iterable, Mapping

from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.offer_filter import too_small
from fallow_core.ledger.rows import RowKey
from fallow_core.plugins.session import ClusterSession


class Withheld:
    """`reasons` of the newest round of each node, by row."""

    def __init__(self) -> None:
        self.reasons: dict[RowKey, str] = {}

    def step(self, node: str, due: Iterable[DueOffer], clusters: Mapping[str, ClusterSession]) -> list[DueOffer]:
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
