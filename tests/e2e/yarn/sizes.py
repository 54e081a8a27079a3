"""The sizes of nodes in the tests of `fallow run`: what is configured, what is to be expected, and waiting for it."""

import os
from collections.abc import Callable

from tests.e2e.yarn import rest
from tests.e2e.yarn.cluster import Cluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.fallow_process import DEAD_BAND_PERCENT, Fallow, Sizes

CPUS = os.cpu_count() or 1

# The application: four containers fit on a node, but not with their master, so that both nodes have something to lose.
CONTAINERS, CONTAINER_MB, MASTER_MB = 4, 512, 256
SETUP = Setup(node_managers=2, memory_mb=2176, vcores=10 * CPUS, heartbeat_ms=300)

# Memory has a limit and half of the CPU is reserved, so that what is lent does not follow every other process here.
RESERVED_CPU_MILLI = 500 * CPUS
LENT_MB, LENT_VCORES = 3072, CPUS * 45 // 10

SECONDS = 90  # until load from elsewhere has passed
FAR_MS = 2147483647


def resize(cluster: Cluster, node_id: str, memory_mb: int, vcores: int, over_commit_timeout_ms: int) -> None:
    """Change a node's size in the ResourceManager, without Fallow."""
    body = {"resource": {"memory": memory_mb, "vCores": vcores}, "overCommitTimeout": over_commit_timeout_ms}
    rest.call(cluster.rm.web, f"/ws/v1/cluster/nodes/{node_id}/resource", body)


def sizes(cluster: Cluster) -> Sizes:
    """The sizes that the scheduler works with."""
    return {node.node_id: (node.total_mb, node.total_vcores) for node in cluster.nodes().values()}


def vcores(cluster: Cluster) -> int:
    """The vcores of all nodes."""
    return sum(cores for _, cores in sizes(cluster).values())


def configured(cluster: Cluster) -> Sizes:
    """The sizes that the NodeManagers register with."""
    return {nm.node_id: (SETUP.memory_mb, SETUP.vcores) for nm in cluster.nms.values()}


def are_floors(found: Sizes) -> bool:
    """Whether all are the minimum allocation; a size may be sent with 1 MB more, to tell it from another one."""
    floors = {(SETUP.min_mb, 1), (SETUP.min_mb + 1, 1)}
    return bool(found) and set(found.values()) <= floors


def near(value: int, wanted: int) -> bool:
    """Whether a size would not be sent again: a size is sent when it differs by more than the dead band."""
    return abs(value - wanted) * 100 <= wanted * (DEAD_BAND_PERCENT + 2)


def are_lent(found: Sizes) -> bool:
    """Whether these are the sizes of a host that has memory to lend; with other load there are fewer vcores."""
    memory_mb, cores = (sum(size[i] for size in found.values()) for i in (0, 1))
    return near(memory_mb, LENT_MB) and (cores <= LENT_VCORES or near(cores, LENT_VCORES))


def have_memory_of(before: Sizes) -> Callable[[Sizes], bool]:
    """Whether each node has the memory of before."""
    return lambda found: all(near(found[name][0], memory_mb) for name, (memory_mb, _) in before.items())


def wait_for_sizes(cluster: Cluster, fallow: Fallow, wanted: Callable[[Sizes], bool], what: str) -> Sizes:
    """Wait until the ResourceManager has the wanted sizes and Fallow shows the same ones in force."""
    found: Sizes = {}

    def agree() -> bool:
        found.clear()
        found.update(sizes(cluster))
        return wanted(found) and fallow.in_force() == found

    try:
        rest.wait_for(agree, SECONDS, what)
    except TimeoutError as error:
        error.add_note(f"the ResourceManager has {found}")
        error.add_note(f"Fallow shows {fallow.shown()}")
        raise
    return found
