"""`fallow run` beside a real ResourceManager with node labels: requests count for the nodes that can serve them."""

from pathlib import Path

import pytest
from tests.e2e.yarn import rest
from tests.e2e.yarn.cluster import Cluster, StartCluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.fallow_process import Fallow, spec_of
from tests.e2e.yarn.rest import USER, wait_for

pytestmark = pytest.mark.timeout(240)

LABEL = "gpu"
NODE_MB, TASK_MB = 2048, 512
SETUP = Setup(
    node_managers=2,
    memory_mb=NODE_MB,
    vcores=20,
    heartbeat_ms=300,
    site={"rm": {"yarn.node-labels.enabled": "true"}},
    capacity={
        f"root.accessible-node-labels.{LABEL}.capacity": "100",
        "root.default.accessible-node-labels": LABEL,
        f"root.default.accessible-node-labels.{LABEL}.capacity": "100",
    },
)


@pytest.fixture(scope="module")
def nodes(yarn_cluster: StartCluster) -> tuple[Cluster, str, str]:
    """The cluster, its node with the label, and the one without. Requests wait: three for the label, two others."""
    cluster = yarn_cluster(SETUP)
    labelled, plain = (nm.node_id for nm in cluster.nms.values())
    change(cluster, "add-node-labels", {"nodeLabelInfo": [{"name": LABEL, "exclusivity": "true"}]})
    change(cluster, "replace-node-to-labels", {"nodeToLabels": [{"nodeId": labelled, "labels": [LABEL]}]})
    cluster.submit(6, TASK_MB, 1, "exec sleep 600", label=LABEL)
    cluster.submit(5, TASK_MB, 1, "exec sleep 600")
    wait_for(lambda: all(node.containers == 4 for node in cluster.nodes().values()), 60, "the containers that fit")
    return cluster, labelled, plain


def change(cluster: Cluster, what: str, body: object) -> None:
    rest.call(cluster.rm.web, f"/ws/v1/cluster/{what}", body)


@pytest.mark.parametrize("has_label", [True, False])
def test_requests_count_for_the_nodes_of_their_partition(
    nodes: tuple[Cluster, str, str], has_label: bool, tmp_path: Path
) -> None:
    cluster, labelled, plain = nodes
    specs = {"real": spec_of(cluster.rm, nodeManagers=[labelled if has_label else plain])}
    partition, memory_gib = (LABEL, "1.50") if has_label else ("the default partition", "1.00")
    here = f"has pending for {partition} CPU, cores: {'0.30' if has_label else '0.20'}, memory, GiB: {memory_gib}"
    with Fallow(tmp_path / "fallow", specs, cpu_reserved_milli=0, memory_limit_mb=NODE_MB) as fallow:
        fallow.start()

        def explained() -> str:
            return " ".join(fallow.succeed("explain").split())

        wait_for(lambda: here in explained(), 60, here)
        assert "cannot serve what is pending for other partitions" in explained()
        assert f"containers of {USER} in root.default" in explained()
        doctor = " ".join(fallow.call("doctor").stdout.split())
        says = f"{LABEL}, exclusive: only requests for {LABEL} can use what is lent here"
        assert (says in doctor) == has_label
