"""Shared memory counts, once, where it is mapped."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fallow_core.node.shared_memory import CHANGED_SHARE, LEAST_BYTES, TURNS, SharedMemory
from fallow_hookspecs import Process

MIB = 1 << 20
ONE = Process(7, 1)
Put = Callable[..., None]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Writes the files of process 7: its resident shared memory, and its share of it if the kernel reports that."""
    (tmp_path / "7").mkdir()

    def write(resident_mib: int, own_mib: int | None = None) -> None:
        (tmp_path / "7" / "status").write_text(f"Name:\tx\nRssFile:\t1 kB\nRssShmem:\t{resident_mib << 10} kB\n")
        own = "" if own_mib is None else f"Pss_Shmem:\t{own_mib << 10} kB\n"
        (tmp_path / "7" / "smaps_rollup").write_text(f"Rss:   1 kB\n{own}SwapPss:   0 kB\n")

    return write


@pytest.fixture
def memory(tmp_path: Path) -> SharedMemory:
    return SharedMemory(tmp_path)


def test_a_process_has_its_share_of_what_several_map(memory: SharedMemory, put: Put) -> None:
    put(900, 300)
    assert memory.bytes_of(ONE, 920 * MIB) == 300 * MIB


def test_without_a_share_in_this_kernel_the_whole_counts(memory: SharedMemory, put: Put) -> None:
    put(900)
    assert memory.bytes_of(ONE, 920 * MIB) == 900 * MIB


def test_pages_of_files_do_not_count(memory: SharedMemory, put: Put) -> None:
    put(0, 5)
    assert memory.bytes_of(ONE, 920 * MIB) == 0


def test_little_is_not_examined_and_an_ended_process_has_nothing(memory: SharedMemory) -> None:
    assert memory.bytes_of(ONE, LEAST_BYTES - 1) == memory.bytes_of(Process(8, 1), 900 * MIB) == 0


def test_it_is_examined_again_when_it_has_changed_much_or_after_some_readings(memory: SharedMemory, put: Put) -> None:
    put(800, 800)
    assert memory.bytes_of(ONE, 800 * MIB) == 800 * MIB
    put(810, 810)
    assert {memory.bytes_of(ONE, 810 * MIB) for _ in range(TURNS - 1)} == {800 * MIB}
    assert memory.bytes_of(ONE, 810 * MIB) == 810 * MIB
    more = 810 + 810 // (CHANGED_SHARE - 1) + 1
    put(more, more)
    assert memory.bytes_of(ONE, more * MIB) == more * MIB


def test_another_process_with_the_same_pid_is_examined_anew(memory: SharedMemory, put: Put) -> None:
    put(800, 800)
    memory.bytes_of(ONE, 800 * MIB)
    put(100, 100)
    assert memory.bytes_of(Process(7, 2), 800 * MIB) == 100 * MIB
    memory.forget_except({Process(7, 2)})
    assert memory.bytes_of(ONE, 800 * MIB) == 100 * MIB
