"""A real NodeManager makes groups of cgroup v2 for its containers; Fallow throttles them, ends one, and restores."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.e2e.told import control_files
from tests.e2e.yarn.cluster import AM_MEMORY_MB, Cluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.daemons import Daemon
from tests.e2e.yarn.fallow_process import spec_of
from tests.e2e.yarn.jars import Jars, cached
from tests.e2e.yarn.rest import wait_for
from tests.e2e.yarn.throttling import EXECUTOR, fallow_on, linux_container_executor, restore, throttle

from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_hookspecs import ClusterConfig, KillAnswer, KillOrder, KillResult, Node, Role
from fallow_yarn.plugin import YarnInstance
from fallow_yarn.settings.config import YarnSpec

SECONDS = 300  # in a guest that is slow, and slower beside others
REGISTERED = "Registered with ResourceManager"
MIB = 1 << 20
HERE = Node(name="here", addresses=("localhost", "127.0.0.1"))
V2 = {f"{EXECUTOR}.cgroups.v2.enabled": "true", "yarn.nodemanager.resource.memory.enabled": "true"}
NAMES = ("cpu.max", "cpu.weight", "cpu.idle", "memory.max", "memory.low", "memory.high")


@pytest.fixture
def jars() -> Jars:
    found = cached("3.5.0")
    if shutil.which("java") is None or found is None:
        reason = "needs Java, and the jars of Hadoop 3.5.0, which the host fetches with a JDK and Maven"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@pytest.fixture
def tree(hierarchy: Hierarchy, top: str) -> str:
    """The group that the NodeManager is configured to make, and to make its own in.

    In 3.5.0 it takes the last one that is passed on to it for a name with a line's end, so that may not be `memory`.
    """
    for group in ("", top):
        hierarchy.write(group, "cgroup.subtree_control", "+pids")
    return f"{top}/hadoop-yarn"


def log_of(daemon: Daemon) -> str:
    """What it has written; an error with the end of that if it has ended."""
    _ = daemon.pid
    return daemon.log.read_text()


@pytest.fixture
def cluster(jars: Jars, tree: str, tmp_path: Path) -> Iterator[Cluster]:
    site = {"nm1": {**linux_container_executor(tree), **V2}}
    cluster = Cluster(jars, tmp_path / "cluster", Setup(site=site))
    cluster.prepare()
    try:
        for name in cluster.daemons:
            cluster.launch(name)
        # To ask the ResourceManager all the time would take the CPU that both start with.
        wait_for(lambda: REGISTERED in log_of(cluster.nms["nm1"]), SECONDS, "the NodeManager to be registered")
        cluster.wait_ready(SECONDS)
        yield cluster
    finally:
        cluster.stop()


@pytest.mark.timeout(2 * SECONDS)
def test_containers_of_a_real_node_manager_are_throttled_by_their_hierarchy_and_all_goes_back(
    hierarchy: Hierarchy, tree: str, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.start_master(cluster.new_application(), "exec sleep 600")

    def runs() -> bool:
        return any(hierarchy.processes(f"{tree}/{name}") for name in hierarchy.children(tree))

    wait_for(runs, SECONDS, "the container")
    (container_id,) = hierarchy.children(tree)
    group = f"{tree}/{container_id}"
    assert hierarchy.read(group, "memory.max") == str(AM_MEMORY_MB * MIB)
    assert hierarchy.read(group, "memory.low") == str(AM_MEMORY_MB * 9 // 10 * MIB)
    before = control_files(hierarchy, tree, NAMES)

    spec = YarnSpec.model_validate(spec_of(cluster.rm))
    config = ClusterConfig(name="real", roles=frozenset(Role), spec=spec)
    with closing(YarnInstance(config)) as instance, fallow_on(cluster, tmp_path / "fallow") as fallow:
        instance.report_capacity((HERE,), (), SECONDS)
        (task,) = instance.list_tasks(HERE, SECONDS).tasks
        assert (task.id, task.cgroups) == (container_id, (group,))

        fallow.start(SECONDS)
        wait_for(lambda: not hierarchy.read(tree, "cpu.max").startswith("max"), SECONDS, "a limit")
        assert hierarchy.read(tree, "cpu.weight") == "1"
        assert [each["group"] for each in throttle(fallow)["groups"]] == [f"/{tree}"]
        changed = {name for name, text in control_files(hierarchy, tree, NAMES).items() if text != before[name]}
        assert changed == {f"{tree}/cpu.max", f"{tree}/cpu.weight"}

        outcome = instance.kill_tasks(HERE, KillOrder(task_ids=(task.id,), reason="a test", force=False), SECONDS)
        assert outcome.answers == {task.id: KillAnswer(result=KillResult.TERMINATING)}
        wait_for(lambda: hierarchy.children(tree) == [], SECONDS, "the end of the container's group")
        assert not hierarchy.read(tree, "cpu.max").startswith("max")

        fallow.end(signal.SIGKILL)
        restore(fallow, SECONDS)
    of_tree = {name: text for name, text in before.items() if not name.startswith(f"{group}/")}
    assert control_files(hierarchy, tree, NAMES) == of_tree
