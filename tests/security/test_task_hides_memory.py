"""Memory that a task shares, or maps from no file of a disk, is the task's."""

import pytest
from tests.security.conftest import Attack

from fallow_core.node.process_files import ProcessFiles
from fallow_core.node.procfs import PROC_ROOT

MIB = 1 << 20
SIZE_MIB = 96


def memory_of(attack: Attack, kind: str, processes: int) -> int:
    """What Fallow measures of all processes of a program that uses `SIZE_MIB` of this kind of memory."""
    program = attack("shared_memory", kind, str(SIZE_MIB), str(processes))
    assert program.stdout is not None
    pids = list(map(int, program.stdout.readline().split()))
    assert len(pids) == processes
    files = ProcessFiles(PROC_ROOT)
    stats = files.stats()
    used = sum(files.memory_bytes(stats[pid].process) for pid in pids)
    files.close()
    return used


@pytest.mark.parametrize("kind", ["anonymous", "memfd", "tmpfs"])
def test_shared_memory_of_a_task_counts(attack: Attack, kind: str) -> None:
    assert memory_of(attack, kind, 1) >= SIZE_MIB * MIB


@pytest.mark.parametrize("kind", ["anonymous", "memfd", "tmpfs"])
def test_memory_that_several_processes_of_a_task_map_counts_once(attack: Attack, kind: str) -> None:
    used = memory_of(attack, kind, 3)
    assert SIZE_MIB * MIB <= used < 2 * SIZE_MIB * MIB
