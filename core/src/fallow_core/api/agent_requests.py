"""The requests that `fallow agent` answers: those of `fallow run` that make sense without a controller."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from fallow_core.api.requests import Requests, Sources, View
from fallow_core.errors import ControlError
from fallow_core.log import event
from fallow_core.model.policy import SwitchState

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from fallow_core.agent.remote_ledger import RemoteLedger
    from fallow_core.api.control_socket import Peer
    from fallow_core.api.explain import Explanation
    from fallow_core.api.status import Status
    from fallow_core.state.lost_files import LostFile

log = logging.getLogger("fallow.run")


class AgentRequests(Requests):
    """Answers in the shape of `fallow run`, without rows: an agent sends no sizes, so nothing can hold or drain."""

    states = (SwitchState.LEND, SwitchState.STOP)

    def __init__(self, followed: RemoteLedger, sources: Sources) -> None:
        super().__init__(followed, sources)
        self._followed = followed

    def status(self) -> Status:
        """The answer to `status`."""
        from fallow_core.api.status import agent_status

        return agent_status(self._followed, self.sources.process_status(), self.sources.clock(), self.lost_state())

    def explain(self, _request: View) -> Explanation:
        """What this node could lend, how batch is throttled, and which tasks were terminated."""
        from fallow_core.api.explain import agent_explanation

        if not self._followed.ledgers:
            raise ControlError("nothing was measured yet; ask again")
        return agent_explanation(self._followed, self.decisions(), self.throttling(), self.lost_state())

    def _give_up(self, lost: Collection[LostFile], who: str, why: str) -> dict[Path, Path]:
        return self._followed.accept_lost_state(lost, who, why, time.time())

    def _set_switch(self, scope: str, state: SwitchState, peer: Peer, why: str) -> None:
        self._set_switches([scope], state, peer, why)

    def _restore(self, peer: Peer, _request: View) -> View:
        """Put control groups back as they were found, and change none until each cluster is switched to lend."""
        self._set_switches(self._followed.names, SwitchState.RESTORED, peer, "fallow restore")
        return {"clusters": self._followed.names}

    def _set_switches(self, scopes: Collection[str], state: SwitchState, peer: Peer, why: str) -> None:
        self._followed.set_switches(scopes, state, peer.name, why, time.time())
        for scope in scopes:
            event(log, logging.INFO, "switched", scope=scope, state=state, who=peer.name, why=why)
