"""The calls that this plugin makes to a ResourceManager, as a protocol: for the only one, and for one of several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from fallow_yarn.errors import YarnError
from fallow_yarn.ipc.connection import Finish
from fallow_yarn.model.container_id import ContainerId
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.admin import NodeUpdate, UpdateAnswer
from fallow_yarn.rm.applications import RunningApplication
from fallow_yarn.rm.nodes import Node
from fallow_yarn.rm.readings import Facts, Reading
from fallow_yarn.rm.status import Status
from fallow_yarn.settings.rm_addresses import RmAddresses


@dataclass(frozen=True, slots=True, kw_only=True)
class RmState:
    """The state that a ResourceManager reports, or the error that prevented it."""

    addresses: RmAddresses
    status: Status = Status.UNKNOWN
    error: YarnError | None = None

    def __str__(self) -> str:
        return f"{self.addresses}: {self.status.lower() if self.error is None else self.error}"


class Manager(Protocol):
    """The calls to the only ResourceManager or to the active one of several; see `ResourceManager`."""

    @property
    def addresses(self) -> RmAddresses:
        """Its addresses; with several, of the one that is used as the active one."""

    def nodes(self, deadline: Deadline) -> tuple[Node, ...]:
        """All nodes, as the ResourceManager lists them."""

    def read(self, deadline: Deadline) -> Reading:
        """All nodes with the sizes in force."""

    def facts(self, deadline: Deadline) -> Facts:
        """The identity and the scheduler's settings."""

    def update(self, updates: Sequence[NodeUpdate], deadline: Deadline) -> tuple[UpdateAnswer, ...]:
        """Send new sizes."""

    def begin(self, updates: Sequence[NodeUpdate], deadline: Deadline) -> Finish:
        """Send new sizes without waiting for the answer; on failure use `update`."""

    def check_rights(self, deadline: Deadline) -> None:
        """Check that the user may change sizes; AccessDeniedError if not."""

    def refresh_nodes(self, grace_seconds: int, deadline: Deadline) -> None:
        """Have it read its exclude and include files again."""

    def setting(self, key: str, deadline: Deadline) -> str | None:
        """One of its own settings."""

    def applications(self, deadline: Deadline, *, requests: bool = False) -> tuple[RunningApplication, ...]:
        """The running applications."""

    def labels(self, deadline: Deadline) -> Mapping[str, bool]:
        """The node labels, and whether each is exclusive."""

    def signal(self, container: ContainerId, deadline: Deadline, *, force: bool) -> None:
        """Have a container signalled."""

    def states(self, deadline: Deadline) -> tuple[RmState, ...]:
        """The state that each of several ResourceManagers reports; empty if it is the only one."""

    def close(self) -> None:
        """Close the connections."""
