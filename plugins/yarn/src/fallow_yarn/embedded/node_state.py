"""The state of one node at an active ResourceManager, and its messages with the NodeManager. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fallow_yarn.embedded.application import Container
from fallow_yarn.model.size import Size


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A container at its NodeManager. `exit_code` is None while it runs."""

    container: str
    exit_code: int | None = None
    diagnostics: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """The registration of a NodeManager. `web` is the address of its pages, `health_ms` the time of its disk check."""

    node_id: str
    web: str
    size: Size
    health_ms: int
    custom: Mapping[str, int] = field(default_factory=dict)
    containers: Sequence[Status] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What a NodeManager is to do: start and end containers, signal some (the last by SIGKILL if true), forget ended
    ones, and know its new size.
    """

    start: Sequence[Container]
    end: Sequence[str]
    signals: Sequence[tuple[str, bool]]
    forget: Sequence[str]
    size: Size | None


class NodeState:
    """A node. `capability` is the ResourceManager's size for it, `total` the one its scheduler works with.

    `containers` are those that count as allocated, `ending` those of them (and strangers) that the NodeManager is told
    to end with every heartbeat until it says that they have. `deadline` is the over-commit deadline once stored, which
    never goes away. `users` are the applications that have had containers here. `decommissioning_since`: when it began
    to be decommissioned, with which grace (negative: for ever), and with which size before.
    """

    def __init__(self, registration: Registration, now: float) -> None:
        self.id = registration.node_id
        self.web = registration.web
        self.health_ms = registration.health_ms
        self.state = "RUNNING"
        self.capability = self.total = registration.size
        self.custom = dict(registration.custom)
        self.deadline: float | None = None
        self.decommissioning_since: float | None = None
        self.grace_seconds: int | None = None
        self.size_before = registration.size
        self.users: set[str] = set()
        self.heard_at = now
        self.absent_until = now
        self.containers: dict[str, Container] = {}
        self.ending: set[str] = set()
        self.signals: list[tuple[str, bool]] = []
        self._to_start: list[Container] = []
        self._untold: Size | None = None

    @property
    def host(self) -> str:
        """Its host, as the ResourceManager names it."""
        return self.id.rpartition(":")[0]

    @property
    def is_running(self) -> bool:
        """Whether its NodeManager counts as alive."""
        return self.state in ("RUNNING", "DECOMMISSIONING")

    @property
    def used(self) -> Size:
        """What is allocated."""
        sizes = [container.size for container in self.containers.values()]
        return Size(sum(size.memory_mb for size in sizes), sum(size.vcores for size in sizes))

    @property
    def available(self) -> Size:
        """What may still be allocated; negative if the node has shrunk below its allocation."""
        used = self.used
        return Size(self.total.memory_mb - used.memory_mb, self.total.vcores - used.vcores)

    @property
    def is_told(self) -> bool:
        """Whether its NodeManager has received its size, from a release that sends it."""
        return self._untold is None

    def is_in_table(self, now: float) -> bool:
        """Whether the scheduler has it in its table."""
        return self.is_running and now >= self.absent_until

    def takes_work(self, now: float) -> bool:
        """Whether the scheduler may allocate here."""
        return self.is_in_table(now) and self.decommissioning_since is None

    def resize(self, size: Size, custom: Mapping[str, int]) -> None:
        """The ResourceManager's own record; a further resource that is not named becomes 0."""
        self.capability = self._untold = size
        self.custom = {name: custom.get(name, 0) for name in self.custom}

    def give(self, container: Container) -> None:
        """A container is allocated here; the NodeManager is told with its next heartbeat."""
        self.containers[container.id] = container
        self.users.add(container.application.id)
        self._to_start.append(container)

    def drop(self, container: Container) -> None:
        """Remove a container."""
        self.containers.pop(container.id, None)
        self.ending.discard(container.id)

    def victims(self) -> Iterator[Container]:
        """All containers in the order in which they are taken back."""
        newest = list(reversed(self.containers.values()))
        yield from (container for container in newest if not container.is_master)
        yield from (container for container in newest if container.is_master)

    def come_back(self, registration: Registration, now: float) -> None:
        """Its NodeManager has restarted with running containers."""
        self.web, self.health_ms, self.heard_at = registration.web, registration.health_ms, now
        self.custom = dict(registration.custom)
        self._to_start.clear()

    def forget(self) -> None:
        """Remove the node with all its containers."""
        self.containers, self.ending, self.signals, self._to_start = {}, set(), [], []
        self.web = ""

    def orders(self, confirmed: Sequence[str], *, tells_size: bool) -> Orders:
        """The answer to a heartbeat."""
        self.ending.difference_update(confirmed)
        start = [container for container in self._to_start if container.id not in self.ending]
        for container in self._to_start:
            if container.id in self.ending:  # it ended before its NodeManager knew of it
                self.drop(container)
        size = self._untold if tells_size else None
        answer = Orders(start=start, end=sorted(self.ending), signals=self.signals, forget=confirmed, size=size)
        self.signals, self._to_start, self._untold = [], [], None
        return answer
