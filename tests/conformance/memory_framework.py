"""A framework in memory that can be brought into every state of the suite, and one correct plugin for it."""

import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from fallow_hookspecs import (
    API_LEVEL,
    Application,
    Capabilities,
    CapacityReport,
    ClusterConfig,
    Finding,
    Instance,
    KillAnswer,
    KillOrder,
    KillOutcome,
    KillResult,
    Node,
    NodeState,
    Offer,
    OfferAnswer,
    Pending,
    Placement,
    Plugin,
    Refusal,
    ReportRow,
    ResourceCapability,
    Resources,
    Task,
    TaskList,
    TaskPlacement,
    TaskState,
    hookimpl,
)
from fallow_hookspecs.testing import Framework

UNIT, FLOOR = Resources(100, 1 << 20), Resources(100, 64 << 20)
FULL, REQUEST = Resources(4000, 4 << 30), Resources(500, 512 << 20)
NODES = {"n1": ("n1:1", "n1:2"), "n2": ("n2:1",)}


@dataclass(slots=True)
class Work:
    """A task of the framework."""

    id: str
    node: str
    stubborn: bool = False
    protected: bool = False
    termination_at: float | None = None


@dataclass(slots=True)
class State:
    """All that the framework has, and what is wrong with it."""

    sizes: dict[str, Resources]
    tasks: dict[str, Work] = field(default_factory=dict)
    waiting: int = 0
    told: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    hanging: threading.Event | None = None
    slow: float = 0.0
    delayed: bool = False
    silent: dict[str, float] = field(default_factory=dict)


