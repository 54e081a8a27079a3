"""What may be asked of `fallow agent` over the control socket: the words of `fallow run`, as far as they make sense."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from fallow_core.controller.switches import meant
from fallow_core.errors import ControlError
from fallow_core.log import event
from fallow_core.model.policy import SwitchState

if TYPE_CHECKING:
    from fallow_core.api.control_socket import Peer
    from fallow_core.api.explain import Explanation
    from fallow_core.runtime.agent import AgentProcess

log = logging.getLogger("fallow.run")

STATES = (SwitchState.LEND, SwitchState.STOP)
"""Sizes are sent elsewhere, so there is nothing to hold or drain here."""

View = dict[str, Any]


def answer(fallow: AgentProcess, peer: Peer, request: View) -> View:
    """The answer to one request. Called in a thread of the control server.

    :raises ControlError: the request is unknown or wrong, or the peer may not ask for it.
    """
    from fallow_core.api.encoding import to_json  # with msgspec: an agent that nobody asks does without
    from fallow_core.api.tasks import tasks

    kind = request.get("request")
    if kind == "status":
        return to_json(fallow.inbox.ask(fallow.status))
    if kind == "explain":
        return to_json(fallow.inbox.ask(lambda: explanation(fallow)))
    if kind == "tasks":
        return to_json(fallow.inbox.ask(lambda: tasks(fallow.agent, fallow.clock())))
    if kind not in CHANGES:
        known = ", ".join(["status", "explain", "tasks", *CHANGES])
        raise ControlError(f"this is an agent, which knows no request {kind!r}; expected one of {known}")
    if not peer.may_change:
        raise ControlError(f"user {peer.name} may not change anything: ask as root or as the user that runs Fallow")
    return fallow.inbox.ask(lambda: CHANGES[str(kind)](fallow, peer, request))


def explanation(fallow: AgentProcess) -> Explanation:
    """The answer to `explain`: what this node could lend, how batch is throttled, and which tasks were terminated."""
    from fallow_core.api.decisions import decisions
    from fallow_core.api.explain import agent_explanation
    from fallow_core.api.throttling import throttling_status

    if fallow.node.name not in fallow.followed.ledgers:
        raise ControlError("nothing was measured yet; ask again")
    now = fallow.clock()
    throttled = throttling_status(fallow.throttling, fallow.config, now)
    return agent_explanation(fallow.followed, decisions(fallow.agent, now), throttled)


def _switch(fallow: AgentProcess, peer: Peer, request: View) -> View:
    state = request.get("state")
    if state not in STATES:
        raise ControlError(f"an agent cannot switch to {state!r}; expected {', '.join(STATES)}")
    known = fallow.followed.scopes
    matches = meant(request.get("scope"), known)
    if len(matches) != 1:
        raise ControlError(f"there is no one scope {request.get('scope')!r}; known: {', '.join(known)}")
    _set(fallow, matches, SwitchState(state), peer, str(request.get("why", "")))
    return {"scope": matches[0], "state": state}


def _restore(fallow: AgentProcess, peer: Peer, _request: View) -> View:
    """Put control groups back as they were found, and change none until each cluster is switched to lend."""
    _set(fallow, fallow.followed.names, SwitchState.RESTORED, peer, "fallow restore")
    return {"clusters": fallow.followed.names}


def _set(fallow: AgentProcess, scopes: tuple[str, ...] | list[str], state: SwitchState, peer: Peer, why: str) -> None:
    fallow.followed.set_switches(scopes, state, peer.name, why, time.time())
    for scope in scopes:
        event(log, logging.INFO, "switched", scope=scope, state=state, who=peer.name, why=why)


CHANGES = {"switch": _switch, "restore": _restore}
"""The requests that change something."""
