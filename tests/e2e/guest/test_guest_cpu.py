"""What batch groups get by this kernel when their CPU values are changed, and that everything goes back."""

import os
import signal
from fractions import Fraction
from pathlib import Path

from tests.e2e.guest.conftest import Start, until
from tests.e2e.told import control_files

from fallow_core.agent.throttling.cgroup_plan import GroupTarget
from fallow_core.agent.throttling.cgroup_writer import CgroupWriter
from fallow_core.model.control_file import ControlFile
from fallow_core.node.cgroups import cpu
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.state.original_values import OriginalValuesFile

CLUSTERS = frozenset({"yarn/e2e"})
NAMES = ("cpu.max", "cpu.weight", "cpu.idle")
MEASURED_USEC = 1_000_000


def hogs(hierarchy: Hierarchy, start: Start, top: str, *, batch_on: int) -> tuple[str, str]:
    """A group of batch with a process on one CPU, and another group with one on CPU 0."""
    for group, on in (("batch", batch_on), ("online", 0)):
        hierarchy.make(f"{top}/{group}", "cpu.weight")
        start(f"{top}/{group}", "taskset", "-c", str(on), "sh", "-c", "echo; while :; do :; done", says=True)
    return f"{top}/batch", f"{top}/online"


def used_usec(hierarchy: Hierarchy, group: str) -> int:
    return int(hierarchy.read(group, "cpu.stat").split()[1])


def ratio(hierarchy: Hierarchy, batch: str, online: str) -> float:
    """The CPU that batch uses while online uses a second of it, in parts of that."""
    before = [used_usec(hierarchy, group) for group in (batch, online)]
    until(lambda: used_usec(hierarchy, online) - before[1] >= MEASURED_USEC, "a second of CPU")
    after = [used_usec(hierarchy, group) for group in (batch, online)]
    return (after[0] - before[0]) / (after[1] - before[1])


def test_a_limit_is_what_batch_gets(hierarchy: Hierarchy, top: str, start: Start, tmp_path: Path) -> None:
    batch, online = hogs(hierarchy, start, top, batch_on=1)
    assert ratio(hierarchy, batch, online) > 0.5
    acting = CgroupWriter(hierarchy, OriginalValuesFile(tmp_path))
    acting.apply(batch, GroupTarget(clusters=CLUSTERS, limit=Fraction(1, 5)))
    assert 0.1 < ratio(hierarchy, batch, online) < 0.4
    assert (cpu.throttled_seconds(hierarchy, batch) or 0) > 0
    assert acting.problems == {}


def test_with_the_smallest_weight_batch_gets_what_is_left(
    hierarchy: Hierarchy, top: str, start: Start, tmp_path: Path
) -> None:
    batch, online = hogs(hierarchy, start, top, batch_on=0)
    assert ratio(hierarchy, batch, online) > 0.5
    acting = CgroupWriter(hierarchy, OriginalValuesFile(tmp_path))
    acting.apply(batch, GroupTarget(clusters=CLUSTERS, texts={ControlFile.WEIGHT: cpu.LEAST_WEIGHT[2]}))
    assert ratio(hierarchy, batch, online) < 0.2
    acting.release(batch)
    until(lambda: ratio(hierarchy, batch, online) > 0.5, "batch to get its part again")


def test_an_idle_group_gets_what_is_left_and_its_weight_comes_back_with_the_rest(
    hierarchy: Hierarchy, top: str, start: Start, tmp_path: Path
) -> None:
    batch, online = hogs(hierarchy, start, top, batch_on=0)
    hierarchy.write(batch, "cpu.weight", "300")
    before = control_files(hierarchy, top, NAMES)
    acting = CgroupWriter(hierarchy, OriginalValuesFile(tmp_path))
    wanted = GroupTarget(clusters=CLUSTERS, texts={ControlFile.WEIGHT: "1", ControlFile.IDLE: "1"})
    for _ in range(2):
        acting.apply(batch, wanted)
        assert (acting.problems, hierarchy.read(batch, "cpu.idle")) == ({}, "1")
    assert ratio(hierarchy, batch, online) < 0.2
    acting.release(batch)
    assert (acting.problems, control_files(hierarchy, top, NAMES)) == ({}, before)


