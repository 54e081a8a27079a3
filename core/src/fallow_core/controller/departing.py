"""Clusters that were removed from the configuration while Fallow runs.

Such a cluster gets the size to leave behind, as at an orderly stop, and then no other one. Its instance goes on
reading, and its rows count in the ledger, until its scheduler can promise nothing any more that others are lent.
"""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from fallow_core.controller.leaving import Leaving, still_counts, to_leave, within_room
from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.node_ledger import NodeLedger
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.policy import AccountPolicy, ExitMode, SwitchState, TakeBack
from fallow_core.plugins.session import ClusterSession
from fallow_core.state.publish_journal import Original

SILENT_SECONDS = 600.0
"""A framework that has said nothing for so long after its cluster was removed is not waited for."""


class Departing:
    """Which clusters depart. `reasons` says why each of them still counts."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}
        self._leaving: dict[str, Leaving] = {}

    @property
    def names(self) -> AbstractSet[str]:
        """The clusters that depart."""
        return self._leaving.keys()

    def begin(self, cluster: str, leaving: Leaving) -> None:
        """A cluster was removed."""
        self._leaving[cluster] = leaving
        self.reasons[cluster] = f"its sizes to leave behind are being sent: {leaving.mode}"

    def end(self, cluster: str) -> bool:
        """A cluster has gone, or is configured again; whether it was departing."""
        self.reasons.pop(cluster, None)
        return self._leaving.pop(cluster, None) is not None

    def hold(self) -> None:
        """All sizes of clusters that depart were put back: none is to be sent any more."""
        self._leaving = {name: replace(leaving, mode=ExitMode.KEEP) for name, leaving in self._leaving.items()}

    def due(
        self,
        cluster: ClusterSession,
        rows: Mapping[RowKey, Row],
        originals: Mapping[RowKey, Original],
        ledgers: Mapping[str, NodeLedger],
    ) -> list[DueOffer]:
        """The sizes to leave behind that a cluster has not taken. `rows`: of all clusters."""
        own = [row for row in cluster.rows.values() if row.key.node in ledgers]
        return within_room(to_leave(own, originals, self._leaving[cluster.name]), rows, ledgers)

    def look(
        self,
        cluster: ClusterSession,
        rows: Collection[Row],
        others: Collection[str],
        now: float,
        *,
        is_known: bool,
        lends: bool,
    ) -> str:
        """Why a cluster still counts; empty if it does not. See `still_counts`.

        :param rows: those on nodes of ours, with no less allocated than is seen there.
        :param is_known: its framework has reported all of them.
        """
        silent = now - self._leaving[cluster.name].since >= SILENT_SECONDS
        why = "" if silent or is_known else "its framework has not reported yet"
        reasons = (still_counts(row, cluster.started(row.key), others, now, lends=lends) for row in rows)
        self.reasons[cluster.name] = why or next((reason for reason in reasons if reason), "")
        return self.reasons[cluster.name]


def departing_account(policy: AccountPolicy) -> AccountPolicy:
    """The policy of a cluster that departs: it gets no more, and nothing is taken back of it."""
    return replace(policy, switch=SwitchState.DRAIN, take_back=TakeBack.NEVER)
