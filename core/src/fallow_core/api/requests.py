"""The requests that a Fallow process answers over its control socket, and who may make them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from fallow_core.agent.eviction.evictor import Evictor
from fallow_core.api import task_view
from fallow_core.api.process_view import ProcessView
from fallow_core.errors import ControlError
from fallow_core.model.policy import SwitchState
from fallow_core.planner.switches import meant

if TYPE_CHECKING:
    from fallow_core.api.control_socket import Peer

View = dict[str, Any]
T = TypeVar("T")


class _Inbox(Protocol):
    def ask(self, function: Callable[[], T]) -> T: ...


class _Scopes(Protocol):
    @property
    def scopes(self) -> list[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What answers come from. `inbox` calls a function in the thread that owns the others."""

    inbox: _Inbox
    agent: Evictor
    process_view: Callable[[], ProcessView]
    throttle_view: Callable[[], View]
    clock: Callable[[], float]


class Requests(ABC):
    """Answers requests. `reads` and `changes` are the known ones by name; only the owner and root may make changes.

    `states` are those that a scope may be switched to.
    """

    states: tuple[SwitchState, ...]

    def __init__(self, ledgers: _Scopes, sources: Sources) -> None:
        self.sources = sources
        self._scopes = ledgers
        self.reads: dict[str, Callable[[View], View]] = {
            "status": lambda _: self.status(),
            "explain": self.explain,
            "tasks": lambda _: task_view.tasks(sources.agent, sources.clock()),
        }
        self.changes: dict[str, Callable[[Peer, View], View]] = {"switch": self._switch, "restore": self._restore}

    def answer(self, peer: "Peer", request: View) -> View:
        """The answer to one request. Called in a thread of the control server.

        :raises ControlError: the request is unknown or wrong, or the peer may not make it.
        """
        kind = request.get("request")
        if isinstance(kind, str) and kind in self.reads:
            return self.sources.inbox.ask(lambda: self.reads[kind](request))
        if not isinstance(kind, str) or kind not in self.changes:
            known = ", ".join([*self.reads, *self.changes])
            raise ControlError(f"unknown request {kind!r}; expected one of {known}")
        if not peer.may_change:
            raise ControlError(f"user {peer.name} may not change anything: ask as root or as the user that runs Fallow")
        return self.sources.inbox.ask(lambda: self.changes[kind](peer, request))

    @abstractmethod
    def status(self) -> View:
        """The answer to `status`. Called in the loop's thread."""

    @abstractmethod
    def explain(self, request: View) -> View:
        """The answer to `explain`: every input and every step of the decisions about a node."""

    @abstractmethod
    def _set_switch(self, scope: str, state: SwitchState, peer: "Peer", why: str) -> None: ...

    @abstractmethod
    def _restore(self, peer: "Peer", request: View) -> View: ...

    def _node_decisions(self) -> View:
        """What this host's agent decided, for `explain`."""
        decisions = task_view.decisions(self.sources.agent, self.sources.clock())
        return {"decisions": decisions, "throttle": self.sources.throttle_view()}

    def _switch(self, peer: "Peer", request: View) -> View:
        state = request.get("state")
        if state not in self.states:
            raise ControlError(f"cannot switch to {state!r}; expected {', '.join(self.states)}")
        scope = only(request.get("scope"), self._scopes.scopes, "scope")
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
