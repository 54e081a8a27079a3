"""What the tasks of a cluster tell of what it can use."""

from dataclasses import replace

import pytest

from fallow_core.ledger.entries import NodeInputs
from fallow_core.ledger.node_ledger import node_ledger
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.ledger.task_shapes import TaskShape, mib_per_core
from fallow_core.model.policy import NodePolicy, ResourcePolicy
from fallow_core.model.sample import NodeSample, Usage
from fallow_core.planner.observations import TaskSums
from fallow_core.planner.sums import ClusterSums
from fallow_hookspecs import NodeState, Resources

MIB, GIB = 1 << 20, 1 << 30
UNIT = Resources(1000, MIB)


def a_node(shape: TaskShape, *, in_force: Resources, allocated: Resources) -> NodeInputs:
    """A node with ten cores and 40 GiB to lend, and one account that does not say what is pending."""
    whole = ResourcePolicy(watermark_percent=100)
    row = Row(
        key=RowKey("n", "yarn/a", "n:1"),
        state=NodeState.RUNNING,
        unit=UNIT,
        floor=UNIT,
        allocated=allocated,
        measured_at=0.0,
        in_force=in_force,
    )
    return NodeInputs(
        node="n",
        now=0.0,
        sample=NodeSample(
            cpu=Usage(measured_at=0.0, capacity=10_000, used=0, batch_used=0),
            memory=Usage(measured_at=0.0, capacity=40 * GIB, used=0, batch_used=0),
        ),
        rows=(row,),
        accounts={},
        shapes={"yarn/a": shape},
        policy=NodePolicy(cpu=whole, memory=whole),
    )


@pytest.mark.parametrize(
    ("shape", "gib"),
    [
        (TaskShape(mib_per_core=2048), 40),
        (TaskShape(mib_per_core=None, honours_cpu=False), 40),
        (TaskShape(mib_per_core=2048, honours_cpu=False), 20),
    ],
    ids=["cpu is honoured", "no task is known", "cpu is ignored"],
)
def test_a_framework_that_ignores_cpu_is_offered_the_memory_of_the_tasks_that_cpu_is_for(
    shape: TaskShape, gib: int
) -> None:
    found = node_ledger(a_node(shape, in_force=Resources(4000, 8 * GIB), allocated=Resources(4000, 8 * GIB)))
    assert found.memory.rows[0].size == gib * GIB
    assert found.cpu.rows[0].size == 10_000
    assert found.cpu.accounts[0].honoured == shape.honours_cpu
    assert found.memory.accounts[0].honoured


def test_what_it_has_above_that_stays_until_its_tasks_end() -> None:
    shape = TaskShape(mib_per_core=2048, honours_cpu=False)
    for gib in (30, 25, 20):
        found = node_ledger(a_node(shape, in_force=Resources(4000, 36 * GIB), allocated=Resources(4000, gib * GIB)))
        assert found.memory.rows[0].size == gib * GIB


def test_an_idle_account_wants_room_for_the_largest_task_that_runs_anywhere() -> None:
    largest = Resources(3000, 9 * GIB)
    idle = a_node(TaskShape(largest=largest), in_force=Resources(8000, 32 * GIB), allocated=Resources(0, 0))
    found = node_ledger(idle)
    assert [of.accounts[0].wants for of in (found.cpu, found.memory)] == [3000, 9 * GIB]
    small = node_ledger(replace(idle, shapes={}))
    assert [of.accounts[0].wants for of in (small.cpu, small.memory)] == [1000, 2 * GIB]


def test_an_account_without_room_for_the_largest_task_is_full() -> None:
    shape = TaskShape(largest=Resources(3000, 9 * GIB))
    found = node_ledger(a_node(shape, in_force=Resources(8000, 32 * GIB), allocated=Resources(5100, 20 * GIB)))
    assert found.cpu.accounts[0].wants is None
    assert found.memory.accounts[0].wants == 29 * GIB


def test_the_shape_of_tasks_is_their_largest_size_and_median_ratio() -> None:
    tasks = [Resources(1000, GIB), Resources(2000, 8 * GIB), Resources(500, 4 * GIB), Resources(0, GIB)]
    sums = ClusterSums()
    for number, size in enumerate(tasks):
        ratio = mib_per_core(size)
        shapes = {} if ratio is None else {ratio: 1}
        sums.put(RowKey("n", "yarn/a", str(number)), size, TaskSums(requested=size, largest=size, shapes=shapes))
    assert sums.shape(honours_cpu=False) == TaskShape(
        largest=Resources(2000, 8 * GIB), mib_per_core=4096, honours_cpu=False
    )
    assert ClusterSums().shape(honours_cpu=True) == TaskShape()
