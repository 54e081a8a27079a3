"""Changes node sizes by IPC (updateNodeResource): many nodes in one call.

The ResourceManager carries out all of a call or nothing: one unknown node fails the whole call, and the error names
only that one. So unknown nodes, including all others that its list lacks, are removed and the rest is sent again.
"""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from fallow_yarn.errors import UnknownNodeError, YarnError
from fallow_yarn.ipc.protos import yarn_pb2
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.nodes import Call, CustomResource

_T = TypeVar("_T")

ADMIN_PROTOCOL: Final = "org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocolPB"
METHOD: Final = "updateNodeResource"
MAX_INT32: Final = 2147483647
FAR_TIMEOUT_MS: Final = MAX_INT32
"""24.8 days. The ResourceManager never forgets a deadline of a node, and -1 does not move it, but this does."""

KnownIds = Callable[[Deadline], Collection[str]]
"""Returns the ids of the nodes that the ResourceManager lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUpdate:
    """A new size for one node. ValueError for a value that must not be sent.

    `over_commit_timeout_ms`: when the scheduler terminates containers that exceed the new size, 0: at once; the default
    is never reached. `custom`: the node's further resources, which become 0 if they are left out.
    """

    node_id: str
    size: Size
    custom: tuple[CustomResource, ...] = ()
    over_commit_timeout_ms: int = FAR_TIMEOUT_MS

    def __post_init__(self) -> None:
        host, _, port = self.node_id.rpartition(":")
        if not (host and port.isascii() and port.isdigit() and int(port) <= MAX_INT32):
            raise ValueError(f"node id {self.node_id!r}: expected host:port as the ResourceManager lists it")
        if not (0 <= self.size.memory_mb < 1 << 63 and 0 <= self.size.vcores <= MAX_INT32):
            raise ValueError(f"node {self.node_id}: {self.size} cannot be a node's size; expected 0 or more")
        if not 0 <= self.over_commit_timeout_ms <= MAX_INT32:
            raise ValueError(
                f"node {self.node_id}: over-commit timeout {self.over_commit_timeout_ms} ms; expected 0 to {MAX_INT32}:"
                " a negative one keeps an earlier deadline"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAnswer:
    """The result of one update. `error` is None if the ResourceManager accepted it.

    An `UnknownNodeError` is its refusal; any other error ended the call before this update was answered, and its
    `maybe_sent` says whether the size may still come into force.
    """

    node_id: str
    error: YarnError | None

    @property
    def accepted(self) -> bool:
        """Whether the ResourceManager accepted the update. It comes into force later."""
        return self.error is None


def update_node_resources(
    call: Call, updates: Sequence[NodeUpdate], known_ids: KnownIds, deadline: Deadline
) -> tuple[UpdateAnswer, ...]:
    """Send all updates in the order given, and return the result of each.

    Raises the YarnError of the first call if no update was accepted or refused before it.
    """
    if len({update.node_id for update in updates}) != len(updates):
        raise ValueError("two updates for one node in a call: the ResourceManager would take the last one")
    errors: dict[str, YarnError | None] = {}
    batches = deque([list(updates)] if updates else [])
    while batches:
        batch = batches.popleft()
        try:
            send(call, batch, deadline)
        except UnknownNodeError as error:
            unknown = _unknown_ids(error, batch, known_ids, deadline)
            if not unknown and len(batch) > 1:
                half = len(batch) // 2
                batches.extendleft((batch[half:], batch[:half]))
                continue
            unknown = unknown or {batch[0].node_id}
            errors |= {node_id: _refusal(error, node_id) for node_id in unknown}
            if rest := [update for update in batch if update.node_id not in unknown]:
                batches.appendleft(rest)
        except YarnError as error:
            if not errors:
                raise
            unsent = YarnError(f"not sent, because a call before it failed: {error}")
            errors |= {update.node_id: error for update in batch}
            errors |= {update.node_id: unsent for later in batches for update in later}
            break
        else:
            errors |= {update.node_id: None for update in batch}
    return tuple(UpdateAnswer(node_id=update.node_id, error=errors[update.node_id]) for update in updates)


def send(call: Callable[[str, bytes, Deadline], _T], updates: Sequence[NodeUpdate], deadline: Deadline) -> _T:
    """One updateNodeResource. Without updates it changes nothing, and checks whether the user has the right."""
    return call(METHOD, request_of(updates), deadline)


def request_of(updates: Sequence[NodeUpdate]) -> bytes:
    """The message of such a call."""
    request = yarn_pb2.UpdateNodeResourceRequest()
    for update in updates:
        host, _, port = update.node_id.rpartition(":")
        entry = request.nodes.add()
        node_id, option = entry.node_id, entry.option  # each access to a field of a message makes a new object
        resource = option.resource
        node_id.host = host.encode()
        node_id.port = int(port)
        option.over_commit_timeout = update.over_commit_timeout_ms
        resource.memory_mb = update.size.memory_mb
        resource.virtual_cores = update.size.vcores
        for custom in update.custom:
            resource.values.add().MergeFromString(custom.message)
    return request.SerializeToString()


def _unknown_ids(
    error: UnknownNodeError, waiting: Sequence[NodeUpdate], known_ids: KnownIds, deadline: Deadline
) -> set[str]:
    """The ids that the error names or that the ResourceManager's own list lacks."""
    ids = {update.node_id for update in waiting}
    named = ids & {error.node}
    try:
        return named | (ids - set(known_ids(deadline)))
    except YarnError:
        return named


def _refusal(error: UnknownNodeError, node_id: str) -> UnknownNodeError:
    message = f"the ResourceManager does not know node {node_id!r}; `yarn node -list -all` shows the ids that it knows"
    return UnknownNodeError(message, node=node_id, kind=error.kind, detail=error.detail)