class Server:
    """The framework's own process, if it had one."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.state = State(sizes=dict.fromkeys((name for names in NODES.values() for name in names), FULL))
        self.ids = count(1)

    def ask(self, timeout_seconds: float) -> None:
        """A request reaches it, or does not."""
        state = self.state
        if state.cut:
            raise ConnectionRefusedError("the framework cannot be reached")
        time.sleep(state.slow)
        if state.hanging is not None and not state.hanging.wait(timeout_seconds):
            raise TimeoutError("the framework does not answer")

    def allocated(self, node: str) -> Resources:
        held = [task for task in self.tasks().values() if task.node == node]
        return Resources(len(held) * REQUEST.cpu_milli, len(held) * REQUEST.memory_bytes)

    def tasks(self) -> dict[str, Work]:
        """Those that hold resources."""
        with self.lock:
            return dict(self.state.tasks)

    def resize(self, node: str, size: Resources, take_back_to: int | None = None) -> None:
        """Set the size; before, the newest tasks end until no more memory is allocated than `take_back_to`."""
        with self.lock:
            if self.state.delayed:
                return
            held = [task.id for task in self.state.tasks.values() if task.node == node]
            while take_back_to is not None and len(held) * REQUEST.memory_bytes > take_back_to:
                del self.state.tasks[held.pop()]
            self.state.sizes[node] = size

    def end(self, task_id: str, reason: str, force: bool) -> KillAnswer:
        with self.lock:
            task = self.tasks().get(task_id)
            if task is None:
                return KillAnswer(result=KillResult.ALREADY_GONE)
            if task.protected:
                return KillAnswer(result=KillResult.SPARED, reason="it holds a lock of the framework")
            task.termination_at = task.termination_at or time.monotonic()
            self.state.told[task_id] = reason
            if force or not task.stubborn:
                del self.state.tasks[task_id]
            return KillAnswer(result=KillResult.TERMINATING)


class Model:
    """The model of `spec`: one key."""

    known = frozenset({"server"})

    @classmethod
    def model_validate(cls, obj: Any) -> Any:
        if unknown := obj.keys() - cls.known:
            raise ValueError(f"unknown keys: {unknown}")
        return obj["server"]

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {"type": "object", "properties": {"server": {}}, "additionalProperties": False}


class MemoryInstance:
    """The correct plugin. Each hook is one small method, so that a wrong one differs in one place."""

    def __init__(self, cluster: ClusterConfig) -> None:
        self.server: Server = cluster.spec

    @hookimpl
    def report_capacity(
        self, nodes: tuple[Node, ...], offers: tuple[Offer, ...], timeout_seconds: float
    ) -> CapacityReport:
        started = time.monotonic()
        self.server.ask(timeout_seconds)
        answers = self.answers(offers)
        rows = self.rows(nodes, time.monotonic() - started)
        return self.report(rows, answers)

    @hookimpl
    def list_tasks(self, node: Node, timeout_seconds: float) -> TaskList:
        started = time.monotonic()
        try:
            self.server.ask(timeout_seconds)
        except OSError as error:
            return self.unlisted(str(error), time.monotonic() - started)
        tasks = tuple(self.task(work) for work in self.works(node))
        return TaskList(tasks=tasks, age_seconds=time.monotonic() - started, complete=True)

    @hookimpl
    def kill_tasks(self, node: Node, order: KillOrder, timeout_seconds: float) -> KillOutcome:
        self.server.ask(timeout_seconds)
        return KillOutcome(answers={task_id: self.end(task_id, order) for task_id in order.task_ids})

    @hookimpl
    def set_cgroup_parent(self, node: Node, parent: str) -> Placement:
        tasks = tuple(self.place(work) for work in self.works(node))
        return Placement(new_tasks_follow=False, tasks=tasks, reason="the framework makes its own groups")

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        return ()

    def close(self) -> None: ...

    def report(self, rows: tuple[ReportRow, ...], answers: tuple[OfferAnswer, ...]) -> CapacityReport:
        waits = self.server.state.waiting
        tasks = self.server.tasks()
        return CapacityReport(
            capabilities=self.capabilities(),
            rows=rows,
            answers=answers,
            pending=Pending(
                total=Resources(waits * REQUEST.cpu_milli, waits * REQUEST.memory_bytes),
                smallest=REQUEST if waits else None,
                largest=REQUEST if waits else None,
            ),
            applications=tuple(self.application(task_id) for task_id in tasks),
        )

    def capabilities(self) -> Capabilities:
        return Capabilities(
            cpu=ResourceCapability(honoured=True),
            memory=ResourceCapability(honoured=True, takes_back=True, take_back_charged=False),
            ends_single_tasks=True,
            ends_gracefully=True,
        )

    def application(self, task_id: str) -> Application:
        return Application(id=f"app-{task_id}", name="a", user="u", queue="q", kind="memory", progress=0.5)

    def rows(self, nodes: tuple[Node, ...], age_seconds: float) -> tuple[ReportRow, ...]:
        silent = self.server.state.silent
        return tuple(
            self.row(node.name, name, age_seconds)
            for node in nodes
            for name in NODES.get(node.name, ())
            if name not in silent
        )

    def row(self, node: str, name: str, age_seconds: float) -> ReportRow:
        return ReportRow(
            node=node,
            framework_node=name,
            age_seconds=age_seconds,
            state=NodeState.RUNNING,
            allocated=self.server.allocated(name),
            in_force=self.server.state.sizes[name],
            unit=UNIT,
            floor=FLOOR,
            maximum=FULL,
        )

    def answers(self, offers: tuple[Offer, ...]) -> tuple[OfferAnswer, ...]:
        return tuple(self.answer(offer) for offer in offers)

    def answer(self, offer: Offer) -> OfferAnswer:
        if refusal := self.refusal(offer):
            return self.refused(offer, *refusal)
        size = self.rounded(offer.total)
        self.server.resize(offer.framework_node, size, offer.take_back.get("memory"))
        return OfferAnswer(
            node=offer.node,
            framework_node=offer.framework_node,
            accepted=size,
            reason="" if size == offer.total else "rounded down to whole units",
        )

    def refusal(self, offer: Offer) -> tuple[Refusal, str] | None:
        if offer.framework_node not in self.server.state.sizes:
            return Refusal.UNKNOWN_NODE, "there is no such node"
        if min(offer.total.cpu_milli, offer.total.memory_bytes) < 0:
            return Refusal.BAD_VALUE, "a size is not negative"
        if "cpu" in offer.take_back:
            return Refusal.BAD_VALUE, "CPU is not taken back"
        return None

    def refused(self, offer: Offer, refusal: Refusal, reason: str) -> OfferAnswer:
        return OfferAnswer(
            node=offer.node, framework_node=offer.framework_node, accepted=None, refusal=refusal, reason=reason
        )

    def rounded(self, size: Resources) -> Resources:
        cpu, memory = UNIT.cpu_milli, UNIT.memory_bytes
        return Resources(size.cpu_milli // cpu * cpu, size.memory_bytes // memory * memory)

    def unlisted(self, why: str, age_seconds: float) -> TaskList:
        return TaskList(tasks=(), age_seconds=age_seconds, complete=False, incomplete_reason=why)

    def works(self, node: Node) -> list[Work]:
        return [work for work in self.server.tasks().values() if work.node in NODES.get(node.name, ())]

    def task(self, work: Work) -> Task:
        termination = None if work.termination_at is None else time.monotonic() - work.termination_at
        return Task(
            id=work.id,
            application_id=f"app-{work.id}",
            framework_node=work.node,
            state=TaskState.RUNNING if termination is None else TaskState.TERMINATING,
            requested=REQUEST,
            terminating_age_seconds=termination,
            cgroups=(f"memory/{work.id}",),
        )

    def end(self, task_id: str, order: KillOrder) -> KillAnswer:
        return self.server.end(task_id, order.reason, order.force)

    def place(self, work: Work) -> TaskPlacement:
        return TaskPlacement(task_id=work.id, cgroups=(f"memory/{work.id}",))


def plugin_of(
    build: Any = MemoryInstance,
    model: type = Model,
    levels: tuple[int, int] = (API_LEVEL, API_LEVEL),
    name: str = "memory",
) -> Plugin:
    """A plugin of which one part is another one."""

    def built(cluster: ClusterConfig) -> Instance:
        instance: Instance = build(cluster)
        return instance

    return Plugin(name=name, api_levels=levels, config_model=lambda: model, build=built)


class MemoryFramework(Framework):
    """The framework as the suite needs it; `plugin` may be a wrong one."""

    nodes = tuple(Node(name=name, addresses=(name,)) for name in NODES)
    request = REQUEST
    is_on_this_host = False
    timeout_seconds = 1.0
    patience_seconds = 1.3
    settle_seconds = 0.02

    def __init__(self, plugin: Plugin | None = None) -> None:
        self.plugin = plugin or plugin_of()
        self.server = Server()
        self.spec: Mapping[str, Any] = {"server": self.server}

    def reset(self) -> None:
        self.server.state = State(sizes=dict.fromkeys(self.server.state.sizes, FULL))

    def start_tasks(self, count: int, *, stubborn: bool = False) -> tuple[str, ...]:
        made = tuple(f"task-{next(self.server.ids)}" for _ in range(count))
        self.server.state.tasks.update({name: Work(name, "n1:1", stubborn) for name in made})
        return made

    def finish(self, task_ids: Collection[str]) -> None:
        for task_id in task_ids:
            del self.server.state.tasks[task_id]

    def tasks(self) -> frozenset[str]:
        return frozenset(self.server.tasks())

    def sizes(self) -> Mapping[str, Resources]:
        return dict(self.server.state.sizes)

    def allocated(self) -> Mapping[str, Resources]:
        return {name: self.server.allocated(name) for name in self.server.state.sizes}

    def queue_tasks(self, count: int) -> Resources:
        self.server.state.waiting = count
        return Resources(count * REQUEST.cpu_milli, count * REQUEST.memory_bytes)

    def cut_off(self) -> None:
        self.server.state.cut = True

    def hang(self) -> None:
        self.server.state.hanging = threading.Event()

    def slow(self, seconds: float) -> None:
        self.server.state.slow = seconds

    slow_node = slow

    def delay_changes(self) -> None:
        self.server.state.delayed = True

    def lose_news(self, framework_node: str) -> None:
        self.server.state.silent[framework_node] = time.monotonic()

    def protect(self, task_id: str) -> None:
        self.server.state.tasks[task_id].protected = True

    def told(self, task_id: str) -> str:
        return self.server.state.told.get(task_id, "")

    def mend(self) -> None:
        state = self.server.state
        if state.hanging is not None:
            state.hanging.set()
        state.cut, state.hanging, state.slow, state.delayed = False, None, 0.0, False
        state.silent.clear()
