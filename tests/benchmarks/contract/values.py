"""A plugin whose answers are ready, so that what a call takes is the cost of the call; its name is `bench`."""

from itertools import cycle
from typing import Any

from fallow_hookspecs import (
    Capabilities,
    CapacityReport,
    ClusterConfig,
    Finding,
    KillAnswer,
    KillOrder,
    KillOutcome,
    KillResult,
    Node,
    NodeState,
    Plugin,
    Process,
    ReportRow,
    ResourceCapability,
    Resources,
    Task,
    TaskList,
    TaskState,
    hookimpl,
)

GIB = 2**30
TASKS = 100
NODES = 5000
SECONDS = 8
NODE = Node(name="worker-1", addresses=("worker-1.example.com", "10.0.0.1"))


def nodes() -> tuple[Node, ...]:
    """The nodes of a large cluster, with a few labels."""
    return tuple(
        Node(
            name=f"worker-{index}",
            addresses=(f"worker-{index}.example.com", f"10.0.{index // 256}.{index % 256}"),
            labels={"pool": "batch", "topology.kubernetes.io/zone": "a"},
        )
        for index in range(NODES)
    )


def report(second: int = 0) -> CapacityReport:
    """A report of them in a second, as the YARN plugin makes it: sizes and allocations differ, unit and floor do not;
    from one second to the next the ages change, and the allocations of every tenth node.
    """
    honoured = ResourceCapability(honoured=True)
    rows = (
        ReportRow(
            node=f"worker-{index}",
            framework_node=f"worker-{index}.example.com:45454",
            age_seconds=0.125 + second / 1024,
            state=NodeState.RUNNING,
            allocated=Resources(1000 * ((index + second * (index % 10 == 0)) % 16), GIB // 4 * (index % 61)),
            in_force=Resources(1000 * (8 + index % 24), GIB * (16 + index % 100)),
            unit=Resources(1000, 2**20),
            floor=Resources(1000, GIB),
            started_age_seconds=86_400.0 + index + second,
        )
        for index in range(NODES)
    )
    return CapacityReport(capabilities=Capabilities(cpu=honoured, memory=honoured), rows=tuple(rows))


def task_list(second: int = 0) -> TaskList:
    """The tasks of one node in a second, as the YARN plugin lists them: each with the leader of its processes; from
    one second to the next the ages change, and one task ends and another begins.
    """
    tasks = (
        Task(
            id=f"container_e17_1410901177871_0001_01_{index:06d}",
            application_id="application_1410901177871_0001",
            framework_node="worker-1.example.com:45454",
            state=TaskState.RUNNING,
            requested=Resources(1000, 2 * GIB),
            age_seconds=100.5 + second - index,
            processes=(Process(4000 + index, 123_456 + index),),
        )
        for index in range(second, second + TASKS)
    )
    return TaskList(tasks=tuple(tasks), age_seconds=0.001, complete=True)


def kill_order() -> KillOrder:
    """An order to end all of them."""
    return KillOrder(task_ids=tuple(task.id for task in task_list().tasks), reason="memory is short")


class _Spec:
    @classmethod
    def model_validate(cls, obj: Any) -> Any:
        return obj

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {}


class Instance:
    """Answers at once, and each time what the next second would bring."""

    def __init__(self, cluster: ClusterConfig) -> None:
        self._reports = cycle([report(second) for second in range(SECONDS)])
        self._lists = cycle([task_list(second) for second in range(SECONDS)])
        termination = KillAnswer(result=KillResult.TERMINATING)
        self._outcome = KillOutcome(answers={task.id: termination for task in task_list().tasks})

    @hookimpl
    def report_capacity(self, nodes: tuple[Node, ...]) -> CapacityReport:
        return next(self._reports)

    @hookimpl
    def list_tasks(self) -> TaskList:
        return next(self._lists)

    @hookimpl
    def kill_tasks(self) -> KillOutcome:
        return self._outcome

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        return ()

    def close(self) -> None:
        pass


PLUGIN = Plugin(name="bench", api_levels=(0, 0), config_model=lambda: _Spec, build=Instance)
