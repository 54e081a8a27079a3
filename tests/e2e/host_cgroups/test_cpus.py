"""Sets of CPUs and the scheduling class of a group on this kernel: changed in an order that it does not refuse."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from core.tests.fake_cgroups import FakeCgroups
from tests.e2e.host_cgroups.stage import until

from fallow_core.agent.throttling.cgroup_plan import GroupTarget
from fallow_core.agent.throttling.cgroup_writer import CgroupWriter
from fallow_core.errors import CgroupError
from fallow_core.model.control_file import ControlFile
from fallow_core.model.qos_policy import Placing
from fallow_core.node.cgroups import cpu, cpuset
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import find
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.topology import read_topology
from fallow_core.qos.cpuset import choose
from fallow_core.state.original_values import OriginalValuesFile

TOP = f"fallow-cpus-{os.getpid()}"
CLUSTERS = frozenset({"yarn/e2e"})
ONLINE = frozenset(one.number for one in read_topology(Files()))
FIRST, LAST = min(ONLINE), max(ONLINE)
SETS = ("cpuset.cpus", "cpuset.mems")


def v1(controller: str) -> Hierarchy:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    try:
        found = find(controller, Files())
    except CgroupError as error:
        pytest.skip(str(error))
    if found.version != 1 or not os.access(found.path("", "cgroup.procs"), os.W_OK):
        pytest.skip(f"needs the controller {controller} on cgroup v1, where it can be changed")
    return found


@pytest.fixture
def sets() -> Iterator[Hierarchy]:
    """The cpuset controller, with groups of the test three levels deep."""
    hierarchy = v1("cpuset")
    if len(ONLINE) < 2:
        pytest.skip("needs two CPUs")
    for group in ("", "/c1", "/c1/deep", "/c1/deep/deeper", "/c2"):
        hierarchy.make(f"{TOP}{group}", "cpuset.cpus")
    yield hierarchy
    gone(hierarchy)


@pytest.fixture
def classes() -> Iterator[Hierarchy]:
    """The CPU controller, with a group of the test."""
    hierarchy = v1("cpu")
    hierarchy.make(TOP, "cpu.shares")
    yield hierarchy
    gone(hierarchy)


@pytest.fixture
def process() -> Iterator[int]:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        yield sleeper.pid
        sleeper.kill()


def gone(hierarchy: Hierarchy) -> None:
    def all_gone() -> bool:
        for group in reversed([TOP, *hierarchy.below(TOP)]):
            with suppress(OSError):
                hierarchy.remove(group)
        return hierarchy.identity(TOP) is None

    until(all_gone, "the end of the test's groups")


def allowed(pid: int) -> cpuset.Cpus:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "Cpus_allowed_list" in line)
    return cpuset.parse(line.partition(":")[2], "status")


def control_files(hierarchy: Hierarchy) -> dict[str, str]:
    groups = [TOP, *sorted(hierarchy.below(TOP))]
    return {f"{group}/{name}": hierarchy.read(group, name) for group in groups for name in SETS}


def test_a_group_and_all_below_it_shrink_and_grow_without_a_refusal_and_go_back(
    sets: Hierarchy, process: int, tmp_path: Path
) -> None:
    sets.move(process, f"{TOP}/c1/deep/deeper")
    sets.write(f"{TOP}/c2", "cpuset.cpus", str(FIRST))
    before = control_files(sets)
    for target in ({LAST}, {FIRST, LAST}, {FIRST}, {LAST}):
        acting = CgroupWriter(
            sets, OriginalValuesFile(tmp_path, controller="cpuset")
        )  # a new process each time, as after a kill
        acting.apply(TOP, GroupTarget(clusters=CLUSTERS, cpus=frozenset(target)))
        assert acting.problems == {}
        assert allowed(process) == target
        assert cpuset.cpus_of(sets, f"{TOP}/c2") in ({FIRST}, target)
    acting = CgroupWriter(sets, OriginalValuesFile(tmp_path, controller="cpuset"))
    acting.release(TOP)
    assert (acting.changed_groups, acting.problems, control_files(sets)) == ({}, {}, before)
    assert allowed(process) == ONLINE


def test_a_group_with_a_process_that_is_bound_is_seen_and_left_out(sets: Hierarchy, process: int) -> None:
    others = cpuset.pinned(sets, [TOP], ONLINE)
    sets.write(f"{TOP}/c1/deep/deeper", "cpuset.cpus", str(LAST))
    assert cpuset.pinned(sets, [], ONLINE) == others
    sets.move(process, f"{TOP}/c1/deep/deeper")
    assert cpuset.pinned(sets, [], ONLINE) == others | {LAST}
    assert cpuset.pinned(sets, [f"{TOP}/c1"], ONLINE) == others
    left = choose(read_topology(Files()), 9, within=ONLINE, exclusive={LAST}, placing=Placing.SPREAD)
    assert left == ONLINE - {LAST}


@pytest.mark.parametrize(
    ("group", "name", "text"),
    [
        ("c1", "cpuset.cpus", str(FIRST)),
        ("c1/deep", "cpuset.cpus", ""),
        ("c2", "cpuset.cpus", str(FIRST)),
        ("c2", "cpuset.cpus", ""),
        ("c2", "cpuset.cpus", f"{FIRST},{LAST}"),
    ],
)
def test_the_fake_of_the_unit_tests_refuses_sets_as_this_kernel(
    sets: Hierarchy, process: int, group: str, name: str, text: str
) -> None:
    def tried(hierarchy: Hierarchy) -> tuple[int | None, str]:
        try:
            hierarchy.write(f"{TOP}/{group}", name, text)
        except OSError as error:
            return error.errno, hierarchy.read(f"{TOP}/{group}", name)
        return None, hierarchy.read(f"{TOP}/{group}", name)

    fake = FakeCgroups(1, controllers=("cpu", "cpuset"))
    fake.groups[""].cpus = ONLINE
    fake.add("", process)
    for path in (TOP, *sorted(sets.below(TOP))):
        fake.add(path, cpus=cpuset.cpus_of(sets, path))
    for hierarchy in (fake.hierarchy, sets):
        hierarchy.move(process, f"{TOP}/c1/deep/deeper")
    assert tried(fake.hierarchy) == tried(sets)


def test_a_group_idles_and_gets_its_weight_back(classes: Hierarchy, tmp_path: Path) -> None:
    file = cpu.identity_file(classes, TOP)
    if file is not ControlFile.IDLE:
        pytest.skip("this kernel has no cpu.idle on v1")
    classes.write(TOP, "cpu.shares", "700")
    acting = CgroupWriter(classes, OriginalValuesFile(tmp_path))
    acting.apply(TOP, GroupTarget(clusters=CLUSTERS, texts={ControlFile.IDLE: "1"}))
    assert (classes.read(TOP, "cpu.idle"), acting.problems) == ("1", {})
    acting.apply(TOP, GroupTarget(clusters=CLUSTERS, texts={ControlFile.WEIGHT: "2"}))
    assert (classes.read(TOP, "cpu.idle"), classes.read(TOP, "cpu.shares")) == ("0", "2")
    acting.apply(TOP, GroupTarget(clusters=CLUSTERS, texts={ControlFile.IDLE: "1"}))
    later = CgroupWriter(classes, OriginalValuesFile(tmp_path))
    later.release(TOP)
    assert (later.changed_groups, later.problems) == ({}, {})
    assert (classes.read(TOP, "cpu.idle"), classes.read(TOP, "cpu.shares")) == ("0", "700")


def test_a_group_that_idles_leaves_the_cpu_to_others(classes: Hierarchy, tmp_path: Path) -> None:
    if cpu.identity_file(classes, TOP) is not ControlFile.IDLE:
        pytest.skip("this kernel has no cpu.idle on v1")
    for name in ("online", "batch"):
        classes.make(f"{TOP}/{name}", "cpu.shares")
    acting = CgroupWriter(classes, OriginalValuesFile(tmp_path))
    acting.apply(f"{TOP}/batch", GroupTarget(clusters=CLUSTERS, texts={ControlFile.IDLE: "1"}))
    hogs = []
    try:
        for name in ("online", "batch"):
            hog = subprocess.Popen(["taskset", "-c", str(LAST), "sh", "-c", "while :; do :; done"])
            hogs.append(hog)
            classes.move(hog.pid, f"{TOP}/{name}")
        time.sleep(1)
        used = [int(Path(f"/proc/{hog.pid}/stat").read_text().rpartition(")")[2].split()[11]) for hog in hogs]
        assert used[1] <= max(used[0] // 10, 3)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
