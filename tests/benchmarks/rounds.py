"""What a round of the planner costs: of one node, and of many nodes of which a few have changed.

    tox -e bench -- rounds

CPU time of this thread, so that other work on the host counts little; the median of many rounds.
"""

import statistics
import time
from collections.abc import Iterable
from dataclasses import replace

from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.policy import AccountPolicy, PublishingMode, PublishingPolicy
from fallow_core.model.sample import NodeSample, Usage
from fallow_core.planner.observations import ClusterObservation, NodeObservation, Observations, TaskSums
from fallow_core.planner.round import plan_round
from fallow_core.planner.state import PlannerState
from fallow_hookspecs import NodeState, Resources

GIB = 1 << 30
CLUSTERS = ("yarn/a", "yarn/b")
TASKS = TaskSums(requested=Resources(8_000, 32 * GIB), largest=Resources(2_000, 8 * GIB), shapes={4096: 4})
ROUNDS = 300


def main() -> None:
    """Print the medians."""
    one = measured(1, 1)
    print(f"one node, two accounts:                {one:7.3f} ms")
    print(f"10 nodes, all with news:               {measured(10, 10):7.3f} ms")
    print(f"1,000 nodes, of which 10 with news:    {measured(1000, 10):7.3f} ms")


def measured(nodes: int, changed: int) -> float:
    """Milliseconds of CPU of a round."""
    rows = [row(f"n{number}", cluster) for number in range(nodes) for cluster in CLUSTERS]
    state = PlannerState(
        policies=NodePolicies(),
        publishing=PublishingPolicy(mode=PublishingMode.ENFORCE),
        names=frozenset(CLUSTERS),
    )
    names = [f"n{number}" for number in range(nodes)]
    plan_round(state, news(0, names, rows, first=True))
    rows = [at_rest(each, state) for each in rows]
    plan_round(state, news(0.05, names, rows, first=True))
    state.unwritten.clear()
    took = []
    for number in range(1, ROUNDS + 1):
        names = [f"n{(number * changed + i) % nodes}" for i in range(changed)]
        observed = news(number, names, rows)
        began = time.thread_time()
        plan_round(state, observed)
        took.append(time.thread_time() - began)
    return statistics.median(took) * 1000


def at_rest(row: Row, state: PlannerState) -> Row:
    """The row at the size that its ledger wants, so that nothing is due."""
    ledger = state.nodes[row.key.node].ledger
    assert ledger is not None
    cpu, memory = (next(e.size for e in of.rows if e.key == row.key) for of in (ledger.cpu, ledger.memory))
    return replace(row, in_force=Resources(cpu, memory))


def news(number: float, nodes: Iterable[str], rows: list[Row], *, first: bool = False) -> Observations:
    """What is new at that second: the use of the nodes moves a little."""
    now = number * 0.1
    used = 20_000 + int(number) * 37 % 400
    sample = NodeSample(
        cpu=Usage(measured_at=now, capacity=64_000, used=used, batch_used=8_000),
        memory=Usage(measured_at=now, capacity=256 * GIB, used=60 * GIB + used, batch_used=20 * GIB),
    )
    return Observations(
        now=now,
        wall_now=now,
        nodes={
            name: NodeObservation(sample=sample, tasks={RowKey(name, cluster, name): TASKS for cluster in CLUSTERS})
            for name in nodes
        },
        clusters={
            cluster: ClusterObservation(
                policy=AccountPolicy(),
                rows={each.key: each for each in rows if each.key.cluster == cluster},
                changed=[each.key for each in rows if each.key.cluster == cluster] if first else (),
                reported=True,
                may_publish=False,
            )
            for cluster in CLUSTERS
        },
    )


def row(node: str, cluster: str) -> Row:
    """A node of a framework that has half of its size allocated."""
    return Row(
        key=RowKey(node, cluster, node),
        state=NodeState.RUNNING,
        unit=Resources(1000, 1 << 20),
        floor=Resources(1000, GIB),
        allocated=Resources(8_000, 32 * GIB),
        measured_at=0.0,
        in_force=Resources(16_000, 64 * GIB),
    )


if __name__ == "__main__":
    main()
