"""The harness itself: a real cluster starts, works, survives the death of a NodeManager, and leaves nothing behind."""

from pathlib import Path

import pytest
from tests.e2e.yarn.application import containers_ended, containers_running
from tests.e2e.yarn.cluster import Cluster, StartCluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.daemons import ClusterError
from tests.e2e.yarn.jars import Jars
from tests.e2e.yarn.processes import containers_below
from tests.e2e.yarn.rest import wait_for


def test_a_cluster_runs_an_application_whose_containers_survive_a_killed_node_manager(
    yarn_cluster: StartCluster,
) -> None:
    cluster = yarn_cluster(Setup(memory_mb=3072, vcores=3))
    node_id = cluster.nms["nm1"].node_id
    node = cluster.nodes()[node_id]
    assert (node.state, node.total_mb, node.total_vcores, node.used_mb) == ("RUNNING", 3072, 3, 0)

    app = cluster.submit(2, 512, 1, 'echo "$CONTAINER_ID"; sleep 300')
    wait_for(lambda: len(containers_running(app)) == 2, 60, "both containers")
    running = containers_running(app)
    node = cluster.nodes()[node_id]
    assert (node.containers, node.used_mb, node.used_vcores) == (3, 256 + 2 * 512, 3)

    before = cluster.nms["nm1"].pid
    cluster.restart("nm1")
    assert cluster.nms["nm1"].pid != before
    wait_for(lambda: cluster.nodes()[node_id].containers == 3, 10, "the containers of before")
    assert containers_running(app) == running

    cluster.kill("nm1")
    assert len(containers_below(cluster.folder)) >= 3
    cluster.stop()
    assert containers_below(cluster.folder) == []


def test_the_end_of_a_container_is_told_with_its_exit_code(yarn_cluster: StartCluster) -> None:
    cluster = yarn_cluster(Setup())
    app = cluster.submit(1, 128, 1, "exit 7")
    wait_for(lambda: len(containers_ended(app)) == 1, 60, "the end of the container")
    assert containers_ended(app)[0].exit_code == 7


def test_a_daemon_that_cannot_start_is_reported_with_its_log(hadoop_jars: Jars, tmp_path: Path) -> None:
    site = {"rm": {"yarn.resourcemanager.scheduler.class": "no.such.Scheduler"}}
    cluster = Cluster(hadoop_jars, tmp_path / "cluster", Setup(node_managers=0, site=site))
    with pytest.raises(ClusterError, match=r"rm is not running[\s\S]*no\.such\.Scheduler"):
        cluster.start()
    assert cluster.rm.process is None
