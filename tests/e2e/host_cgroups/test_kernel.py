"""This kernel takes and refuses what the fake of core's own tests takes and refuses; and changes on this kernel."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest
from core.tests.fake_cgroups import FakeCgroups
from tests.e2e.host_cgroups.stage import FILES, until
from tests.e2e.told import control_files, differences, of_writes, told

from fallow_core.agent.throttling.cgroup_plan import GroupTarget
from fallow_core.agent.throttling.cgroup_writer import CgroupWriter
from fallow_core.errors import CgroupError
from fallow_core.model.control_file import ControlFile
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import find
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.state.original_values import OriginalValuesFile

TOP = f"fallow-kernel-{os.getpid()}"
CLUSTERS = frozenset({"yarn/e2e"})
WRITES = [
    ("", "cpu.cfs_quota_us", "150000"),
    ("/c1", "cpu.cfs_quota_us", "150001"),
    ("/c1", "cpu.cfs_quota_us", "150000"),
    ("", "cpu.cfs_quota_us", "100000"),
    ("/c1/deep", "cpu.cfs_quota_us", "200000"),
    ("/c1", "cpu.cfs_quota_us", "50000"),
    ("", "cpu.cfs_quota_us", "100000"),
    ("/c1/deep", "cpu.cfs_quota_us", "999"),
    ("/c1/deep", "cpu.cfs_quota_us", "0"),
    ("/c1/deep", "cpu.cfs_quota_us", "1000"),
    ("", "cpu.cfs_quota_us", "-1"),
    ("/c1", "cpu.cfs_quota_us", "400000"),
    ("/c1", "cpu.cfs_quota_us", "-1"),
    ("", "cpu.shares", "1"),
    ("", "cpu.shares", "300000"),
    ("", "cpu.shares", "512"),
    ("", "cpu.stat", "1"),
    ("", "cpu.max", "1"),
    ("/none", "cpu.shares", "2"),
]


MEMORY_WRITES = [
    ("", "memory.limit_in_bytes", "67108864"),
    ("/c1", "memory.limit_in_bytes", "67108865"),
    ("/c1", "memory.limit_in_bytes", "134217728"),
    ("", "memory.limit_in_bytes", "8388608"),
    ("/c1", "memory.limit_in_bytes", "-1"),
    ("", "memory.limit_in_bytes", "9223372036854771712"),
    ("/c1", "memory.high", "max"),
    ("/none", "memory.limit_in_bytes", "-1"),
]


@pytest.fixture
def process() -> Iterator[int]:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        yield sleeper.pid
        sleeper.kill()


@pytest.fixture
def top(hierarchy: Hierarchy) -> Iterator[str]:
    hierarchy.make(TOP, "cpu.shares")
    yield TOP

    def gone() -> bool:
        for group in reversed([TOP, *hierarchy.below(TOP)]):
            with suppress(OSError):
                hierarchy.remove(group)
        return hierarchy.identity(TOP) is None

    until(gone, "the end of the test's groups")


def test_the_fake_of_the_unit_tests_answers_as_this_kernel(hierarchy: Hierarchy, top: str, process: int) -> None:
    fake = FakeCgroups(1)
    fake.add(top)
    fake.add("", process)
    by_fake = told(fake.hierarchy, top, process, WRITES, FILES)
    assert differences(by_fake, told(hierarchy, top, process, WRITES, FILES)) == {}


def test_the_fake_of_the_unit_tests_limits_memory_as_this_kernel(hierarchy: Hierarchy) -> None:
    try:
        memory = find("memory", Files())
    except CgroupError as error:
        pytest.skip(str(error))
    if memory.version != 1:
        pytest.skip("needs the memory controller on cgroup v1")
    fake = FakeCgroups(1, controllers=("cpu", "memory"))
    answers = []
    for one in (fake.hierarchy, memory):
        for group in (TOP, f"{TOP}/c1"):
            one.make(group, "memory.limit_in_bytes")
        answers.append(of_writes(one, TOP, MEMORY_WRITES))
        for group in (f"{TOP}/c1", TOP):
            one.remove(group)
    assert differences(*answers) == {}


def test_groups_with_limits_of_their_own_shrink_and_grow_without_a_refusal_and_go_back(
    hierarchy: Hierarchy, top: str, tmp_path: Path
) -> None:
    for group, quota in (("c1", "200000"), ("c1/deep", "150000"), ("c2", "-1"), ("c2/deep", "120000")):
        hierarchy.make(f"{top}/{group}", "cpu.shares")
        hierarchy.write(f"{top}/{group}", "cpu.cfs_quota_us", quota)
    before = control_files(hierarchy, top, FILES)
    for milli in (1700, 300, 10, 1400, 700, 3000):
        acting = CgroupWriter(hierarchy, OriginalValuesFile(tmp_path))  # a new process each time, as after a kill
        acting.apply(top, GroupTarget(clusters=CLUSTERS, limit=Fraction(milli, 1000), texts={ControlFile.WEIGHT: "2"}))
        assert acting.problems == {}
        assert hierarchy.read(top, "cpu.cfs_quota_us") == str(milli * 100)
        assert hierarchy.read(f"{top}/c1/deep", "cpu.cfs_quota_us") == str(min(150_000, milli * 100))
    acting = CgroupWriter(hierarchy, OriginalValuesFile(tmp_path))
    acting.release(top)
    assert (acting.problems, acting.changed_groups, control_files(hierarchy, top, FILES)) == ({}, {}, before)


def test_a_process_and_what_it_starts_meanwhile_go_back_to_where_it_was(
    hierarchy: Hierarchy, top: str, tmp_path: Path
) -> None:
    forks = "while :; do sleep 0.05; done"
    with subprocess.Popen(["sh", "-c", forks]) as shell:
        try:
            hierarchy.move(shell.pid, top)
            acting = CgroupWriter(hierarchy, OriginalValuesFile(tmp_path))
            acting.make(f"{top}/own", top, CLUSTERS)
            acting.move_into_child(f"{top}/own", "task", {ControlFile.WEIGHT: "512"}, [shell.pid])
            assert hierarchy.read(f"{top}/own/task", "cpu.shares") == "512"
            until(lambda: len(hierarchy.processes(f"{top}/own/task")) > 1, "a child in the group")

            def released() -> bool:
                acting.release(f"{top}/own")
                return not acting.changed_groups

            until(released, "the group to be empty")
            assert hierarchy.group_of(shell.pid) == top
            assert list(hierarchy.below(top)) == []
        finally:
            shell.kill()
