"""The calls that this plugin makes to a ResourceManager, as a protocol: for the only one, and for one of several."""

from collections.abc import Sequence
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
class Standing:
    """What a ResourceManager says of itself, or why it does not (`error`)."""

    addresses: RmAddresses
    status: Status = Status.UNKNOWN
    error: YarnError | None = None

    def __str__(self) -> str:
        return f"{self.addresses}: {self.status.lower() if self.error is None else self.error}"


class Manager(Protocol):
    """What this plugin asks of a ResourceManager, be it the only one or one of several; see `ResourceManager`."""

    @property
    def addresses(self) -> RmAddresses:
        """Where it is; of several, the one that is taken for the active one."""

    def nodes(self, deadline: Deadline) -> tuple[Node, ...]:
        """All nodes as it lists them."""

    def read(self, deadline: Deadline) -> Reading:
        """All nodes with the sizes in force."""

    def facts(self, deadline: Deadline) -> Facts:
        """Who answers."""

    def update(self, updates: Sequence[NodeUpdate], deadline: Deadline) -> tuple[UpdateAnswer, ...]:
        """Send new sizes."""

    def begin(self, updates: Sequence[NodeUpdate], deadline: Deadline) -> Finish:
        """Send new sizes without waiting for what becomes of them; `update` is for those that this fails for."""

    def check_rights(self, deadline: Deadline) -> None:
        """Show that the user may change sizes."""

    def refresh_nodes(self, grace_seconds: int, deadline: Deadline) -> None:
        """Have it read its lists of nodes again."""

    def setting(self, key: str, deadline: Deadline) -> str | None:
        """One of its own settings."""

    def applications(self, deadline: Deadline, *, requests: bool = False) -> tuple[RunningApplication, ...]:
        """The running applications."""

    def signal(self, container: ContainerId, deadline: Deadline, *, force: bool) -> None:
        """Have a container signalled."""

    def states(self, deadline: Deadline) -> tuple[Standing, ...]:
        """What each of several says of itself; nothing if it is the only one."""

    def close(self) -> None:
        """Close the connections."""
