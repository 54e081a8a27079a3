"""The requests that `fallow agent` answers: those of `fallow run` that make sense without a controller."""

import logging
import time
from collections.abc import Iterable
from dataclasses import asdict

from fallow_core.agent.remote_ledger import RemoteLedger
from fallow_core.api import shared_view
from fallow_core.api.control_socket import Peer
from fallow_core.api.requests import Requests, Sources, View
from fallow_core.errors import ControlError
from fallow_core.log import event
from fallow_core.model.policy import PublishingMode, SwitchState
from fallow_core.plugins.session import ClusterSession
from fallow_hookspecs import RESOURCE_NAMES

log = logging.getLogger("fallow.run")


class AgentRequests(Requests):
    """Answers in the shape of `fallow run`, without rows: an agent sends no sizes, so nothing can hold or drain."""

    states = (SwitchState.LEND, SwitchState.STOP)

    def __init__(self, followed: RemoteLedger, sources: Sources) -> None:
        super().__init__(followed, sources)
        self._followed = followed

    def status(self) -> View:
        """The answer to `status`. Called in the loop's thread."""
        followed = self._followed
        return {
            "role": "agent",
            "mode": PublishingMode.OBSERVE,
            "journal_error": "",
            "journal_lost": followed.journal.lost,
            "switches": shared_view.switches(followed),
            "refused": shared_view.refused(followed),
            "nodes": [
                {
                    "node": ledger.node,
                    "pool": followed.pool(ledger.node),
                    **{name: shared_view.resource(ledger.of(name)) for name in RESOURCE_NAMES},
                    "awaited": [],
                }
                for ledger in followed.ledgers.values()
            ],
            "clusters": [self._cluster(cluster) for _, cluster in sorted(followed.clusters.items())],
            "take_backs": [],
            "ledger_row": followed.row_file.why or "counts",
            "departing": {},
            "restoring": False,
            **asdict(self.sources.process_view()),
        }

    def explain(self, _request: View) -> View:
        """What this node could lend, how batch is throttled, and which tasks were terminated."""
        node = self.sources.agent.node.name
        ledger = self._followed.ledgers.get(node)
        if ledger is None:
            raise ControlError("nothing was measured yet; ask again")
        return {
            "role": "agent",
            "node": node,
            "mode": PublishingMode.OBSERVE,
            "resources": {name: asdict(ledger.of(name)) for name in RESOURCE_NAMES},
            "switches": [
                {"cluster": name, "scope": scope, **asdict(switch)}
                for name in self._followed.names
                for scope, switch in [self._followed.switch_at(name, node)]
                if switch.state is not SwitchState.LEND
            ],
            "take_backs": [],
            "pending": [],
            "withheld": [],
            "floors_given_up": [],
            "due": [],
            "ledger_row": self._row(),
            **self._node_decisions(),
        }

    def _row(self) -> View:
        """What a controller says of this node, in bytes of memory, or why no row of its ledger is valid."""
        row = self._followed.row
        accounts = {} if row is None else {name: asdict(account) for name, account in sorted(row.accounts.items())}
        return {
            "why": self._followed.row_file.why,
            "to_take_back": None if row is None else row.to_take_back,
            "accounts": accounts,
        }

    def _cluster(self, cluster: ClusterSession) -> View:
        now, listed = self.sources.clock(), cluster.lists.get(self.sources.agent.node.name)
        return {
            "cluster": cluster.name,
            "switch": asdict(self._followed.switch(cluster.name)),
            **shared_view.health(cluster, now),
            "detail": "" if listed is None else f"{len(listed.tasks)} tasks listed",
            "report_age_seconds": None if listed is None else now - listed.measured_at,
            "capabilities": None,
            "pending": None,
            "rows": [],
        }

    def _set_switch(self, scope: str, state: SwitchState, peer: Peer, why: str) -> None:
        self._set_switches([scope], state, peer, why)

    def _restore(self, peer: Peer, _request: View) -> View:
        """Put control groups back as they were found, and change none until each cluster is switched to lend."""
        self._set_switches(self._followed.names, SwitchState.RESTORED, peer, "fallow restore")
        return {"clusters": self._followed.names}

    def _set_switches(self, scopes: Iterable[str], state: SwitchState, peer: Peer, why: str) -> None:
        self._followed.set_switches(scopes, state, peer.name, why, time.time())
        for scope in scopes:
            event(log, logging.INFO, "switched", scope=scope, state=state, who=peer.name, why=why)
