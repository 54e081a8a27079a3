"""`fallow run` throttles the containers of a real NodeManager: in groups that it made, and without any."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from tests.e2e.yarn.application import containers_running
from tests.e2e.yarn.cluster import StartCluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.processes import end_containers
from tests.e2e.yarn.rest import wait_for
from tests.e2e.yarn.throttling import fallow_on, linux_container_executor, restore, throttle

from fallow_core.errors import CgroupError
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import find
from fallow_core.node.cgroups.hierarchy import Hierarchy

pytestmark = pytest.mark.timeout(300)
TREE = f"fallow-lce-{os.getpid()}/hadoop-yarn"
SECONDS = 60
FILES = ("cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us")
HOG = "while :; do :; done"


@pytest.fixture
def hierarchy() -> Hierarchy:
    """The CPU controller of this host, where it can be changed."""
    try:
        found = find("cpu", Files())
    except CgroupError as error:
        pytest.skip(str(error))
    if found.version != 1 or os.geteuid() != 0 or not os.access(found.path("", "cgroup.procs"), os.W_OK):
        pytest.skip("needs root, and the CPU controller on cgroup v1")
    return found


@pytest.fixture
def tree(hierarchy: Hierarchy) -> Iterator[str]:
    """The group that a NodeManager is configured to make its own in."""
    hierarchy.make(TREE.partition("/")[0], "cpu.shares")
    hierarchy.make(TREE, "cpu.shares")
    yield TREE

    def gone() -> bool:
        top = TREE.partition("/")[0]
        for group in reversed([top, *hierarchy.below(top)]):
            with suppress(OSError):
                hierarchy.remove(group)
        return hierarchy.identity(top) is None

    wait_for(gone, SECONDS, "the end of the NodeManager's groups")


def control_files(hierarchy: Hierarchy, groups: Mapping[str, object]) -> dict[str, str]:
    return {f"{group}/{name}": hierarchy.read(group, name) for group in groups for name in FILES}


def quota(hierarchy: Hierarchy, group: str) -> int:
    return int(hierarchy.read(group, "cpu.cfs_quota_us"))


def test_the_groups_of_a_linux_container_executor_are_limited_also_after_its_restart(
    yarn_cluster: StartCluster, hierarchy: Hierarchy, tree: str, tmp_path: Path
) -> None:
    cluster = yarn_cluster(
        Setup(memory_mb=2048, vcores=8, heartbeat_ms=300, site={"nm1": linux_container_executor(tree)})
    )
    app = cluster.submit(2, 256, 1, HOG)
    wait_for(lambda: len(containers_running(app)) == 2, SECONDS, "the containers")
    groups = dict.fromkeys([tree, *hierarchy.below(tree)])
    assert len(groups) == 4  # with that of the application master
    before = control_files(hierarchy, groups)
    with fallow_on(cluster, tmp_path / "fallow") as fallow:
        fallow.start()
        wait_for(lambda: quota(hierarchy, tree) > 0, SECONDS, "a limit")
        assert hierarchy.read(tree, "cpu.shares") == "2"
        assert [group["group"] for group in throttle(fallow)["groups"]] == [f"/{tree}"]
        changed = {key for key, text in control_files(hierarchy, groups).items() if text != before[key]}
        assert changed == {f"{tree}/cpu.shares", f"{tree}/cpu.cfs_quota_us"}

        cluster.restart("nm1")
        wait_for(lambda: quota(hierarchy, tree) > 0, SECONDS, "the limit after the restart")
        assert len(containers_running(app)) == 2

        fallow.end(signal.SIGKILL)
        restore(fallow)
        assert control_files(hierarchy, groups) == before
    cluster.stop()


def test_containers_without_groups_are_put_into_one_and_go_back(
    yarn_cluster: StartCluster, hierarchy: Hierarchy, tmp_path: Path
) -> None:
    cluster = yarn_cluster(Setup(memory_mb=2048, vcores=8, heartbeat_ms=300))
    app = cluster.submit(2, 256, 1, HOG)
    wait_for(lambda: len(containers_running(app)) == 2, SECONDS, "the containers")
    manager = cluster.nms["nm1"].pid
    home = hierarchy.group_of(manager)
    own = f"{home}/fallow.e2e-{os.getpid()}".lstrip("/")
    with fallow_on(cluster, tmp_path / "fallow") as fallow:
        fallow.start()
        wait_for(lambda: hierarchy.identity(own) is not None and quota(hierarchy, own) > 0, SECONDS, "a limit")

        def tasks_in_groups() -> dict[str, list[int]]:
            return {name: hierarchy.processes(f"{own}/{name}") for name in hierarchy.children(own)}

        wait_for(lambda: sum(map(bool, tasks_in_groups().values())) == 3, SECONDS, "a group for each container")
        assert hierarchy.group_of(manager) == home
        tasks = tasks_in_groups()
        inside = [pid for pids in tasks.values() for pid in pids]
        assert all(name.encode() in Path(f"/proc/{pids[0]}/environ").read_bytes() for name, pids in tasks.items())
        fallow.end(signal.SIGKILL)
        restore(fallow)
        assert hierarchy.identity(own) is None
        assert {hierarchy.group_of(pid) for pid in inside} == {home}
        assert len(containers_running(app)) == 2
    end_containers(cluster.folder)
    cluster.stop()
