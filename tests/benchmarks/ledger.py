"""The ledger of many nodes at once: how long it takes, whether that is linear, how much memory, against one by one.

Four accounts a node. In each round all nodes have new readings, tasks begin and end, and frameworks took what was due
the round before. Timed: capacity, sharing, sizes, and the rows that are due, of all nodes; blocks of nodes are computed
side by side on two cores. The plain version is timed on some of the nodes, and has to give the same sizes there.

    tox -e bench -- ledger [--rounds 40] [--nodes 10000,100000,300000]
"""

import argparse
import gc
import os
import random
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from fallow_core.ledger.due_offers import due_rows
from fallow_core.ledger.entries import NodeInputs
from fallow_core.ledger.fleet.fleet import Fleet, FleetDue
from fallow_core.ledger.growth_delay import SLOW, GrowthDelays
from fallow_core.ledger.node_ledger import node_ledger
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.policy import AccountPolicy, Limit, PublishingPolicy
from fallow_core.model.sample import NodeSample, Usage
from fallow_hookspecs import NodeState, Pending, Resources

GIB, MIB = 1 << 30, 1 << 20
INTERVAL_SECONDS = 5.0
KUBERNETES = "kubernetes/k"
CLUSTERS = (KUBERNETES, "yarn/a", "yarn/b", "yarn/c")
LASTS = dict.fromkeys(CLUSTERS[1:], 2147483)
ACCOUNTS = {KUBERNETES: AccountPolicy(weight=2), "yarn/a": AccountPolicy(weight=3, memory_limit=Limit(percent=80))}
PENDING = {
    KUBERNETES: Pending(total=Resources(400_000, 900 * GIB), largest=Resources(4000, 8 * GIB)),
    "yarn/a": Pending(total=Resources(0, 0)),
}
POLICY = PublishingPolicy()
NOW = 100_000.0
NOISE = np.array([0.01, 0.002])
"""How much CPU and memory of a node vary from reading to reading, as a share of it."""


def units(cluster: str) -> Resources:
    """The unit of a cluster's sizes."""
    return Resources(1, 1) if cluster == KUBERNETES else Resources(1000, MIB)


