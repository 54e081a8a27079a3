"""A small world for tests of the controller: a clock that is moved by hand, and frameworks that live in memory.

A framework takes a size at once and works with it a little later, as real ones do. Its calls end in the thread that
starts them, through the real plugin host, unless a test holds them.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fallow_core.controller.controller import Controller
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.plugin import LoadedPlugin, PluginSource
from fallow_core.model.policy import AccountPolicy, NodePolicy, PublishingMode, PublishingPolicy, ResourcePolicy
from fallow_core.model.sample import NodeSample, Usage
from fallow_core.planner.memory import Memory
from fallow_core.planner.observations import NodeObservation
from fallow_core.plugins import instance as instance_module
from fallow_core.plugins.instance import PluginInstance
from fallow_core.plugins.lanes import Lane
from fallow_core.plugins.session import ClusterSession
from fallow_core.state import publish_journal
from fallow_hookspecs import (
    Capabilities,
    CapacityReport,
    ClusterConfig,
    Daemon,
    Finding,
    Node,
    NodeState,
    Offer,
    OfferAnswer,
    Plugin,
    Process,
    Refusal,
    ReportRow,
    ResourceCapability,
    Resources,
    Role,
    TaskList,
    hookimpl,
)

GIB = 2**30
NODE = Node(name="n1", addresses=("10.0.0.1",))
UNIT = Resources(100, 2**20)
FLOOR = Resources(200, GIB // 4)
NOTHING = Resources(0, 0)
FIRST_PROCESS = Process(4711, 1)
CAPACITY = Resources(10_000, 10 * GIB)
ENFORCE = PublishingPolicy(mode=PublishingMode.ENFORCE)
WHOLE_NODE = NodePolicy(cpu=ResourcePolicy(watermark_percent=100), memory=ResourcePolicy(watermark_percent=100))
HONOURED = ResourceCapability(honoured=True)


def size(cores: float, gib: float | None = None) -> Resources:
    """So many cores, and as many GiB where nothing else is said."""
    return Resources(round(cores * 1000), round((cores if gib is None else gib) * GIB))


@dataclass
class FakeNode:
    """One of a framework's nodes: the size that its scheduler works with, and sizes on their way to it (when, size)."""

    in_force: Resources
    allocated: Resources = NOTHING
    state: NodeState = NodeState.RUNNING
    process: Process = FIRST_PROCESS
    process_is_seen: bool = True
    listed: bool = True
    coming: list[tuple[float, Resources]] = field(default_factory=list)

    @property
    def most(self) -> Resources:
        """The most that the scheduler may promise now or later."""
        sizes = [self.allocated, self.in_force, *(coming for _, coming in self.coming)]
        return Resources(max(s.cpu_milli for s in sizes), max(s.memory_bytes for s in sizes))


