"""A ResourceManager in memory that reads a list of excluded hosts."""

from collections.abc import Sequence

from fallow_yarn.errors import YarnError
from fallow_yarn.lifecycle.list_file import ListFile
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.admin import NodeUpdate, UpdateAnswer
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.rm.nodes import Node, State
from fallow_yarn.security.access import Access


class FakeManager(ResourceManager):
    """Has nodes by host, all at one port, and reads the files as the real one; its next calls raise `errors`."""

    def __init__(self, file: ListFile, **states: State) -> None:
        super().__init__(
            ResourceManager.at(client="rm:1", admin="rm:2", web="rm:3", user="x").addresses, Access.simple("x")
        )
        self.file = file
        self.hosts = dict(states)
        self.resolved: dict[str, str] = {}
        self.graces: dict[str, int] = {}
        self.used: dict[str, Size] = {}
        self.updates: list[tuple[str, Size]] = []
        self.errors: list[YarnError | None] = []
        self.refreshed: list[int] = []
        self.reads_file = True
        self.port = 1

    def nodes(self, deadline: Deadline) -> tuple[Node, ...]:
        self._fail()
        return tuple(
            Node(
                node_id=f"{host}:{self.port}",
                host=host,
                http_address="",
                state=state,
                capability=Size(1, 1),
                custom=(),
                used=self.used.get(host, Size(0, 0)),
                containers=0,
                grace_seconds=self.graces.get(host),
            )
            for host, state in self.hosts.items()
        )

    def refresh_nodes(self, grace_seconds: int, deadline: Deadline) -> None:
        self._fail()
        self.refreshed.append(grace_seconds)
        for host, state in self.hosts.items():
            if not self.reads_file or state not in (State.RUNNING, State.DECOMMISSIONING):
                continue
            known = self.file.hosts()
            is_listed = host in known or self.resolved.get(host) in known
            self.hosts[host] = State.DECOMMISSIONING if is_listed else State.RUNNING
            own = known.get(host)
            self.graces[host] = grace_seconds if own is None else own

    def update(self, updates: Sequence[NodeUpdate], deadline: Deadline) -> tuple[UpdateAnswer, ...]:
        self._fail()
        self.updates += [(update.node_id, update.size) for update in updates]
        return tuple(UpdateAnswer(node_id=update.node_id, error=None) for update in updates)

    def check_rights(self, deadline: Deadline) -> None:
        self._fail()

    def setting(self, key: str, deadline: Deadline) -> str | None:
        return "/etc/hadoop/exclude"

    def _fail(self) -> None:
        if self.errors and (error := self.errors.pop(0)):
            raise error
