"""`fallow run` beside a real ResourceManager in which something waits: it is told, and no offer is made in vain."""

import re
from pathlib import Path

import pytest
from tests.e2e.yarn.application import containers_running
from tests.e2e.yarn.cluster import StartCluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.fallow_process import Fallow, spec_of
from tests.e2e.yarn.rest import USER, wait_for

pytestmark = pytest.mark.timeout(180)

TASK_MB, SMALL_MB, LARGE_MB = 1536, 512, 2048
SETUP = Setup(
    node_managers=2, memory_mb=LARGE_MB, vcores=4, site={"nm1": {"yarn.nodemanager.resource.memory-mb": str(SMALL_MB)}}
)


def test_an_offer_too_small_for_what_waits_is_not_made_and_one_that_fits_is(
    yarn_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster = yarn_cluster(SETUP)
    app = cluster.submit(2, TASK_MB, 1, "exec sleep 600")
    wait_for(lambda: len(containers_running(app)) == 1, 60, "the container that fits on the larger node")
    lent = cluster.nms["nm1"].node_id
    before = cluster.nodes()[lent].used_mb  # the master may be there
    specs = {"real": spec_of(cluster.rm, nodeManagers=[lent])}
    with Fallow(tmp_path / "fallow", specs, cpu_reserved_milli=0, memory_limit_mb=TASK_MB - 36) as fallow:
        fallow.start()
        wait_for(lambda: "not made: the larger offer" in fallow.succeed("explain"), 30, "an offer that is not made")
        words = " ".join(fallow.succeed("explain").split())
        assert f"has pending CPU, cores: 0.10, memory, GiB: {TASK_MB / 1024:.2f}" in words
        assert f"1 container of {USER} in root.default" in words
        assert re.search(r"smallest pending request: [\d.]+ (GiB free of 1\.50|cores free of 0\.10)", words)
        assert fallow.in_force()[lent][0] == SMALL_MB
        assert "containers of at most 2048 MB" in fallow.cluster()["detail"]

        fallow.add("clusters.d/real.yaml", limit={"memory": f"{LARGE_MB}Mi"})
        wait_for(lambda: len(containers_running(app)) == 2, 90, "the container that waited")
        assert cluster.nodes()[lent].used_mb - before == TASK_MB