class Framework:
    """An instance of a plugin, and the framework behind it.

    `fails` is raised by every call with offers, `reports_fail` by every report; with `carries_out` the framework does
    what a failing call asked for all the same. `refuses` says which nodes it refuses. `seen` is called in each call
    with offers, before anything else. `spoils` changes what is reported, and `listing` is the list of tasks.
    """

    def __init__(self, clock: Callable[[], float], **nodes: Resources) -> None:
        self.clock = clock
        self.nodes = {name: FakeNode(in_force=configured) for name, configured in nodes.items()}
        self.delay_seconds = 1.0
        self.fails: BaseException | None = None
        self.reports_fail: BaseException | None = None
        self.carries_out = False
        self.refuses: dict[str, Refusal] = {}
        self.lasts_seconds: int | None = None
        self.scheduler_start = "first"
        self.calls: list[tuple[Offer, ...]] = []
        self.reports = 0
        self.closed = threading.Event()
        self.seen: Callable[[tuple[Offer, ...]], object] = lambda offers: None
        self.spoils: Callable[[CapacityReport], CapacityReport] = lambda report: report
        self.listing = TaskList(tasks=(), age_seconds=0.0, complete=True)

    @hookimpl
    def report_capacity(self, nodes: tuple[Node, ...], offers: tuple[Offer, ...]) -> CapacityReport:
        self._move()
        answers = self._take(offers) if offers else ()
        if not offers:
            self.reports += 1
            if self.reports_fail is not None:
                raise self.reports_fail
        report = CapacityReport(
            capabilities=Capabilities(cpu=HONOURED, memory=HONOURED, offer_lasts_seconds=self.lasts_seconds),
            rows=tuple(self._row(name, node) for name, node in self.nodes.items() if node.listed),
            answers=answers,
            detail="a framework in memory",
            scheduler_start=self.scheduler_start,
        )
        return self.spoils(report)

    @hookimpl
    def list_tasks(self, node: Node) -> TaskList:
        seen = ((name, each) for name, each in self.nodes.items() if each.process_is_seen)
        daemons = tuple(Daemon(process=each.process, framework_node=name) for name, each in seen)
        return replace(self.listing, daemons=daemons)

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        return (Finding(subject="framework", ok=True, detail="lives in memory"),)

    def close(self) -> None:
        self.closed.set()

    def restart(self, name: str, configured: Resources) -> None:
        """A node's daemon is started anew, and comes back with the size that it was configured with."""
        node = self.nodes[name]
        node.process = Process(node.process.pid + 1, node.process.start_ticks + 1)
        node.in_force, node.coming = configured, []

    def sizes(self) -> dict[str, Resources]:
        """What the scheduler works with."""
        self._move()
        return {name: node.in_force for name, node in self.nodes.items()}

    def _take(self, offers: tuple[Offer, ...]) -> tuple[OfferAnswer, ...]:
        self.calls.append(offers)
        self.seen(offers)
        taken = [offer for offer in offers if offer.framework_node not in self.refuses]
        if self.fails is None or self.carries_out:
            for offer in taken:
                self.nodes[offer.framework_node].coming.append((self.clock() + self.delay_seconds, offer.total))
        if self.fails is not None:
            raise self.fails
        return tuple(self._answer(offer) for offer in offers)

    def _answer(self, offer: Offer) -> OfferAnswer:
        refusal = self.refuses.get(offer.framework_node)
        return OfferAnswer(
            node=offer.node,
            framework_node=offer.framework_node,
            accepted=offer.total if refusal is None else None,
            refusal=refusal,
            reason="" if refusal is None else f"this node is refused: {refusal}",
        )

    def _move(self) -> None:
        for node in self.nodes.values():
            while node.coming and node.coming[0][0] <= self.clock():
                node.in_force = node.coming.pop(0)[1]

    def _row(self, name: str, node: FakeNode) -> ReportRow:
        return ReportRow(
            node=NODE.name,
            framework_node=name,
            age_seconds=0.0,
            state=node.state,
            allocated=node.allocated,
            in_force=node.in_force,
            unit=UNIT,
            floor=FLOOR,
        )


class InlineLane(Lane):
    """A lane whose calls end before `submit` returns, or stay until they are released."""

    def __init__(
        self, name: str, clock: Callable[[], float], wake: Callable[[], None] | None, held: dict[str, list[Any] | None]
    ) -> None:
        super().__init__(name, clock, wake)
        self._thread = cast("threading.Thread", SimpleNamespace(is_alive=lambda: True, name=name, join=lambda _: None))
        self._due: list[Any] = []
        self._jobs = cast("Any", SimpleNamespace(put=self._put, get=self._due.pop))
        self._held = held

    def _put(self, job: Any) -> None:
        if job is None:
            return
        waiting = self._held.get(self._thread.name)
        if waiting is None:
            self._run_one(job)
        else:
            waiting.append(lambda: self._run_one(job))

    def _run_one(self, job: Any) -> None:
        """As its thread would, which then ends; a call may start another one."""
        self._due += [None, job]
        self._run()


def plugin_of(build: Callable[[ClusterConfig], Any], name: str = "alpha") -> LoadedPlugin:
    """A plugin that builds what it is told to."""
    source = PluginSource(name=name, distribution=f"fallow-{name}", version="1.2", target=f"fake_{name}:PLUGIN")
    plugin = Plugin(name=name, api_levels=(0, 0), config_model=lambda: cast("Any", dict), build=build)
    return LoadedPlugin(plugin=plugin, source=source)


def cluster_config(name: str) -> ClusterConfig:
    return ClusterConfig(name=name, roles=frozenset(Role), spec={})


