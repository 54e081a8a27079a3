"""Memory of batch groups on this kernel: pushed out, held at a threshold, and what is told of it."""

import select
import sys
from pathlib import Path

import pytest
from tests.e2e.guest.conftest import Start, until

from fallow_core.agent.throttling.cgroup_plan import GroupTarget
from fallow_core.agent.throttling.cgroup_writer import CgroupWriter
from fallow_core.model.control_file import ControlFile
from fallow_core.node.cgroups import memory
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.state.original_values import OriginalValuesFile

MIB = 1 << 20
CLUSTERS = frozenset({"yarn/e2e"})


def holds(mebibytes: int) -> tuple[str, ...]:
    """A program that takes so much memory, says so, and waits."""
    text = f"import time; held = b'x' * ({mebibytes} << 20); print('held', flush=True); time.sleep(600)"
    return (sys.executable, "-ISc", text)


def events(hierarchy: Hierarchy, group: str) -> dict[str, int]:
    pairs = [line.split() for line in hierarchy.read(group, "memory.events").splitlines()]
    return {name: int(count) for name, count in pairs}


@pytest.mark.parametrize("lowered", [None, ControlFile.HIGH], ids=["memory.reclaim", "memory.high"])
def test_cold_memory_is_pushed_out_and_its_limit_is_as_before(
    hierarchy: Hierarchy, top: str, start: Start, lowered: ControlFile | None
) -> None:
    batch = f"{top}/batch"
    hierarchy.make(batch, "cpu.weight")
    start(batch, *holds(48), says=True)
    assert memory.lowered_limit(hierarchy, batch) is None
    cold = memory.cold_memory(hierarchy, batch, memory.swap_free_bytes(hierarchy))
    assert cold.swappable > 40 * MIB
    before = memory.used_bytes(hierarchy, batch)
    assert before > 48 * MIB
    memory.reclaim(hierarchy, batch, 24 * MIB, lowered)
    assert memory.used_bytes(hierarchy, batch) < before - 12 * MIB
    assert hierarchy.read(batch, "memory.high") == "max"


def test_a_limit_comes_into_force_only_above_what_is_used_and_goes_again(
    hierarchy: Hierarchy, top: str, start: Start, tmp_path: Path
) -> None:
    batch = f"{top}/batch"
    hierarchy.make(batch, "cpu.weight")
    start(batch, *holds(48), says=True)
    acting = CgroupWriter(hierarchy, OriginalValuesFile(tmp_path))
    for mebibytes, found in ((16, "max"), (128, str(128 * MIB)), (16, str(128 * MIB))):
        acting.apply(
            batch, GroupTarget(clusters=CLUSTERS, texts={ControlFile.MEMORY: memory.limit_text(mebibytes * MIB)})
        )
        assert hierarchy.read(batch, "memory.max") == found
    acting.release(batch)
    assert (acting.changed_groups, hierarchy.read(batch, "memory.max")) == ({}, "max")
    assert events(hierarchy, batch)["oom_kill"] == 0


def test_a_group_that_reaches_its_mark_is_held_there_and_wakes_who_waits_for_it(
    hierarchy: Hierarchy, top: str, start: Start
) -> None:
    batch = f"{top}/batch"
    hierarchy.make(batch, "cpu.weight")
    hierarchy.write(batch, "memory.high", str(24 * MIB))
    with Path(hierarchy.path(batch, "memory.events")).open() as file:
        file.read()
        poll = select.poll()
        poll.register(file, select.POLLPRI)
        start(batch, *holds(48))
        assert poll.poll(40_000)
    until(lambda: events(hierarchy, batch)["high"] > 0, "the threshold to be counted")
    assert memory.used_bytes(hierarchy, batch) < 36 * MIB


def test_a_group_that_is_out_of_memory_ends_as_a_whole(hierarchy: Hierarchy, top: str, start: Start) -> None:
    batch = f"{top}/batch"
    hierarchy.make(batch, "cpu.weight")
    for name, text in (("memory.oom.group", "1"), ("memory.max", str(32 * MIB)), ("memory.swap.max", "0")):
        hierarchy.write(batch, name, text)
    start(batch, "sleep", "600")
    start(batch, *holds(64))
    until(lambda: "populated 0" in hierarchy.read(batch, "cgroup.events"), "the end of both")
    assert events(hierarchy, batch)["oom_group_kill"] == 1
