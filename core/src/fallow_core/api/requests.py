"""What may be asked over the control socket, and by whom."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fallow_core.api.decisions import decisions
from fallow_core.api.encoding import to_json
from fallow_core.api.explain import Explanation, run_explanation
from fallow_core.api.tasks import tasks
from fallow_core.api.throttling import throttling_status
from fallow_core.controller.switches import meant
from fallow_core.errors import ControlError
from fallow_core.log import event
from fallow_core.model.policy import SwitchState

if TYPE_CHECKING:
    from fallow_core.api.control_socket import Peer
    from fallow_core.runtime.standalone import Standalone

log = logging.getLogger("fallow.run")

OPERATOR_STATES = (SwitchState.LEND, SwitchState.HOLD, SwitchState.DRAIN, SwitchState.STOP)


def answer(fallow: Standalone, peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request. Called in a thread of the control server.

    :raises ControlError: the request is unknown or wrong, or the peer may not ask for it.
    """
    kind = request.get("request")
    if kind == "status":
        return to_json(fallow.inbox.ask(fallow.status))
    if kind == "explain":
        return to_json(fallow.inbox.ask(lambda: _explain(fallow, request)))
    if kind == "tasks":
        return to_json(fallow.inbox.ask(lambda: tasks(fallow.agent, fallow.clock())))
    if not isinstance(kind, str) or kind not in CHANGES:
        known = ", ".join(["status", "explain", "tasks", *CHANGES])
        raise ControlError(f"unknown request {kind!r}; expected one of {known}")
    if not peer.may_change:
        raise ControlError(f"user {peer.name} may not change anything: ask as root or as the user that runs Fallow")
    return fallow.inbox.ask(lambda: CHANGES[kind](fallow, peer, request))


def _explain(fallow: Standalone, request: dict[str, Any]) -> Explanation:
    node = request.get("node") or fallow.node.name
    if not isinstance(node, str) or node not in fallow.controller.ledgers:
        known = ", ".join(sorted(fallow.controller.ledgers)) or "none yet"
        raise ControlError(f"there is no node {node!r}; known: {known}")
    now = fallow.clock()
    throttled = throttling_status(fallow.throttling, fallow.config, now)
    return run_explanation(fallow.controller, node, now, decisions(fallow.agent, now), throttled)


def _switch(fallow: Standalone, peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
    state = request.get("state")
    if state not in OPERATOR_STATES:
        raise ControlError(f"cannot switch to {state!r}; expected {', '.join(OPERATOR_STATES)}")
    scope = _one(request.get("scope"), fallow.controller.scopes, "scope")
    fallow.controller.set_switch(scope, SwitchState(state), peer.name, str(request.get("why", "")))
    return {"scope": scope, "state": state}


def _cluster(fallow: Standalone, asked: object) -> str:
    """The full name of a cluster that is meant by its full or its short name."""
    return _one(asked, fallow.controller.names, "cluster")


def _one(asked: object, known: Sequence[str], what: str) -> str:
    matches = meant(asked, known)
    if len(matches) != 1:
        found = f"{asked!r} is {' and '.join(matches)}" if matches else f"there is no {what} {asked!r}"
        raise ControlError(f"{found}; known: {', '.join(known) or 'none'}")
    return matches[0]


def _restore(fallow: Standalone, peer: Peer, _request: dict[str, Any]) -> dict[str, Any]:
    fallow.controller.restore(peer.name)
    return {"clusters": fallow.controller.names}


def _adopt(fallow: Standalone, peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
    """Let what was there at first be taken back, on all nodes of a cluster."""
    name = _cluster(fallow, request.get("cluster"))
    rows = fallow.controller.taking_back.adopt(row.key for row in fallow.controller.rows if row.key.cluster == name)
    event(log, logging.INFO, "adopted", cluster=name, who=peer.name, nodes=[key.framework_node for key in rows])
    return {"cluster": name, "nodes": [key.framework_node for key in rows]}


CHANGES = {"switch": _switch, "restore": _restore, "adopt": _adopt}
"""The requests that change something."""
