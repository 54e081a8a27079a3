"""Reads the containers of a NodeManager from its web page."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from fallow_hookspecs import TaskState
from fallow_yarn.errors import ProtocolError, YarnError
from fallow_yarn.http.loose_json import Object, integer, is_object, member, text
from fallow_yarn.http.web import SMALL_ANSWER_BYTES, Web
from fallow_yarn.model.container_id import ContainerId
from fallow_yarn.model.node_matching import canonical_id
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.security.web_access import WebAccess

CONTAINERS: Final = "/ws/v1/node/containers"
INFO: Final = "/ws/v1/node/info"
OPPORTUNISTIC: Final = "OPPORTUNISTIC"
WAITING: Final = "SCHEDULED"
DONE: Final = "DONE"
ANSWER_SECONDS: Final = 2.0  # an answer takes milliseconds on the same host, longer only during a garbage collection
STATES: Final[Mapping[str, TaskState]] = MappingProxyType(
    {
        "NEW": TaskState.STARTING,
        "LOCALIZING": TaskState.STARTING,
        "LOCALIZED": TaskState.STARTING,
        WAITING: TaskState.STARTING,
        "LOCALIZATION_FAILED": TaskState.TERMINATING,
        "EXITED_WITH_SUCCESS": TaskState.TERMINATING,
        "EXITED_WITH_FAILURE": TaskState.TERMINATING,
        "KILLING": TaskState.TERMINATING,
        "CONTAINER_CLEANEDUP_AFTER_KILL": TaskState.TERMINATING,
        "CONTAINER_RESOURCES_CLEANINGUP": TaskState.TERMINATING,
        DONE: TaskState.TERMINATING,
    }
)
"""The NodeManager's states; in any other one (running, paused, relaunching) a container counts as running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container as its NodeManager lists it. `is_done`: it has ended, and is listed for a little longer."""

    id: ContainerId
    user: str
    state: TaskState
    requested: Size
    is_done: bool = False
    opportunistic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All containers of a NodeManager by id, and the number of entries that could not be read."""

    containers: Mapping[str, Container]
    unreadable: int = 0


def web_of(http_address: str, access: WebAccess) -> Web:
    """The web server of a NodeManager; ValueError if that is no address."""
    endpoint = Endpoint.parse(
        http_address,
        setting="web address of a NodeManager",
        purpose="the NodeManager's web port",
        hadoop_key="yarn.nodemanager.webapp.address, 8042 by default",
    )
    return access.web(endpoint, secure=access.secure_nodes, most_bytes=SMALL_ANSWER_BYTES)


class Listings:
    """The newest list of each NodeManager, with the page that it is from: the same page is not decoded again."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[bytes | bytearray, Listing]] = {}

    def read(self, web: Web, node_id: str, deadline: Deadline) -> Listing:
        """The containers that the NodeManager with this id lists; ProtocolError if another one answers there.

        A container that waits in the NodeManager's own queue holds nothing yet, and is left out.
        """
        page = web.page(CONTAINERS, deadline)
        known = self._newest.get(node_id)
        if known is None or known[0] != page:
            self._newest[node_id] = known = page, _listing(web, page, node_id)
        return known[1]

    def keep(self, node_ids: Iterable[str]) -> None:
        """Forget the lists of all other NodeManagers."""
        self._newest = {node_id: self._newest[node_id] for node_id in node_ids if node_id in self._newest}


def _listing(web: Web, page: bytes | bytearray, node_id: str) -> Listing:
    containers: dict[str, Container] = {}
    unreadable = 0
    for entry in _entries(web, page):
        container = _container(entry) if is_object(entry) else None
        if container is None or not is_object(entry):
            unreadable += 1
            continue
        answering = text(entry.get("nodeId")) or node_id
        if answering != node_id and canonical_id(answering) != canonical_id(node_id):
            raise ProtocolError(f"{web.endpoint}: NodeManager {answering} answers there, expected {node_id}")
        if not (container.opportunistic and entry.get("state") == WAITING):
            containers[container.id.text] = container
    return Listing(containers=containers, unreadable=unreadable)


def _entries(web: Web, page: bytes | bytearray) -> list[object]:
    """The list; for an empty one releases write `null`, an empty object, or leave it out."""
    answer = web.decode(CONTAINERS, page, object)
    inner = answer.get("containers") if is_object(answer) else answer
    if is_object(answer) and (not answer or ("containers" in answer and not inner)):
        return []
    entries = member(inner, "container")
    if entries is None:
        raise ProtocolError(f"{web.endpoint}: GET {CONTAINERS}: no list of containers; is it a NodeManager?")
    return entries if isinstance(entries, list) else [entries]


def _container(entry: Object) -> Container | None:
    container_id = ContainerId.parse(text(entry.get("id")))
    state = text(entry.get("state"))
    memory_mb, vcores = integer(entry.get("totalMemoryNeededMB")), integer(entry.get("totalVCoresNeeded"))
    if container_id is None or not state or memory_mb is None or vcores is None:
        return None
    return Container(
        id=container_id,
        user=text(entry.get("user")),
        state=STATES.get(state, TaskState.RUNNING),
        requested=Size(memory_mb, vcores),
        is_done=state == DONE,
        opportunistic=text(entry.get("executionType")) == OPPORTUNISTIC,
    )


Answer = Listing | YarnError
"""The list of a NodeManager, or the error that prevented it."""


def ask(
    addresses: Mapping[str, str], access: WebAccess, deadline: Deadline, listings: Listings | None = None
) -> dict[str, Answer]:
    """The list of each NodeManager, by node id; `addresses` are their web addresses, empty where not known.

    They are asked one after the other, each within its share of the time, so that a silent one does not use it up.
    """
    answers: dict[str, Answer] = {}
    listings = listings or Listings()
    for position, (node_id, address) in enumerate(addresses.items()):
        share = min(deadline.left_seconds() / (len(addresses) - position), ANSWER_SECONDS)
        try:
            answers[node_id] = listings.read(web_of(address, access), node_id, deadline.within(share))
        except ValueError:
            answers[node_id] = YarnError(f"the web address of NodeManager {node_id} is not known")
        except YarnError as error:
            answers[node_id] = error
    listings.keep(addresses)
    return answers
