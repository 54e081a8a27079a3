"""Two real clusters, each with its own ResourceManager, that share the memory of this host by weight."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.e2e.yarn.application import Application, containers_ended, containers_running
from tests.e2e.yarn.cluster import Cluster, StartCluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.fallow_process import MIB, Fallow, spec_of
from tests.e2e.yarn.rest import wait_for
from tests.e2e.yarn.sizes import CPUS, near

from fallow_core.node.procfs import PROC_ROOT, read_memory

LENT_MB, CONTAINER_MB, WATERMARK = 3072, 256, 95
SETUP = Setup(memory_mb=LENT_MB, vcores=10 * CPUS, min_mb=64, heartbeat_ms=300)
WEIGHTS = {"heavy": 2, "light": 1}
SHARES = {"heavy": LENT_MB * 2 // 3, "light": LENT_MB // 3}
SECONDS = 90
pytestmark = pytest.mark.timeout(6 * SECONDS)

Clusters = dict[str, Cluster]


@pytest.fixture
def clusters(yarn_cluster: StartCluster) -> Clusters:
    return {name: yarn_cluster(SETUP) for name in WEIGHTS}


@pytest.fixture
def fallow(clusters: Clusters, tmp_path: Path) -> Iterator[Fallow]:
    """Lends so much memory whatever this host uses, and never less for what other programs do."""
    specs = {name: spec_of(cluster.rm) for name, cluster in clusters.items()}
    with ExitStack() as stack:
        fallow = stack.enter_context(Fallow(tmp_path / "fallow", specs, cpu_reserved_milli=0, memory_limit_mb=LENT_MB))
        total = read_memory(PROC_ROOT).total_bytes
        reserved = total - -(-total * (100 - WATERMARK) // 100) - LENT_MB * MIB
        change(fallow.folder / "fallow.yaml", "capacity", "memory", {"watermark": WATERMARK, "reserved": reserved})
        for name, weight in WEIGHTS.items():
            change(fallow.folder / "clusters.d" / f"{name}.yaml", "weight", weight)
        fallow.start()
        yield fallow


def change(file: Path, *path_and_value: object) -> None:
    """Set one value of a file."""
    *path, last, value = path_and_value
    root = inner = json.loads(file.read_text())
    for key in path:
        inner = inner[key]
    inner[last] = value
    file.write_text(json.dumps(root))


def memory_mb(cluster: Cluster) -> int:
    return sum(node.total_mb for node in cluster.nodes().values())


def is_shared(clusters: Clusters) -> bool:
    """Whether each has its share, and both together no more than there is."""
    found = {name: memory_mb(cluster) for name, cluster in clusters.items()}
    return sum(found.values()) <= LENT_MB and all(near(found[name], share) for name, share in SHARES.items())


def all_running(apps: dict[str, Application]) -> dict[str, set[str]]:
    return {name: containers_running(app) for name, app in apps.items()}


def test_two_clusters_share_by_weight_and_one_that_is_gone_for_a_while_keeps_what_runs(
    clusters: Clusters, fallow: Fallow
) -> None:
    for name, cluster in clusters.items():
        wait_for(lambda name=name: bool(fallow.cluster(f"yarn/{name}").get("rows")), 60, name)  # type: ignore[misc]
        wait_for(lambda cluster=cluster: memory_mb(cluster) < LENT_MB, SECONDS, f"an offer to {name}")  # type: ignore[misc]
    wanted = 2 * LENT_MB // CONTAINER_MB
    apps = {name: cluster.submit(wanted, CONTAINER_MB, 1, "exec sleep 3600") for name, cluster in clusters.items()}
    wait_for(lambda: is_shared(clusters), SECONDS, "shares of two thirds and one third")
    wait_for(lambda: all(all_running(apps).values()), 60, "containers of both")

    heavy, light = clusters["heavy"], clusters["light"]
    light.kill("rm")
    wait_for(lambda: bool(fallow.problem("yarn/light")), 60, "the problem")
    before = all_running(apps)["light"]
    for _ in range(20):
        assert memory_mb(heavy) <= LENT_MB - CONTAINER_MB * len(before)  # what runs there is not promised again
        time.sleep(0.5)
    assert "yarn/light" in fallow.call("status").stdout

    light.launch("rm")
    light.wait_ready()
    wait_for(lambda: is_shared(clusters), SECONDS, "the same shares again")
    assert before <= all_running(apps)["light"]
    assert [containers_ended(app) for app in apps.values()] == [[], []]
