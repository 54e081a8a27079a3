"""The requests that a Fallow process answers over its control socket, and who may make them.

An agent that nobody asks has imported no types of answers, and so no msgspec.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from fallow_core.errors import ControlError
from fallow_core.log import event
from fallow_core.model.policy import SwitchState
from fallow_core.planner.switches import meant

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from msgspec import Struct

    from fallow_core.agent.eviction.evictor import Evictor
    from fallow_core.agent.throttling.host_throttling import HostThrottling
    from fallow_core.api.control_socket import Peer
    from fallow_core.api.decisions import Decision
    from fallow_core.api.explain import Explanation
    from fallow_core.api.status import ProcessStatus, Status
    from fallow_core.api.tasks import Tasks
    from fallow_core.api.throttling import ThrottlingStatus
    from fallow_core.state.lost_files import LostFile
    from fallow_core.state.publish_journal import Journal

log = logging.getLogger("fallow.run")

View = dict[str, Any]
T = TypeVar("T")


class _Inbox(Protocol):
    def ask(self, function: Callable[[], T]) -> T: ...


class _Ledgers(Protocol):
    @property
    def scopes(self) -> list[str]: ...

    @property
    def journal(self) -> Journal: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What answers come from. `inbox` calls a function in the thread that owns the others."""

    inbox: _Inbox
    agent: Evictor
    throttling: HostThrottling
    process_status: Callable[[], ProcessStatus]
    clock: Callable[[], float]


class Requests(ABC):
    """Answers requests. `reads` and `changes` are the known ones by name; only the owner and root may make changes.

    `states` are those that a scope may be switched to.
    """

    states: tuple[SwitchState, ...]

    def __init__(self, ledgers: _Ledgers, sources: Sources) -> None:
        self.sources = sources
        self._ledgers = ledgers
        self.reads: dict[str, Callable[[View], Struct]] = {
            "status": lambda _: self.status(),
            "explain": self.explain,
            "tasks": lambda _: self.tasks(),
        }
        self.changes: dict[str, Callable[[Peer, View], View]] = {
            "switch": self._switch,
            "restore": self._restore,
            "accept-lost-state": self._accept_lost_state,
        }

    def answer(self, peer: Peer, request: View) -> View:
        """The answer to one request. Called in a thread of the control server.

        :raises ControlError: the request is unknown or wrong, or the peer may not make it.
        """
        kind = request.get("request")
        if isinstance(kind, str) and kind in self.reads:
            from fallow_core.api.encoding import to_json

            return to_json(self.sources.inbox.ask(lambda: self.reads[kind](request)))
        if not isinstance(kind, str) or kind not in self.changes:
            known = ", ".join([*self.reads, *self.changes])
            raise ControlError(f"unknown request {kind!r}; expected one of {known}")
        if not peer.may_change:
            raise ControlError(f"user {peer.name} may not change anything: ask as root or as the user that runs Fallow")
        return self.sources.inbox.ask(lambda: self.changes[kind](peer, request))

    @abstractmethod
    def status(self) -> Status:
        """The answer to `status`. Called in the loop's thread, as all below."""

    @abstractmethod
    def explain(self, request: View) -> Explanation:
        """The answer to `explain`: every input and every step of the decisions about a node."""

    def tasks(self) -> Tasks:
        """The answer to `tasks`."""
        from fallow_core.api.tasks import tasks

        return tasks(self.sources.agent, self.sources.clock())

    def throttling(self) -> ThrottlingStatus:
        """How batch is throttled on this host."""
        from fallow_core.api.throttling import throttling_status

        return throttling_status(self.sources.throttling, self.sources.clock())

    def lost_state(self) -> tuple[LostFile, ...]:
        """The files of the state directory that cannot be read, and about which a person has to decide."""
        return (*self._ledgers.journal.lost, *self.sources.throttling.lost)

    def decisions(self) -> tuple[Decision, ...]:
        """The terminations that this host's agent decided."""
        from fallow_core.api.decisions import decisions

        return decisions(self.sources.agent, self.sources.clock())

    @abstractmethod
    def _set_switch(self, scope: str, state: SwitchState, peer: Peer, why: str) -> None: ...

    @abstractmethod
    def _restore(self, peer: Peer, request: View) -> View: ...

    @abstractmethod
    def _give_up(self, lost: Collection[LostFile], who: str, why: str) -> dict[Path, Path]:
        """Give up state files; their new names."""

    def _accept_lost_state(self, peer: Peer, request: View) -> View:
        """Go on without the files that cannot be read."""
        why, lost = request.get("why"), self.lost_state()
        if not isinstance(why, str) or not why.strip():
            raise ControlError("say why the state is given up: it is written down with your name")
        if not lost:
            raise ControlError("every file of the state directory can be read: there is nothing to accept")
        names = self._give_up(lost, peer.name, why)
        self.sources.throttling.given_up()
        for path, kept in names.items():
            event(log, logging.WARNING, "lost_state_accepted", file=path, kept_as=kept, who=peer.name, why=why)
        return {"files": [{"file": str(path), "kept_as": str(kept)} for path, kept in names.items()]}

    def _switch(self, peer: Peer, request: View) -> View:
        state = request.get("state")
        if state not in self.states:
            raise ControlError(f"cannot switch to {state!r}; expected {', '.join(self.states)}")
        scope = only(request.get("scope"), self._ledgers.scopes, "scope")
        self._set_switch(scope, SwitchState(state), peer, str(request.get("why", "")))
        return {"scope": scope, "state": state}


def only(asked: object, known: Sequence[str], what: str) -> str:
    """The one that is asked for.

    :raises ControlError: there is none, or there are several.
    """
    matches = meant(asked, known)
    if len(matches) != 1:
        found = f"{asked!r} is {' and '.join(matches)}" if matches else f"there is no {what} {asked!r}"
        raise ControlError(f"{found}; known: {', '.join(known) or 'none'}")
    return matches[0]
