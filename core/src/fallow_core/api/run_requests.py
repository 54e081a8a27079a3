"""The requests that `fallow run` answers."""

import logging
from collections.abc import Collection
from pathlib import Path

from fallow_core.api.control_socket import Peer
from fallow_core.api.explain import Explanation, run_explanation
from fallow_core.api.requests import Requests, Sources, View, only
from fallow_core.api.status import Status, run_status
from fallow_core.controller.controller import Controller
from fallow_core.errors import ControlError
from fallow_core.log import event
from fallow_core.model.policy import SwitchState
from fallow_core.state.lost_files import LostFile

log = logging.getLogger("fallow.run")


class RunRequests(Requests):
    """Adds the controller to the answers, and what only a controller can do."""

    states = (SwitchState.LEND, SwitchState.HOLD, SwitchState.DRAIN, SwitchState.STOP)

    def __init__(self, controller: Controller, sources: Sources) -> None:
        super().__init__(controller, sources)
        self._controller = controller
        self.changes |= {"adopt": self._adopt, "forget": self._forget}

    def status(self) -> Status:
        """The answer to `status`."""
        return run_status(self._controller, self.sources.process_status(), self.sources.clock(), self.lost_state())

    def explain(self, request: View) -> Explanation:
        """Every input and every step of the offers of a node; without a name, of this host."""
        ledgers = self._controller.ledgers
        node = request.get("node") or self.sources.agent.node.name
        if not isinstance(node, str) or node not in ledgers:
            raise ControlError(f"there is no node {node!r}; known: {', '.join(sorted(ledgers)) or 'none yet'}")
        of_agent = (self.decisions(), self.throttling(), self.lost_state())
        return run_explanation(self._controller, node, self.sources.clock(), *of_agent)

    def _give_up(self, lost: Collection[LostFile], who: str, why: str) -> dict[Path, Path]:
        return self._controller.accept_lost_state(lost, who, why)

    def _set_switch(self, scope: str, state: SwitchState, peer: Peer, why: str) -> None:
        self._controller.set_switch(scope, state, peer.name, why)

    def _restore(self, peer: Peer, _request: View) -> View:
        self._controller.restore(peer.name)
        return {"clusters": self._controller.names}

    def _adopt(self, peer: Peer, request: View) -> View:
        """Allow that the allocations which Fallow found at first are taken back, on all nodes of a cluster."""
        name = only(request.get("cluster"), self._controller.names, "cluster")
        rows = [row.key for row in self._controller.rows if row.key.cluster == name]
        nodes = [key.framework_node for key in self._controller.adopt(rows)]
        event(log, logging.INFO, "adopted", cluster=name, who=peer.name, nodes=nodes)
        return {"cluster": name, "nodes": nodes}

    def _forget(self, peer: Peer, request: View) -> View:
        """Let a removed cluster go at once; of another one, give up the nodes that nobody has reported yet."""
        known = sorted({*self._controller.names, *self._controller.state.removed})
        name = only(request.get("cluster"), known, "cluster")
        nodes = [key.framework_node for key in self._controller.forget(name)]
        event(log, logging.WARNING, "forgotten", cluster=name, who=peer.name, nodes=nodes)
        return {"cluster": name, "configured": name in self._controller.names, "nodes": nodes}
