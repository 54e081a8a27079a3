"""The active one of several ResourceManagers: found by asking, kept, and found again after a failover.

If the kept ResourceManager is a standby, unreachable, or silent, the call is made once more to the one that reports
that it is active, which may be the same one. Calls are safe to repeat. If two report that they are active, the one that
became active later is used: the other one has been given up and does not know it yet.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from fallow_yarn.errors import DeadlineError, ProtocolError, StandbyError, UnreachableError, YarnError
from fallow_yarn.ipc.connection import Finish
from fallow_yarn.model.container_id import ContainerId
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.admin import NodeUpdate, UpdateAnswer
from fallow_yarn.rm.applications import RunningApplication
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.rm.manager import Manager, RmState
from fallow_yarn.rm.nodes import Node
from fallow_yarn.rm.readings import Facts, Reading
from fallow_yarn.rm.status import Status
from fallow_yarn.settings.rm_addresses import RmAddresses

_T = TypeVar("_T")

NOT_THE_ONE: Final = (StandbyError, UnreachableError, DeadlineError, ProtocolError)
"""Errors after which another ResourceManager may be the active one."""

FIRST_SHARE: Final = 0.5  # of the time of a call, for the kept one: its host may have vanished
FACTS_SECONDS: Final = 4.0  # for the kept one's small page of identity, the first request of each report
ASK_SECONDS: Final = 2.0  # for the state of each of them
CHECK_PAUSE_SECONDS: Final = 15.0  # between two checks whether another one reports that it is active
CHECK_SECONDS: Final = 1.0  # for the state of each of them in such a check


@dataclass(slots=True)
class ActiveIndex:
    """The index of the ResourceManager that is used as the active one; the lanes of a cluster share it."""

    index: int = 0


class ActiveManager:
    """The calls of a `Manager`, made to the active one of several ResourceManagers. Use it from one thread."""

    def __init__(self, managers: Sequence[ResourceManager], active: ActiveIndex, clock: Callable[[], float]) -> None:
        self._managers = tuple(managers)
        self._active = active
        self._clock = clock
        self._check_at = clock() + CHECK_PAUSE_SECONDS

    @property
    def addresses(self) -> RmAddresses:
        """The addresses of the ResourceManager that is used as the active one."""
        return self._managers[self._active.index].addresses

    def nodes(self, deadline: Deadline) -> tuple[Node, ...]:
        """See `ResourceManager.nodes`."""
        return self._ask(lambda manager, until: manager.nodes(until), deadline)

    def read(self, deadline: Deadline) -> Reading:
        """See `ResourceManager.read`."""
        return self._ask(lambda manager, until: manager.read(until), deadline)

    def facts(self, deadline: Deadline) -> Facts:
        """See `ResourceManager.facts`; of the active one. At times the others are asked whether they are active.

        :raises StandbyError: none is active, and at least one is a standby or is starting.
        """
        if self._clock() >= self._check_at:
            self._check_at = self._clock() + CHECK_PAUSE_SECONDS
            self._check_others(deadline)
        return self._ask(active_facts, deadline, FACTS_SECONDS)

    def update(self, updates: Sequence[NodeUpdate], deadline: Deadline) -> tuple[UpdateAnswer, ...]:
        """See `ResourceManager.update`."""
        return self._ask(lambda manager, until: manager.update(updates, until), deadline)

    def begin(self, updates: Sequence[NodeUpdate], deadline: Deadline) -> Finish:
        """See `ResourceManager.begin`; of the one that is used as the active one."""
        share = deadline.left_seconds() * FIRST_SHARE
        return self._managers[self._active.index].begin(updates, deadline.within(share))

    def check_rights(self, deadline: Deadline) -> None:
        """See `ResourceManager.check_rights`."""
        self._ask(lambda manager, until: manager.check_rights(until), deadline)

    def refresh_nodes(self, grace_seconds: int, deadline: Deadline) -> None:
        """See `ResourceManager.refresh_nodes`."""
        self._ask(lambda manager, until: manager.refresh_nodes(grace_seconds, until), deadline)

    def setting(self, key: str, deadline: Deadline) -> str | None:
        """See `ResourceManager.setting`."""
        return self._ask(lambda manager, until: manager.setting(key, until), deadline)

    def applications(self, deadline: Deadline, *, requests: bool = False) -> tuple[RunningApplication, ...]:
        """See `ResourceManager.applications`."""
        return self._ask(lambda manager, until: manager.applications(until, requests=requests), deadline)

    def labels(self, deadline: Deadline) -> Mapping[str, bool]:
        """See `ResourceManager.labels`."""
        return self._ask(lambda manager, until: manager.labels(until), deadline)

    def signal(self, container: ContainerId, deadline: Deadline, *, force: bool) -> None:
        """See `ResourceManager.signal`."""
        self._ask(lambda manager, until: manager.signal(container, until, force=force), deadline)

    def states(self, deadline: Deadline) -> tuple[RmState, ...]:
        """The state that each of them reports."""
        return tuple(_rm_state(manager, deadline.within(ASK_SECONDS)) for manager in self._managers)

    def close(self) -> None:
        """Close the connections to all of them."""
        for manager in self._managers:
            manager.close()

    def _ask(
        self, call: Callable[[ResourceManager, Deadline], _T], deadline: Deadline, most_seconds: float = math.inf
    ) -> _T:
        kept = self._active.index
        share = min(deadline.left_seconds() * FIRST_SHARE, most_seconds)
        try:
            return call(self._managers[kept], deadline.within(share))
        except NOT_THE_ONE as error:
            found = self._active.index = self._find(kept, error, deadline)
            maybe_sent = error.maybe_sent
        try:
            return call(self._managers[found], deadline)
        except YarnError as error:
            error.maybe_sent = error.maybe_sent or maybe_sent
            raise

    def _find(self, kept: int, error: YarnError, deadline: Deadline) -> int:
        """Find the active one. The kept one is asked last: it has just failed."""
        self._managers[kept].close()  # its name may resolve to another address by now
        order = [index for index in range(len(self._managers)) if index != kept] + [kept]
        found: dict[int, RmState] = {}
        for position, index in enumerate(order):
            share = deadline.left_seconds() / (len(order) - position + 1)
            found[index] = _rm_state(self._managers[index], deadline.within(min(ASK_SECONDS, share)))
        active = [index for index in order if found[index].status is Status.ACTIVE]
        if active:
            return active[0] if len(active) == 1 else self._latest(active, deadline)
        said = "; ".join(str(found[index]) for index in sorted(found))
        if any(rm_state.error is None for rm_state in found.values()):
            raise StandbyError(f"no ResourceManager is active: {said}") from error
        raise UnreachableError(f"no ResourceManager answers: {said}") from error

    def _check_others(self, deadline: Deadline) -> None:
        """Switch to one that became active later than the kept one, which may not know yet that it was given up."""
        kept = self._active.index
        others = [index for index in range(len(self._managers)) if index != kept]
        states = [(index, _rm_state(self._managers[index], deadline.within(CHECK_SECONDS))) for index in others]
        claiming = [index for index, rm_state in states if rm_state.status is Status.ACTIVE]
        if claiming:
            self._active.index = self._latest([kept, *claiming], deadline)

    def _latest(self, claiming: Sequence[int], deadline: Deadline) -> int:
        """The one of these that became active last; the first one if none reports the time."""
        return max(claiming, key=lambda index: _active_since(self._managers[index], deadline.within(ASK_SECONDS)))


def active_facts(manager: Manager, deadline: Deadline) -> Facts:
    """See `ResourceManager.facts`; StandbyError if it is not active: its list of nodes is empty then."""
    facts = manager.facts(deadline)
    if not facts.identity.active:
        state = facts.identity.ha_state or "starting"
        raise StandbyError(f"{manager.addresses}: the ResourceManager is not active: {state}")
    return facts


def _rm_state(manager: ResourceManager, deadline: Deadline) -> RmState:
    try:
        return RmState(addresses=manager.addresses, status=manager.status(deadline))
    except YarnError as error:
        return RmState(addresses=manager.addresses, error=error)


def _active_since(manager: ResourceManager, deadline: Deadline) -> int:
    """When it became active, in milliseconds; 0 if it does not report that."""
    try:
        return manager.identity(deadline).started_on or 0
    except YarnError:
        return 0
