"""A ResourceManager that answers what a test wants, and short ways to write the values it answers with."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from plugins.yarn.tests.proc_fakes import NOW_TICKS

from fallow_hookspecs import ClusterConfig, Node, Offer, Resources, Role
from fallow_yarn.errors import YarnError
from fallow_yarn.ipc.connection import Finish
from fallow_yarn.model.container_id import ContainerId
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.plugin import YarnInstance
from fallow_yarn.rm import nodes as rm_nodes
from fallow_yarn.rm.admin import NodeUpdate, UpdateAnswer
from fallow_yarn.rm.applications import RunningApplication
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.rm.facts import CAPACITY_SCHEDULER, Calculator, Identity, Setup
from fallow_yarn.rm.nodes import CustomResource, State
from fallow_yarn.rm.readings import Facts, NodeReading, Reading
from fallow_yarn.rm.scheduler import Metrics
from fallow_yarn.security.access import Access
from fallow_yarn.settings.config import YarnSpec
from fallow_yarn.settings.rm_addresses import rm_addresses

GIB = 1 << 30
NODE_ID = "worker-1:45454"
MINIMUM, CONFIGURED, USED = Size(256, 1), Size(8192, 8), Size(2048, 2)
OFFERED = Resources(4000, 4 * GIB)
HOST = Node(name="n1", addresses=("worker-1", "192.0.2.1"))
ETL = RunningApplication(
    id="application_1_0001",
    name="etl",
    user="al",
    queue="root.batch",
    kind="SPARK",
    priority=3,
    progress=0.25,
    master=None,
)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> Callable[[], None]:
        """What takes that long."""

        def take() -> None:
            self.now += seconds

        return take


class FakeManager(ResourceManager):
    """Answers `facts_now` and `reading_now`, after `during_facts` and `during_read`.

    `failure`, if there is one, ends every call. `refusals` are the errors of single updates; `sent` has the updates of
    each call, `signalled` the containers in the order in which their signal was asked for, and whether by force.
    """

    def __init__(self) -> None:
        super().__init__(rm_addresses(spec())[0], Access.simple("yarn"))
        self.facts_now = facts()
        self.reading_now = reading(entry())
        self.failure: YarnError | None = None
        self.rights_failure: YarnError | None = None
        self.applications_now: tuple[RunningApplication, ...] = ()
        self.applications_failure: YarnError | None = None
        self.labels_now: Mapping[str, bool] = {}
        self.labels_failure: YarnError | None = None
        self.asked_for_requests: list[bool] = []
        self.signal_failures: dict[str, YarnError] = {}
        self.signalled: list[tuple[str, bool]] = []
        self.refusals: dict[str, YarnError] = {}
        self.sent: list[tuple[NodeUpdate, ...]] = []
        self.deadlines: list[Deadline] = []
        self.during_facts: Callable[[], None] = lambda: None
        self.during_read: Callable[[], None] = lambda: None
        self.closed = 0

    def nodes(self, deadline: Deadline) -> tuple[rm_nodes.Node, ...]:
        self._called(deadline)
        return tuple(entry.node for entry in self.reading_now.nodes.values())

    def read(self, deadline: Deadline) -> Reading:
        self.during_read()
        self._called(deadline)
        return self.reading_now

    def facts(self, deadline: Deadline) -> Facts:
        self.during_facts()
        self._called(deadline)
        return self.facts_now

    def update(self, updates: Sequence[NodeUpdate], deadline: Deadline) -> tuple[UpdateAnswer, ...]:
        self._called(deadline)
        if updates:
            self.sent.append(tuple(updates))
        return tuple(UpdateAnswer(node_id=u.node_id, error=self.refusals.get(u.node_id)) for u in updates)

    def begin(self, updates: Sequence[NodeUpdate], deadline: Deadline) -> Finish:
        self._called(deadline)
        refused = next((self.refusals[u.node_id] for u in updates if u.node_id in self.refusals), None)
        if refused is None:
            self.sent.append(tuple(updates))

        def finish() -> bytes:
            if refused is not None:
                raise refused
            return b""

        return finish

    def check_rights(self, deadline: Deadline) -> None:
        self._called(deadline)
        if self.rights_failure is not None:
            raise self.rights_failure

    def applications(self, deadline: Deadline, *, requests: bool = False) -> tuple[RunningApplication, ...]:
        self._called(deadline)
        self.asked_for_requests.append(requests)
        if self.applications_failure is not None:
            raise self.applications_failure
        return self.applications_now

    def labels(self, deadline: Deadline) -> Mapping[str, bool]:
        self._called(deadline)
        if self.labels_failure is not None:
            raise self.labels_failure
        return self.labels_now

    def signal(self, container: ContainerId, deadline: Deadline, *, force: bool) -> None:
        self._called(deadline)
        self.signalled.append((container.text, force))
        if container.text in self.signal_failures:
            raise self.signal_failures[container.text]

    def close(self) -> None:
        self.closed += 1

    def _called(self, deadline: Deadline) -> None:
        self.deadlines.append(deadline)
        if self.failure is not None:
            raise self.failure


def spec(**settings: object) -> YarnSpec:
    """A spec with the host `rm`, and the given settings as in the file."""
    return YarnSpec.model_validate({"resourceManager": {"host": "rm"}} | settings)


def instance(manager: FakeManager, clock: Clock | None = None, **settings: object) -> YarnInstance:
    """An instance whose lanes both talk to this manager."""
    cluster = ClusterConfig(name="etl", roles=frozenset(Role), spec=spec(**settings))
    return YarnInstance(cluster, clock or Clock(), lambda _places, _shared: manager)


def instance_on(
    proc_root: Path,
    manager: FakeManager,
    *roles: Role,
    clock: Callable[[], float],
    ticks: Callable[[], int] = lambda: NOW_TICKS,
) -> YarnInstance:
    """An instance that sees these processes, in these roles or in both."""
    cluster = ClusterConfig(name="etl", roles=frozenset(roles or Role), spec=spec())
    return YarnInstance(cluster, clock, lambda _places, _shared: manager, proc_root, ticks)


def facts(
    version: str = "3.5.0",
    *,
    minimum: Size | None = MINIMUM,
    scheduler: str = CAPACITY_SCHEDULER,
    calculator: Calculator | None = Calculator.DOMINANT,
    asynchronous: bool = False,
) -> Facts:
    """An active ResourceManager."""
    identity = Identity(version=version, active=True, ha_state="ACTIVE", started_on=1)
    setup = Setup(scheduler=scheduler, minimum=minimum, maximum=None, calculator=calculator, asynchronous=asynchronous)
    return Facts(identity=identity, setup=setup)


def inactive() -> Facts:
    """A ResourceManager that has just started."""
    return Facts(identity=Identity(version="3.5.0", active=False, ha_state="INITIALIZING", started_on=None), setup=None)


def entry(
    node_id: str = NODE_ID,
    state: State = State.RUNNING,
    *,
    capability: Size = CONFIGURED,
    in_force: Size | None = CONFIGURED,
    used: Size | None = USED,
    custom: tuple[CustomResource, ...] = (),
    http_address: str = "",
    label: str = "",
) -> NodeReading:
    """A node as a reading has it."""
    node = rm_nodes.Node(
        node_id=node_id,
        host=node_id.rpartition(":")[0],
        http_address=http_address,
        state=state,
        capability=capability,
        custom=custom,
        used=used or Size(0, 0),
        containers=0,
        label=label,
    )
    return NodeReading(node=node, in_force=in_force, used=used)


def reading(*entries: NodeReading, pending: Size | None = None, pending_containers: int | None = None) -> Reading:
    """A reading of these nodes."""
    nodes: Mapping[str, NodeReading] = {entry.node.node_id: entry for entry in entries}
    return Reading(nodes=nodes, metrics=Metrics(total=None, pending=pending, pending_containers=pending_containers))


def offer(node_id: str = NODE_ID, total: Resources = OFFERED, **take_back: int) -> Offer:
    """An offer for a node of `HOST`."""
    return Offer(node="n1", framework_node=node_id, total=total, take_back=take_back)  # type: ignore[arg-type]
