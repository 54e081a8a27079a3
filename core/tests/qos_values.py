"""Short ways to say what is on a node, for the tests of the QoS decisions."""

from collections.abc import Mapping
from typing import Any

from fallow_core.ledger.node_ledger import NodeInputs, node_ledger
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.policy import NodePolicy, ResourcePolicy
from fallow_core.model.sample import NodeSample, Usage
from fallow_core.model.task import ObservedTask, TaskKey, TaskUsage
from fallow_core.qos.need import Need, NodeView
from fallow_hookspecs import Application, Gang, NodeState, Resources, Task, TaskRole, TaskState

NODE = "n1"
ETL = "yarn/etl"
NOW = 1000.0
GIB = 1 << 30
CPU_CAPACITY = 16_000
MEMORY_CAPACITY = 100 * GIB
WHOLE_NODE = NodePolicy(cpu=ResourcePolicy(watermark_percent=100), memory=ResourcePolicy(watermark_percent=100))


def seen(
    name: str,
    *,
    cluster: str = ETL,
    app: str = "app",
    cpu: int = 1000,
    memory: int = GIB,
    use: Resources | None = None,
    measured_at: float = NOW,
    age: float | None = 100.0,
    master: bool = False,
    terminating: bool = False,
    gang: Gang | None = None,
    application: Application | None = None,
    **more: Any,
) -> ObservedTask:
    """A task; `use` is what it was measured to use then, not known by default."""
    task = Task(
        id=name,
        application_id=app,
        framework_node="nm",
        state=TaskState.TERMINATING if terminating else TaskState.RUNNING,
        requested=Resources(cpu, memory),
        role=TaskRole.MASTER if master else TaskRole.WORKER,
        age_seconds=age,
        gang=gang,
        **more,
    )
    usage = (
        None
        if use is None
        else TaskUsage(measured_at=measured_at, cpu_milli=use.cpu_milli, memory_bytes=use.memory_bytes)
    )
    return ObservedTask(cluster=cluster, node=NODE, task=task, measured_at=NOW, application=application, usage=usage)


def key(name: str, cluster: str = ETL) -> TaskKey:
    return TaskKey(cluster, name)


def node_view(
    *tasks: ObservedTask,
    now: float = NOW,
    sample_age: float = 0.0,
    cpu_allowed: int = CPU_CAPACITY,
    cpu_batch_used: int = 0,
    memory_used: int = 0,
    memory_batch: int = MEMORY_CAPACITY,
    rows: Mapping[str, tuple[int, int]] | None = None,
    terminating: frozenset[TaskKey] = frozenset(),
    complete: bool = True,
    measured: bool = True,
    termination_budget_bytes: Mapping[str, int] | None = None,
    restored: frozenset[str] = frozenset(),
) -> NodeView:
    """A node. `cpu_allowed` and `memory_batch`: its batch capacity; all memory in use is then outside batch.

    `rows`: memory allocated and floor of each cluster. `measured`: false if nothing was ever measured.
    """
    at = now - sample_age
    used = max(memory_used, MEMORY_CAPACITY - memory_batch)
    sample = NodeSample(
        cpu=Usage(
            measured_at=at,
            capacity=CPU_CAPACITY,
            used=CPU_CAPACITY - cpu_allowed + cpu_batch_used,
            batch_used=cpu_batch_used,
        ),
        memory=Usage(
            measured_at=at,
            capacity=MEMORY_CAPACITY,
            used=used,
            batch_used=used - (MEMORY_CAPACITY - memory_batch),
        ),
    )
    sample = sample if measured else NodeSample()
    ledger_rows = tuple(
        Row(
            key=RowKey(NODE, cluster, "nm"),
            state=NodeState.RUNNING,
            unit=Resources(1000, 1 << 20),
            floor=Resources(0, floor),
            allocated=Resources(0, allocated),
            measured_at=now,
            in_force=Resources(0, allocated),
        )
        for cluster, (allocated, floor) in (rows or {}).items()
    )
    inputs = NodeInputs(node=NODE, now=now, sample=sample, rows=ledger_rows, accounts={}, policy=WHOLE_NODE)
    return NodeView(
        node=NODE,
        now=now,
        sample=sample,
        ledger=node_ledger(inputs),
        tasks=tasks,
        tasks_complete=complete,
        terminating=terminating,
        termination_budget_bytes=termination_budget_bytes or {},
        restored=restored,
    )


def pressure(amount: int, *, masters: bool = True, enforce: bool = True, critical: bool = False) -> Need:
    """A need for memory, by measured use."""
    return Need(
        strategy="memory_evict",
        resource="memory",
        amount=amount,
        counted_by="usage",
        enforce=enforce,
        why="full",
        masters=masters,
        critical=critical,
    )