class World:
    """Frameworks, this host, and Fallow's controller, which can be killed and started anew at any moment."""

    def __init__(
        self,
        state_dir: Path,
        monkeypatch: pytest.MonkeyPatch,
        *,
        policy: PublishingPolicy = ENFORCE,
        accounts: Mapping[str, AccountPolicy] | None = None,
        **frameworks: Mapping[str, Resources],
    ) -> None:
        self.now = 1000.0
        self.wall_offset = 1_700_000_000.0
        self.state_dir = state_dir
        self.policy = policy
        self.used = Resources(0, 0)
        self.measured_at: float | None = None
        self.observed = NodeObservation()
        self.held: dict[str, list[Any] | None] = {}
        self.accounts: defaultdict[str, AccountPolicy] = defaultdict(AccountPolicy, accounts or {})
        self.frameworks = {name: Framework(lambda: self.now, **nodes) for name, nodes in frameworks.items()}
        monkeypatch.setattr(instance_module, "Lane", self._lane)
        self.controller = self.start()

    def _lane(self, name: str, clock: Callable[[], float], wake: Callable[[], None] | None = None) -> InlineLane:
        return InlineLane(name, clock, wake, self.held)

    def start(self, *names: str) -> Controller:
        """A new process, with what the one before left on the disk; only these clusters are built, or all."""
        self.controller = Controller(
            (NODE,),
            [f"alpha/{name}" for name in self.frameworks],
            NodePolicies(default=WHOLE_NODE),
            self.policy,
            publish_journal.load(self.state_dir),
            clock=lambda: self.now,
            wall_clock=lambda: self.now + self.wall_offset,
        )
        for name in names or self.frameworks:
            self.build(name)
        return self.controller

    def build(self, name: str) -> None:
        """The instance of a cluster is ready."""
        plugin = plugin_of(lambda _: self.frameworks[name])
        instance = PluginInstance(plugin, cluster_config(name), clock=lambda: self.now)
        self.controller.add(ClusterSession(instance, self.accounts[name], self.policy))

    def hold(self, lane: str) -> None:
        """Calls of a lane, such as "alpha/a acts", do not end any more."""
        self.held[lane] = []

    def release(self, lane: str) -> None:
        """The calls that were held end now, and later ones at once."""
        for job in self.held.pop(lane) or ():
            job()

    def sample(self) -> NodeSample:
        """What the host uses; measured now, or at `measured_at`."""
        at = self.now if self.measured_at is None else self.measured_at
        return NodeSample(
            cpu=Usage(measured_at=at, capacity=CAPACITY.cpu_milli, used=self.used.cpu_milli, batch_used=0),
            memory=Usage(measured_at=at, capacity=CAPACITY.memory_bytes, used=self.used.memory_bytes, batch_used=0),
        )

    def tick(self, seconds: float = 0.0) -> None:
        """Let time pass, and do one round."""
        self.now += seconds
        self.observe(self.sample())

    def observe(self, sample: NodeSample) -> None:
        """One round with this sample, and the node's labels as the controller has them."""
        (node,) = self.controller.nodes
        self.controller.tick({node.name: replace(self.observed, sample=sample, labels=node.labels)})

    def run(self, seconds: float, step: float = 1.0) -> None:
        """Let time pass with a round each step."""
        for _ in range(round(seconds / step)):
            self.tick(step)

    def left(self) -> bool:
        """Whether the sizes to leave behind were taken."""
        return self.controller.left

    def cluster(self, name: str) -> ClusterSession:
        return self.controller.clusters[f"alpha/{name}"]

    def row(self, name: str, node: str) -> Row:
        return self.cluster(name).rows[key(name, node)]

    def sizes(self) -> dict[str, Resources]:
        """What the schedulers of all frameworks work with, by node."""
        return {node: found for framework in self.frameworks.values() for node, found in framework.sizes().items()}

    def offers(self, name: str) -> list[dict[str, Resources]]:
        """The calls with offers that a framework got."""
        return [{o.framework_node: o.total for o in offers} for offers in self.frameworks[name].calls]

    def journal_on_disk(self) -> Memory:
        return publish_journal.load(self.state_dir).memory

    def restrict(self, **changes: Any) -> None:
        """Another publishing policy from the next start on."""
        self.policy = replace(self.policy, **changes)


def key(cluster: str, node: str) -> RowKey:
    return RowKey(NODE.name, f"alpha/{cluster}", node)
