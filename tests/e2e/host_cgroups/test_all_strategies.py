"""`fallow run` throttles in every way at once, in three hierarchies of v1, and all is put back afterwards."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from shlex import quote

import pytest
from tests.e2e.host_cgroups.stage import CPUS, Stage, until

from fallow_core.node.cgroups import cpuset
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import hierarchies
from fallow_core.node.cgroups.hierarchy import Hierarchy

pytestmark = pytest.mark.timeout(180)
ENFORCE = {
    "cpuSuppress": {"mode": "enforce", "cpuset": "packed", "step": "100%"},
    "cgroupReconcile": {"mode": "enforce", "memoryLimit": "500%"},
    "identity": {"mode": "enforce"},
    "memoryReclaim": {"mode": "enforce", "threshold": 1, "step": "1%"},
}
WRITES = """
import time
while True:
    with open("pages", "wb") as pages:
        pages.write(bytes(24 << 20))
    time.sleep(1)
"""


def cgroups(pid: int) -> str:
    return Path(f"/proc/{pid}/cgroup").read_text()


@pytest.fixture
def trees(hierarchy: Hierarchy) -> Iterator[dict[str, Hierarchy]]:
    """The hierarchies of this host; what a failure left in them is removed."""
    found, lacking = hierarchies(Files())
    if lacking or CPUS < 2 or any(one.version != 1 for one in found.values()):
        pytest.skip("needs two CPUs, and the controllers cpu, memory and cpuset on cgroup v1")
    yield found
    for tree in found.values():
        if (group := own(tree)) is not None:
            until(partial(removed, tree, group), "the end of the group's processes")


def removed(tree: Hierarchy, top: str) -> bool:
    for group in reversed([top, *tree.below(top)]):
        with suppress(OSError):
            tree.remove(group)
    return tree.identity(top) is None


def own(tree: Hierarchy) -> str | None:
    """Fallow's own group in a hierarchy."""
    return next((group for group in tree.below("") if group.endswith(f"fallow.e2e-{os.getpid()}")), None)


def test_batch_is_throttled_in_every_way_at_once_and_all_is_put_back_after_kill_9(
    hierarchy: Hierarchy, trees: dict[str, Hierarchy], tmp_path: Path
) -> None:
    with Stage(hierarchy, tmp_path, **ENFORCE) as stage:
        stage.yarn.submit(containers=2, memory_mb=128, vcores=1, command=f"exec {sys.executable} -ISc {quote(WRITES)}")
        stage.load.percent = 70
        until(lambda: len(list(stage.folder.rglob("pages"))) == 2, "the containers' files")
        before = {pid: cgroups(pid) for pid in stage.batch()}
        stage.start()
        until(lambda: all(own(tree) for tree in trees.values()), "a group in each hierarchy")
        groups = {controller: own(tree) or "" for controller, tree in trees.items()}
        until(lambda: len(cpuset.cpus_of(trees["cpuset"], groups["cpuset"])) == 1, "one CPU alone")
        until(lambda: trees["cpu"].read(groups["cpu"], "cpu.idle") == "1", "the class of batch")
        limits = int(trees["memory"].read(groups["memory"], "memory.limit_in_bytes"))
        assert 3 * 128 * 5 << 20 <= limits < 1 << 40
        until(lambda: any(sum(step["brought"].values()) for step in stage.throttle()["steps"]), "memory that came out")
        throttled = stage.throttle()
        assert (throttled["problems"], throttled["unavailable"]) == ([], {})
        assert list(throttled["cpuset"]["groups"]) == [f"/{groups['cpuset']}"]

        stage.end(signal.SIGKILL)
        restored = stage.restore()
        for controller, group in groups.items():
            assert f"control group /{group}: put back as it was found" in restored
            assert trees[controller].identity(group) is None
        assert {pid: cgroups(pid) for pid in before} == before