def test_what_others_change_meanwhile_is_noticed_and_put_right(hierarchy: Hierarchy, top: str, tmp_path: Path) -> None:
    acting = CgroupWriter(hierarchy, OriginalValuesFile(tmp_path))
    wanted = GroupTarget(clusters=CLUSTERS, limit=Fraction(1, 2), texts={ControlFile.WEIGHT: "1"})
    acting.apply(top, wanted)
    hierarchy.write(top, "cpu.max", "max")
    hierarchy.write(top, "cpu.weight", "100")
    acting.apply(top, wanted)
    assert acting.resets == 2
    assert control_files(hierarchy, top, NAMES[:2]) == {f"{top}/cpu.max": "50000 100000", f"{top}/cpu.weight": "1"}


def throttle_and_die(hierarchy: Hierarchy, top: str, pid: int, folder: Path) -> None:
    """In a process of its own, which ends as by kill -9. It is a fork: to start Python anew takes long here."""
    child = os.fork()
    if child:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        return
    try:
        acting = CgroupWriter(hierarchy, OriginalValuesFile(folder))
        acting.apply(top, GroupTarget(clusters=CLUSTERS, limit=Fraction(1, 2), texts={ControlFile.WEIGHT: "1"}))
        acting.make("own", "", CLUSTERS)
        acting.move_into_child("own", "task", {ControlFile.WEIGHT: "50"}, [pid])
        if not acting.problems:
            os.kill(os.getpid(), signal.SIGKILL)
    finally:
        os._exit(1)


def test_after_kill_9_another_process_puts_everything_back(
    hierarchy: Hierarchy, top: str, start: Start, tmp_path: Path
) -> None:
    """Also what a process that was moved has started since then."""
    hierarchy.make(f"{top}/c1", "cpu.weight")
    hierarchy.write(f"{top}/c1", "cpu.max", "70000 50000")
    shell = start("", "sh", "-c", "while :; do sleep 0.1; done")
    before = control_files(hierarchy, "", NAMES)
    throttle_and_die(hierarchy, top, shell, tmp_path)
    assert control_files(hierarchy, "", NAMES) != before
    until(lambda: len(hierarchy.processes("own/task")) > 1, "a child in the group")
    acting = CgroupWriter(hierarchy, OriginalValuesFile(tmp_path))

    def restored() -> bool:
        for group in ("own", top):
            acting.release(group)
        return not acting.changed_groups

    until(restored, "everything to be put back")
    assert (hierarchy.group_of(shell), control_files(hierarchy, "", NAMES)) == ("", before)


def test_batch_is_kept_on_some_cpus_and_may_run_on_all_when_it_is_put_back(
    hierarchy: Hierarchy, top: str, start: Start, tmp_path: Path
) -> None:
    batch = f"{top}/batch"
    hierarchy.make(batch, "cpu.weight")
    pid = start(batch, "sleep", "600")
    before = control_files(hierarchy, batch, NAMES)
    acting = CgroupWriter(hierarchy, OriginalValuesFile(tmp_path))
    wanted = GroupTarget(clusters=CLUSTERS, cpus=frozenset({1}), limit=Fraction(1, 2), texts={ControlFile.IDLE: "1"})
    acting.apply(batch, wanted)
    assert (acting.problems, os.sched_getaffinity(pid)) == ({}, {1})
    acting.release(batch)
    assert (acting.problems, acting.changed_groups, os.sched_getaffinity(pid)) == ({}, {}, {0, 1})
    assert control_files(hierarchy, batch, NAMES) == before
