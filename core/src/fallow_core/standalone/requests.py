"""What may be asked over the control socket, and by whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fallow_core.errors import ControlError
from fallow_core.model.policy import SwitchState
from fallow_core.standalone import view

if TYPE_CHECKING:
    from fallow_core.standalone.control import Peer
    from fallow_core.standalone.process import Standalone

OPERATOR_STATES = (SwitchState.LEND, SwitchState.HOLD, SwitchState.DRAIN)


def answer(fallow: Standalone, peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request. Called in a thread of the control server.

    :raises ControlError: the request is unknown or wrong, or the peer may not ask for it.
    """
    kind = request.get("request")
    if kind == "status":
        return fallow.inbox.ask(lambda: status(fallow))
    if kind == "explain":
        return fallow.inbox.ask(lambda: _explain(fallow, request))
    if kind not in ("switch", "restore"):
        raise ControlError(f"unknown request {kind!r}; expected status, explain, switch or restore")
    if not peer.may_change:
        raise ControlError(f"user {peer.name} may not change anything: ask as root or as the user that runs Fallow")
    if kind == "switch":
        return fallow.inbox.ask(lambda: _switch(fallow, peer, request))
    return fallow.inbox.ask(lambda: _restore(fallow, peer))


def status(fallow: Standalone) -> dict[str, Any]:
    """The answer to `status`. Called in the loop's thread."""
    now = fallow.clock()
    return {
        **view.status(fallow.controller, now),
        "uptime_seconds": now - fallow.started_at,
        "config_file": str(fallow.config.file),
        "building": fallow.builds.building,
        "failed": dict(fallow.builds.failed),
        "config_problems": [str(problem) for problem in fallow.config.problems],
        "sample_problems": dict(fallow.sampler.missing),
        "restoring": not fallow.controller.left,
    }


def _explain(fallow: Standalone, request: dict[str, Any]) -> dict[str, Any]:
    node = request.get("node") or fallow.node.name
    if not isinstance(node, str) or node not in fallow.controller.ledgers:
        known = ", ".join(sorted(fallow.controller.ledgers)) or "none yet"
        raise ControlError(f"there is no node {node!r}; known: {known}")
    return view.explanation(fallow.controller, node)


def _switch(fallow: Standalone, peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
    cluster, state = request.get("cluster"), request.get("state")
    if state not in OPERATOR_STATES:
        raise ControlError(f"cannot switch to {state!r}; expected {', '.join(OPERATOR_STATES)}")
    known = fallow.controller.names
    matches = [name for name in known if cluster in (name, name.partition("/")[2])]
    if len(matches) != 1:
        found = f"{cluster!r} is {' and '.join(matches)}" if matches else f"there is no cluster {cluster!r}"
        raise ControlError(f"{found}; known: {', '.join(known) or 'none'}")
    fallow.controller.set_switch(matches[0], SwitchState(state), peer.name, str(request.get("why", "")))
    return {"cluster": matches[0], "state": state}


def _restore(fallow: Standalone, peer: Peer) -> dict[str, Any]:
    fallow.controller.restore(peer.name)
    return {"clusters": fallow.controller.names}
