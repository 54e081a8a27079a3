"""What may be asked of `fallow agent` over the control socket: the words of `fallow run`, as far as they make sense."""

from __future__ import annotations

import logging
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fallow_core.api import shared_view, task_view
from fallow_core.controller.switches import meant
from fallow_core.errors import ControlError
from fallow_core.log import event
from fallow_core.model.policy import PublishingMode, SwitchState
from fallow_hookspecs import RESOURCE_NAMES

if TYPE_CHECKING:
    from fallow_core.api.control_socket import Peer
    from fallow_core.plugins.session import ClusterSession
    from fallow_core.runtime.agent import AgentProcess

log = logging.getLogger("fallow.run")

STATES = (SwitchState.LEND, SwitchState.STOP)
"""Sizes are sent elsewhere, so there is nothing to hold or drain here."""

View = dict[str, Any]


def answer(fallow: AgentProcess, peer: Peer, request: View) -> View:
    """The answer to one request. Called in a thread of the control server.

    :raises ControlError: the request is unknown or wrong, or the peer may not ask for it.
    """
    kind = request.get("request")
    if kind == "status":
        return fallow.inbox.ask(lambda: status(fallow))
    if kind == "explain":
        return fallow.inbox.ask(lambda: explanation(fallow))
    if kind == "tasks":
        return fallow.inbox.ask(lambda: task_view.tasks(fallow.agent, fallow.clock()))
    if kind not in CHANGES:
        known = ", ".join(["status", "explain", "tasks", *CHANGES])
        raise ControlError(f"this is an agent, which knows no request {kind!r}; expected one of {known}")
    if not peer.may_change:
        raise ControlError(f"user {peer.name} may not change anything: ask as root or as the user that runs Fallow")
    return fallow.inbox.ask(lambda: CHANGES[str(kind)](fallow, peer, request))


def status(fallow: AgentProcess) -> View:
    """The answer to `status`: in the shape of that of `fallow run`, without rows. Called in the loop's thread."""
    now, followed = fallow.clock(), fallow.followed
    why = followed.row_file.why
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
                "pool": followed.watched.pool(ledger.node),
                **{name: shared_view.resource(ledger.of(name)) for name in RESOURCE_NAMES},
                "awaited": [],
            }
            for ledger in followed.ledgers.values()
        ],
        "clusters": [_cluster(fallow, cluster, now) for _, cluster in sorted(fallow.clusters.items())],
        "take_backs": [],
        "ledger_row": why or "counts",
        "uptime_seconds": now - fallow.started_at,
        "config_file": str(fallow.config.file),
        "building": fallow.builds.building,
        "failed": dict(fallow.builds.failed),
        "not_selected": fallow.config.not_selected_reasons,
        "config_problems": fallow.refusals.lines(),
        "refused_files": fallow.refusals.shown(),
        "departing": {},
        "sample_problems": dict(fallow.sampler.missing),
        "restoring": False,
        "throttle_problems": [
            *fallow.throttling.problems(fallow.config),
            *([f"no task is terminated for overdraft: {why}"] if why else []),
            *([fallow.policy_error] if fallow.policy_error else []),
            *fallow.watch.missing,
        ],
        "changed_groups": fallow.throttling.changed(),
    }


def explanation(fallow: AgentProcess) -> View:
    """The answer to `explain`: what this node could lend, how far batch is slowed down, and who was terminated."""
    ledger = fallow.followed.ledgers.get(fallow.node.name)
    if ledger is None:
        raise ControlError("nothing was measured yet; ask again")
    return {
        "role": "agent",
        "node": fallow.node.name,
        "mode": PublishingMode.OBSERVE,
        "resources": {name: asdict(ledger.of(name)) for name in RESOURCE_NAMES},
        "switches": [
            {"cluster": name, "scope": scope, **asdict(switch)}
            for name in fallow.followed.names
            for scope, switch in [fallow.followed.switch_at(name)]
            if switch.state is not SwitchState.LEND
        ],
        "take_backs": [],
        "pending": [],
        "withheld": [],
        "floors_given_up": [],
        "due": [],
        "ledger_row": _row(fallow),
        "decisions": task_view.decisions(fallow.agent, fallow.clock()),
        "throttle": fallow.throttling.shown(fallow.config),
    }


def _row(fallow: AgentProcess) -> View:
    """What a controller says of this node, in bytes of memory; without a row that counts, why there is none."""
    row = fallow.followed.row
    return {
        "why": fallow.followed.row_file.why,
        "to_take_back": None if row is None else row.to_take_back,
        "accounts": {} if row is None else {name: asdict(account) for name, account in sorted(row.accounts.items())},
    }


def _cluster(fallow: AgentProcess, cluster: ClusterSession, now: float) -> View:
    listed = cluster.lists.get(fallow.node.name)
    return {
        "cluster": cluster.name,
        "switch": asdict(fallow.followed.switch(cluster.name)),
        **shared_view.health(cluster, now),
        "detail": "" if listed is None else f"{len(listed.tasks)} tasks listed",
        "report_age_seconds": None if listed is None else now - listed.measured_at,
        "capabilities": None,
        "pending": None,
        "rows": [],
    }


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
