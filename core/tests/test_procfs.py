import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fallow_core.errors import SampleError
from fallow_core.node.memory_info import PAGE_BYTES, MemoryInfo
from fallow_core.node.procfs import (
    PROC_ROOT,
    CpuCounters,
    ProcessStat,
    read_cpu,
    read_memory,
    read_process,
    read_process_memory,
    read_processes,
)

if TYPE_CHECKING:
    from core.tests.conftest import FakeProc


def test_idle_iowait_steal_and_guest_time_are_not_added_to_use(fake_proc: "FakeProc") -> None:
    fake_proc.write("stat", "cpu  1 20 300 4000 50000 600000 7000000 80000000 900000000 0\ncpu0 1\nintr 5\n")
    assert read_cpu(fake_proc.root) == CpuCounters(busy_ticks=7600321, online_cpus=1, stolen_ticks=80000000)


def test_only_cpus_that_are_online_count(fake_proc: "FakeProc") -> None:
    fake_proc.write("stat", "cpu  1 1 1 1 1 1 1\ncpu0 1\ncpu3 1\ncpu11 1\nintr 5\n")
    assert read_cpu(fake_proc.root).online_cpus == 3


def test_memory_is_in_bytes(fake_proc: "FakeProc") -> None:
    fake_proc.host(total_kib=1000, available_kib=400)
    assert read_memory(fake_proc.root) == MemoryInfo(total_bytes=1_024_000, unused_bytes=409_600)


GIB = 1 << 20  # in KiB


@pytest.mark.parametrize(("in_lists", "unused"), [((1, 2), 7), ((99,), 16)])
def test_what_lies_free_in_the_lists_of_cpus_is_not_in_use(
    fake_proc: "FakeProc", in_lists: tuple[int, ...], unused: int
) -> None:
    fake_proc.host(total_kib=16 * GIB, available_kib=4 * GIB, free_kib=GIB)
    fake_proc.zones(managed_kib=16 * GIB, free_kib=GIB, listed_kib=[each * GIB for each in in_lists])
    assert read_memory(fake_proc.root).unused_bytes == unused << 30


@pytest.mark.parametrize(
    ("managed", "free"), [(64, 20), (16, 15), (24, 24), (0, 0)], ids=["a larger host", "other use", "free", "unknown"]
)
def test_the_lists_of_cpus_of_the_host_around_a_container_are_not_free_memory_of_the_container(
    fake_proc: "FakeProc", managed: int, free: int
) -> None:
    """lxcfs gives a container a meminfo of its own, and leaves it the zoneinfo of the host."""
    fake_proc.host(total_kib=16 * GIB, available_kib=2 * GIB, free_kib=GIB)
    fake_proc.zones(managed_kib=managed * GIB, free_kib=free * GIB, listed_kib=[6 * GIB, 6 * GIB])
    found = read_memory(fake_proc.root)
    assert found.total_bytes - found.unused_bytes == 14 << 30


def test_free_memory_behind_watermarks_is_no_use_and_nobody_can_use_it(fake_proc: "FakeProc") -> None:
    fake_proc.host(total_kib=64 * GIB, available_kib=0, free_kib=24 * GIB)
    assert read_memory(fake_proc.root) == MemoryInfo(
        total_bytes=64 << 30, unused_bytes=24 << 30, unusable_bytes=24 << 30
    )


def test_a_process_that_ends_behind_watermarks_frees_memory(fake_proc: "FakeProc") -> None:
    fake_proc.host(total_kib=64 * GIB, available_kib=0, free_kib=24 * GIB)
    before = read_memory(fake_proc.root).unused_bytes
    fake_proc.host(total_kib=64 * GIB, available_kib=0, free_kib=29 * GIB)
    assert read_memory(fake_proc.root).unused_bytes - before == 5 << 30


def test_memory_that_a_process_freed_is_available_at_once_on_this_host() -> None:
    size_bytes, found = 256 << 20, []
    for _ in range(5):  # other programs come and go
        held = [b"x" * size_bytes]
        before = read_memory(PROC_ROOT).unused_bytes
        held.clear()
        found.append(read_memory(PROC_ROOT).unused_bytes - before)
    assert sorted(found)[2] > size_bytes * 0.8


@pytest.mark.parametrize("name", ["a b", "a) S 7 (b", "))((", "", "two\nlines"])
def test_a_process_name_may_hold_anything(fake_proc: "FakeProc", name: str) -> None:
    fake_proc.process(42, parent=7, start=900, own=31, reaped=5, name=name)
    assert read_processes(fake_proc.root)[42] == ProcessStat(42, 7, 900, 31, 5)


def test_memory_is_told_apart_in_private_pages_and_those_that_others_may_map(fake_proc: "FakeProc") -> None:
    fake_proc.write("1/statm", "9000 1000 300 1 0 500 0\n")
    assert read_process_memory(fake_proc.root, 1) == (700 * PAGE_BYTES, 300 * PAGE_BYTES)


