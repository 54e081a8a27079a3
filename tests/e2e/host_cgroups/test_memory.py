"""Memory of a group on this host's kernel: what is cold is pushed out of it, nobody ends, and no limit stays."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.host_cgroups.stage import until

from fallow_core.agent.throttling.cgroup_plan import GroupTarget
from fallow_core.agent.throttling.cgroup_writer import CgroupWriter
from fallow_core.errors import CgroupError
from fallow_core.model.control_file import ControlFile
from fallow_core.node.cgroups import memory
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import find
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.qos.memory_reclaim import GroupMemory
from fallow_core.state.original_values import OriginalValuesFile

TOP = f"fallow-memory-{os.getpid()}"
MIB = 1 << 20
CLUSTERS = frozenset({"yarn/e2e"})
FILLS = """
import os, sys, time
open(sys.argv[1], "w").write(str(os.getpid()))
kept = b"x" * (24 << 20)
with open(sys.argv[2], "wb") as file:
    file.write(b"x" * (96 << 20)); file.flush(); os.fsync(file.fileno())
print(len(kept), flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def hierarchy() -> Hierarchy:
    """The memory controller of this host."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    try:
        found = find("memory", Files())
    except CgroupError as error:
        pytest.skip(str(error))
    if found.version != 1 or not os.access(found.path("", "cgroup.procs"), os.W_OK):
        pytest.skip("needs the memory controller on cgroup v1, where it can be changed")
    return found


@pytest.fixture
def filled(hierarchy: Hierarchy, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A group with 96 MiB of file pages and a process that keeps 24 MiB."""
    hierarchy.make(TOP, "memory.limit_in_bytes")
    arguments = [sys.executable, "-c", FILLS, hierarchy.path(TOP, "cgroup.procs"), str(tmp_path / "pages")]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()

    def gone() -> bool:
        try:
            hierarchy.remove(TOP)
        except OSError:
            return hierarchy.identity(TOP) is None
        return True

    until(gone, "the end of the test's group")


def cold(hierarchy: Hierarchy) -> GroupMemory:
    return memory.cold_memory(hierarchy, TOP, memory.swap_free_bytes(hierarchy))


def test_what_is_cold_goes_as_asked_and_the_limit_is_as_before(
    hierarchy: Hierarchy, filled: subprocess.Popen[bytes]
) -> None:
    lowered = memory.lowered_limit(hierarchy, TOP)
    assert lowered is ControlFile.MEMORY
    before, used = cold(hierarchy), memory.used_bytes(hierarchy, TOP)
    assert before.droppable > 40 * MIB
    memory.reclaim(hierarchy, TOP, 32 * MIB, lowered)
    assert 31 * MIB <= used - memory.used_bytes(hierarchy, TOP) <= 48 * MIB
    assert hierarchy.read(TOP, "memory.limit_in_bytes") == memory.NO_LIMIT[1]
    assert filled.poll() is None


def test_more_than_there_is_pushes_out_what_there_is_and_ends_nobody(
    hierarchy: Hierarchy, filled: subprocess.Popen[bytes]
) -> None:
    memory.reclaim(hierarchy, TOP, 110 * MIB, ControlFile.MEMORY)
    assert memory.used_bytes(hierarchy, TOP) >= 20 * MIB
    assert cold(hierarchy).droppable < 8 * MIB
    assert hierarchy.read(TOP, "memory.limit_in_bytes") == memory.NO_LIMIT[1]
    assert filled.poll() is None


def test_whoever_allocates_meanwhile_is_not_ended(hierarchy: Hierarchy, filled: subprocess.Popen[bytes]) -> None:
    code = "import sys; open(sys.argv[1], 'w').write('0')\nwhile True: kept = bytearray(8 << 20)"
    with subprocess.Popen([sys.executable, "-c", code, hierarchy.path(TOP, "cgroup.procs")]) as greedy:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            now = cold(hierarchy)
            memory.reclaim(hierarchy, TOP, min(now.cold, 4 * MIB), ControlFile.MEMORY)
        assert greedy.poll() is None
        greedy.kill()
    assert "oom_kill 0" in hierarchy.read(TOP, "memory.oom_control")
    assert filled.poll() is None


def test_a_limit_that_a_killed_process_left_is_put_back_by_the_next(
    hierarchy: Hierarchy, filled: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    acting = CgroupWriter(hierarchy, OriginalValuesFile(tmp_path, controller="memory"))
    assert acting.save_original(TOP, ControlFile.MEMORY, CLUSTERS)
    hierarchy.write(TOP, "memory.limit_in_bytes", str(200 * MIB))
    later = CgroupWriter(hierarchy, OriginalValuesFile(tmp_path, controller="memory"))
    later.release(TOP)
    assert (later.changed_groups, later.problems) == ({}, {})
    assert hierarchy.read(TOP, "memory.limit_in_bytes") == memory.NO_LIMIT[1]


def test_a_memory_limit_comes_into_force_only_above_what_is_used(
    hierarchy: Hierarchy, filled: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    acting = CgroupWriter(hierarchy, OriginalValuesFile(tmp_path, controller="memory"))
    acting.apply(TOP, GroupTarget(clusters=CLUSTERS, texts={ControlFile.MEMORY: memory.limit_text(16 * MIB)}))
    assert "it uses more memory than it may" in acting.problems[TOP]
    acting.apply(TOP, GroupTarget(clusters=CLUSTERS, texts={ControlFile.MEMORY: memory.limit_text(300 * MIB + 5)}))
    assert (acting.problems, hierarchy.read(TOP, "memory.limit_in_bytes")) == ({}, str(300 * MIB))
    acting.release(TOP)
    assert hierarchy.read(TOP, "memory.limit_in_bytes") == memory.NO_LIMIT[1]