def a_row(drawn: random.Random, key: RowKey, capacity: Resources) -> Row:
    """A framework's node that was told a size before and has allocated a part of it."""
    unit = units(key.cluster)
    share, used = drawn.uniform(0.05, 0.15), drawn.choice([0.2, 0.8, 0.95, 1.0])
    cpu = int(capacity.cpu_milli * share) // 1000 * 1000
    memory = int(capacity.memory_bytes * share) // MIB * MIB
    return Row(
        key=key,
        state=NodeState.RUNNING,
        unit=unit,
        floor=Resources(0, 0) if key.cluster == KUBERNETES else Resources(1000, GIB),
        allocated=Resources(int(cpu * used) // 1000 * 1000, int(memory * used) // MIB * MIB),
        measured_at=NOW,
        in_force=Resources(cpu, memory),
        maximum=None if key.cluster == KUBERNETES else capacity,
        refreshed_at=NOW,
    )


def a_node(drawn: random.Random, name: str) -> NodeInputs:
    """A node with a row of each cluster."""
    cores, gib = drawn.choice([(32, 128), (64, 256), (96, 384), (128, 512)])
    capacity = Resources(cores * 1000, gib * GIB)
    cpu, memory = int(cores * 1000 * drawn.uniform(0.1, 0.5)), int(gib * GIB * drawn.uniform(0.1, 0.5))
    return NodeInputs(
        node=name,
        now=NOW,
        sample=NodeSample(
            cpu=Usage(measured_at=NOW, capacity=capacity.cpu_milli, used=cpu, batch_used=cpu // 3),
            memory=Usage(measured_at=NOW, capacity=capacity.memory_bytes, used=memory, batch_used=memory // 3),
        ),
        rows=tuple(a_row(drawn, RowKey(name, cluster, f"{name}:8041"), capacity) for cluster in CLUSTERS),
        accounts=ACCOUNTS,
        pending=PENDING,
        publishing=POLICY,
    )


class World:
    """Nodes whose online load wanders, and frameworks that take the sizes they are sent and fill or empty them."""

    def __init__(self, nodes: int) -> None:
        drawn = random.Random(1)
        self.now = NOW
        self.fleet = Fleet(slots=len(CLUSTERS))
        for i in range(nodes):
            self.fleet.write(a_node(drawn, name_of(i)))
        self._drawn = np.random.default_rng(1)
        self._calm = [block.nodes["outside"].copy() for block in self.fleet.blocks]

    def due(self, pool: ThreadPoolExecutor) -> FleetDue:
        """What is timed."""
        return self.fleet.due(POLICY, POLICY, self.now, LASTS, run=pool.map)

    def step(self, due: FleetDue | None) -> None:
        """What an interval brings: calls carried out, tasks begun and ended, new readings."""
        self.now += INTERVAL_SECONDS
        size = self.fleet.block_nodes
        for i, (block, calm) in enumerate(zip(self.fleet.blocks, self._calm, strict=True)):
            nodes, rows = block.nodes, block.rows
            if due is not None:
                own = due.rows[(due.rows["node"] >= i * size) & (due.rows["node"] < (i + 1) * size)]
                for column in ("in_force", "newest"):
                    rows[column][own["node"] - i * size, own["slot"]] = own["size"]
            noise = self._drawn.normal(0, 1, calm.shape) * NOISE
            nodes["outside"] = np.maximum(calm + (nodes["capacity"] * noise).astype(np.int64), 0)
            nodes["measured_at"] = self.now
            rows["measured_at"] = self.now
            unit = np.array([[units(cluster).cpu_milli, units(cluster).memory_bytes] for cluster in CLUSTERS])
            shape = rows["allocated"].shape
            change = self._drawn.normal(0, 0.03, shape) * (self._drawn.random(shape) < 0.2)
            tasks = (nodes["capacity"][:, None] * change).astype(np.int64) // unit * unit
            rows["allocated"] = np.clip(rows["allocated"] + tasks, 0, rows["in_force"])
            rows["belief"] = np.maximum(rows["allocated"], rows["in_force"])


def measured(nodes: int, rounds: int, pool: ThreadPoolExecutor) -> tuple[World, float]:
    """Print what all nodes at once take; the world after it, and the median in seconds.

    Not before growth has been watched for as long as it is ever held.
    """
    world, due = World(nodes), None
    warm = int(SLOW * POLICY.growth_delay_seconds / INTERVAL_SECONDS) + 2
    took, cpu, many = [], [], []
    for i in range(warm + rounds):
        world.step(due)
        gc.collect()
        began, began_cpu = time.perf_counter(), time.process_time()
        due = world.due(pool)
        if i >= warm:
            took.append(time.perf_counter() - began)
            cpu.append(time.process_time() - began_cpu)
            many.append(len(due.rows))
    size = world.fleet.nbytes / (nodes * len(CLUSTERS))
    print(
        f"{nodes:>7} nodes: median {median_ms(took):.1f} ms, least {min(took) * 1000:.1f} ms"
        f" ({median_ms(took) / nodes * 1e6:.0f} ns a node), CPU {median_ms(cpu):.1f} ms;"
        f" {size:.0f} bytes a node and account; {statistics.median(many):.0f} rows due; load {os.getloadavg()[0]:.1f}"
    )
    return world, statistics.median(took)


def plain(nodes: int, rounds: int, pool: ThreadPoolExecutor) -> float:
    """The seconds a node that the plain version takes, of nodes as they begin; the sizes are compared."""
    drawn = random.Random(1)
    inputs = [a_node(drawn, name_of(i)) for i in range(nodes)]
    world, took = World(nodes), []
    due = world.due(pool)
    rows = {row.key: row for each in inputs for row in each.rows}
    for _ in range(rounds):
        holds: GrowthDelays = {}
        began = time.perf_counter()
        found = []
        for each in inputs:
            ledger = node_ledger(each)
            found += due_rows(ledger, each.rows, holds, POLICY, NOW, LASTS)
        took.append((time.perf_counter() - began) / nodes)
    found.sort(key=lambda d: (-d.size.memory_bytes, -d.size.cpu_milli, d.key))
    if found != world.fleet.worded(due, rows, POLICY, NOW, LASTS):
        raise SystemExit("the plain version has other sizes due")
    print(f"one by one: median {median_ms(took) * 1000:.0f} µs a node (of {nodes}), the same {len(found)} rows due")
    return statistics.median(took)


def one_changed(world: World, rounds: int) -> None:
    """Print what it takes to compute one node anew among many."""
    drawn, took = random.Random(2), []
    count = sum(len(keys) > 0 for block in world.fleet.blocks for keys in block.keys)
    for _ in range(rounds):
        changed = replace(a_node(drawn, name_of(drawn.randrange(count))), now=world.now)
        began = time.perf_counter()
        world.fleet.changed(changed, POLICY, LASTS)
        took.append(time.perf_counter() - began)
    print(f"one changed node among {count}: median {median_ms(took):.2f} ms, least {min(took) * 1000:.2f} ms")


def median_ms(seconds: list[float]) -> float:
    """The median in milliseconds."""
    return statistics.median(seconds) * 1000


def name_of(number: int) -> str:
    """The name of a node."""
    return f"node-{number:06}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--nodes", default="10000,100000,300000")
    asked = parser.parse_args()
    with ThreadPoolExecutor(2) as pool:
        one_by_one = plain(500, 5, pool)
        for nodes in map(int, asked.nodes.split(",")):
            world, seconds = measured(nodes, asked.rounds, pool)
            print(f"        one by one takes {one_by_one * nodes / seconds:.0f} times as long")
            if nodes == 100_000:
                one_changed(world, 300)
            del world


if __name__ == "__main__":
    main()