def test_a_process_that_ended_has_no_memory(fake_proc: "FakeProc") -> None:
    assert read_process_memory(fake_proc.root, 99) == (0, 0)


def test_a_process_that_ends_between_list_and_read_is_left_out(
    fake_proc: "FakeProc", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "listdir", lambda _: ["1", "42", "stat"])
    assert set(read_processes(fake_proc.root)) == {1}


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("stat", "", "found ''"),
        ("stat", "garbage\n", "found ''"),
        ("stat", "cpu  1 2 3\ncpu0 1\n", "found 'cpu 1 2 3"),
        ("stat", "cpu  1 2 3 4 5 6 7 8 9 10\n", "found 'cpu 1 2 3 4"),
        ("stat", "cpu  1 2 x 4 5 6 7\ncpu0 1\n", "found '1 2 x"),
        ("stat", "cpu  1 2 -3 4 5 6 7\ncpu0 1\n", "found '1 2 -3"),
        ("meminfo", "", "found ''"),
        ("meminfo", "MemTotal: 100 kB\n", "found 'MemTotal: 100 kB'"),
        ("meminfo", "MemTotal: 100 kB\nMemAvailable: ten kB\n", "found '100 ten 0'"),
        ("meminfo", "MemTotal: 100 kB\nMemAvailable: 101 kB\n", "found 101 and 0 of 100 kB"),
        ("meminfo", "MemTotal: 0 kB\nMemAvailable: 0 kB\n", "found 0 and 0 of 0 kB"),
        ("1/stat", "", "found ''"),
        ("1/stat", "1 (init", "found '1 (init'"),
        ("1/stat", "1 (init) S 0 1 1 0 -1 4194560 1 1 1 1 5 5 5 5 20 0 1 0 12", "found '1 (init) S"),
        ("1/stat", "1 (init) S 0 1 1 0 -1 4194560 1 1 1 1 5 5 5 -5 20 0 1 0 12 0 0\n", "found '1 0 1 5 5 5 -5 1 12'"),
        ("1/statm", "", "found ''"),
        ("1/statm", "1 2 3\n", "found '1 2 3"),
        ("1/statm", "1 2 ? 4 5 6 7\n", "found '1 2 ?'"),
    ],
)
def test_a_strange_file_is_named_with_what_was_found(
    fake_proc: "FakeProc", name: str, content: str, found: str
) -> None:
    fake_proc.write(name, content)
    with pytest.raises(SampleError) as caught:
        _read_all(fake_proc.root)
    assert str(caught.value).startswith(f"{fake_proc.root}/{name}: expected ")
    assert found in str(caught.value)


@pytest.mark.parametrize("name", ["stat", "meminfo"])
def test_a_file_that_cannot_be_read_is_named(fake_proc: "FakeProc", name: str) -> None:
    (fake_proc.root / name).unlink()
    with pytest.raises(SampleError, match=f"/{name}: cannot be read: No such file"):
        _read_all(fake_proc.root)


def test_a_directory_without_processes_is_not_a_proc_file_system(tmp_path: Path) -> None:
    with pytest.raises(SampleError, match="is it a mounted proc file system"):
        read_processes(tmp_path)


def test_the_kernel_of_this_host_is_understood() -> None:
    assert read_cpu(PROC_ROOT).busy_ticks > 0
    assert read_memory(PROC_ROOT).total_bytes > 1 << 20
    assert read_process_memory(PROC_ROOT, os.getpid()).private_bytes > 1 << 20
    assert read_processes(PROC_ROOT)[os.getpid()].parent_pid == os.getppid()


def _read_all(root: Path) -> None:
    read_cpu(root)
    read_memory(root)
    for pid in read_processes(root):
        read_process_memory(root, pid)


@pytest.mark.parametrize(
    ("state", "threads", "ended"), [("Z", 1, True), ("X", 0, True), ("Z", 2, False), ("S", 1, False), ("R", 3, False)]
)
def test_a_process_has_ended_when_no_thread_of_it_is_left(
    fake_proc: "FakeProc", state: str, threads: int, ended: bool
) -> None:
    fake_proc.process(7)
    file = fake_proc.root / "7" / "stat"
    file.write_text(file.read_text().replace(") S ", f") {state} ").replace(" 20 0 1 0 ", f" 20 0 {threads} 0 "))
    stat = read_process(fake_proc.root, 7)
    assert stat is not None
    assert stat.ended is ended


def test_the_kernel_of_this_host_tells_which_process_has_ended() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        stat = read_process(PROC_ROOT, pid)
        assert stat is not None
        assert stat.ended
    finally:
        os.waitpid(pid, 0)
