"""The active one of several ResourceManagers: found by asking, kept, and found again when it is no longer the one.

A call that the kept one does not carry out because it stands by, is away, or does not answer is made once more at the
one that says it is active, which may be the same by then. Calls are safe to repeat. Where two say so, the one that
became active later counts: it did so because the other had been given up.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from fallow_yarn.errors import DeadlineError, ProtocolError, StandbyError, UnreachableError, YarnError
from fallow_yarn.ipc.connection import Finish
from fallow_yarn.model.container_id import ContainerId
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.admin import NodeUpdate, UpdateAnswer
from fallow_yarn.rm.applications import RunningApplication
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.rm.manager import Manager, Standing
from fallow_yarn.rm.nodes import Node
from fallow_yarn.rm.readings import Facts, Reading
from fallow_yarn.rm.status import Status
from fallow_yarn.settings.rm_addresses import RmAddresses

_T = TypeVar("_T")

NOT_THE_ONE: Final = (StandbyError, UnreachableError, DeadlineError, ProtocolError)
"""Errors after which another one may be the active one."""

FIRST_SHARE: Final = 0.5  # of the time of a call, for the kept one: its host may be gone without a word
FACTS_SECONDS: Final = 4.0  # for the kept one to say who it is, which is a small page and the first of each report
ASK_SECONDS: Final = 2.0  # for each of them to say what it is
LOOK_SECONDS: Final = 15.0  # from one look whether another one says it is active to the next
GLANCE_SECONDS: Final = 1.0  # for each of them then, while all is well


@dataclass(slots=True)
class Lead:
    """Which one is taken for the active one; shared by the lanes of a cluster. Its one field is set at once."""

    index: int = 0


class ActiveManager:
    """The active one of several ResourceManagers, with their calls. Use it from one thread."""

    def __init__(self, managers: Sequence[ResourceManager], lead: Lead, clock: Callable[[], float]) -> None:
        self._managers = tuple(managers)
        self._lead = lead
        self._clock = clock
        self._look_at = clock() + LOOK_SECONDS

    @property
    def addresses(self) -> RmAddresses:
        """Where the one is that is taken for the active one."""
        return self._managers[self._lead.index].addresses

    def nodes(self, deadline: Deadline) -> tuple[Node, ...]:
        """See `ResourceManager.nodes`."""
        return self._ask(lambda manager, until: manager.nodes(until), deadline)

    def read(self, deadline: Deadline) -> Reading:
        """See `ResourceManager.read`."""
        return self._ask(lambda manager, until: manager.read(until), deadline)

    def facts(self, deadline: Deadline) -> Facts:
        """See `ResourceManager.facts`; of the active one. From time to time the others are asked whether they are it.

        :raises StandbyError: none is active, and one or more of them stand by or are starting.
        """
        if self._clock() >= self._look_at:
            self._look_at = self._clock() + LOOK_SECONDS
            self._look(deadline)
        return self._ask(active_facts, deadline, FACTS_SECONDS)

    def update(self, updates: Sequence[NodeUpdate], deadline: Deadline) -> tuple[UpdateAnswer, ...]:
        """See `ResourceManager.update`."""
        return self._ask(lambda manager, until: manager.update(updates, until), deadline)

    def begin(self, updates: Sequence[NodeUpdate], deadline: Deadline) -> Finish:
        """See `ResourceManager.begin`; of the one that is taken for the active one."""
        share = deadline.left_seconds() * FIRST_SHARE
        return self._managers[self._lead.index].begin(updates, deadline.within(share))

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

    def signal(self, container: ContainerId, deadline: Deadline, *, force: bool) -> None:
        """See `ResourceManager.signal`."""
        self._ask(lambda manager, until: manager.signal(container, until, force=force), deadline)

    def states(self, deadline: Deadline) -> tuple[Standing, ...]:
        """What each of them says of itself."""
        return tuple(_standing(manager, deadline.within(ASK_SECONDS)) for manager in self._managers)

    def close(self) -> None:
        """Close the connections to all of them."""
        for manager in self._managers:
            manager.close()

    def _ask(
        self, call: Callable[[ResourceManager, Deadline], _T], deadline: Deadline, most_seconds: float = math.inf
    ) -> _T:
        kept = self._lead.index
        share = min(deadline.left_seconds() * FIRST_SHARE, most_seconds)
        try:
            return call(self._managers[kept], deadline.within(share))
        except NOT_THE_ONE as error:
            found = self._lead.index = self._find(kept, error, deadline)
            maybe_sent = error.maybe_sent
        try:
            return call(self._managers[found], deadline)
        except YarnError as error:
            error.maybe_sent = error.maybe_sent or maybe_sent
            raise

    def _find(self, kept: int, error: YarnError, deadline: Deadline) -> int:
        """The active one. The kept one is asked last: it has just failed."""
        self._managers[kept].close()  # its name may stand for another address by now
        order = [index for index in range(len(self._managers)) if index != kept] + [kept]
        found: dict[int, Standing] = {}
        for position, index in enumerate(order):
            share = deadline.left_seconds() / (len(order) - position + 1)
            found[index] = _standing(self._managers[index], deadline.within(min(ASK_SECONDS, share)))
        active = [index for index in order if found[index].status is Status.ACTIVE]
        if active:
            return active[0] if len(active) == 1 else self._latest(active, deadline)
        said = "; ".join(str(found[index]) for index in sorted(found))
        if any(standing.error is None for standing in found.values()):
            raise StandbyError(f"no ResourceManager is active: {said}") from error
        raise UnreachableError(f"no ResourceManager answers: {said}") from error

    def _look(self, deadline: Deadline) -> None:
        """Go over to one that became active later than the kept one, which does not know yet that it is given up."""
        kept = self._lead.index
        others = [index for index in range(len(self._managers)) if index != kept]
        glances = [(index, _standing(self._managers[index], deadline.within(GLANCE_SECONDS))) for index in others]
        claiming = [index for index, standing in glances if standing.status is Status.ACTIVE]
        if claiming:
            self._lead.index = self._latest([kept, *claiming], deadline)

    def _latest(self, claiming: Sequence[int], deadline: Deadline) -> int:
        """The one that became active last of those that say that they are active; the first one if none tells when."""
        return max(claiming, key=lambda index: _active_since(self._managers[index], deadline.within(ASK_SECONDS)))


def active_facts(manager: Manager, deadline: Deadline) -> Facts:
    """See `ResourceManager.facts`; StandbyError if it is not active: the nodes that it lists are incomplete then."""
    facts = manager.facts(deadline)
    if not facts.identity.active:
        state = facts.identity.ha_state or "starting"
        raise StandbyError(f"{manager.addresses}: the ResourceManager is not active: {state}")
    return facts


def _standing(manager: ResourceManager, deadline: Deadline) -> Standing:
    try:
        return Standing(addresses=manager.addresses, status=manager.status(deadline))
    except YarnError as error:
        return Standing(addresses=manager.addresses, error=error)


def _active_since(manager: ResourceManager, deadline: Deadline) -> int:
    """When it became active, in milliseconds; 0 if it does not tell."""
    try:
        return manager.identity(deadline).started_on or 0
    except YarnError:
        return 0
