import os
import resource
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest
from core.tests.conftest import FakeProc
from core.tests.fake_agent import child, identity

from fallow_core.node import memory_info, process_files, procfs
from fallow_core.node.process_files import ProcessFiles
from fallow_core.node.procfs import PROC_ROOT
from fallow_hookspecs import Process


@pytest.fixture
def files() -> Iterator[ProcessFiles]:
    files = ProcessFiles(PROC_ROOT)
    yield files
    files.close()


@pytest.fixture
def process() -> "Iterator[Popen[bytes]]":
    with child() as process:
        yield process


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - as the kernel lists it


def test_kept_files_say_what_fresh_ones_say(files: ProcessFiles, process: "Popen[bytes]") -> None:
    who = identity(process)
    files.keep(frozenset({who}))
    for _ in range(2):
        assert files.stats()[who.pid].process == who
        assert files.memory_bytes(who) > 0
        assert files.memory_bytes(who) == procfs.read_process_memory(PROC_ROOT, who.pid).private_bytes


def test_a_process_that_has_ended_is_left_out_and_its_files_closed(files: ProcessFiles) -> None:
    before = descriptors()
    with child() as process:
        who = identity(process)
        files.keep(frozenset({who}))
        files.stats()
        files.memory_bytes(who)
        assert descriptors() == before + 3  # and the pipe of the child
    assert who.pid not in files.stats()
    assert files.memory_bytes(who) == 0
    files.keep(frozenset())
    assert descriptors() == before


def test_files_of_what_is_no_longer_wanted_are_closed(files: ProcessFiles, process: "Popen[bytes]") -> None:
    before = descriptors()
    files.keep(frozenset({identity(process)}))
    files.stats()
    assert descriptors() == before + 1
    files.keep(frozenset())
    assert descriptors() == before


def test_a_pid_that_is_anothers_now_is_read_anew(tmp_path: Path) -> None:
    files = ProcessFiles(tmp_path)
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text(stat(7, 1))
    files.keep(frozenset({Process(7, 1)}))
    assert files.stats()[7].start_ticks == 1
    (tmp_path / "7" / "stat").unlink()
    (tmp_path / "7" / "stat").write_text(stat(7, 2))
    files.keep(frozenset({Process(7, 2)}))
    assert files.stats()[7].start_ticks == 2
    files.close()


def test_memory_is_read_again_only_of_a_process_that_has_run_or_touched_pages(fake_proc: FakeProc) -> None:
    files = ProcessFiles(fake_proc.root)

    def pages(in_stat: int, in_statm: int, own: int) -> int:
        fake_proc.process(7, private_pages=in_stat, own=own)
        fake_proc.write("7/statm", f"9000 {300 + in_statm} 300 1 0 500 0\n")
        return files.memory_bytes(files.stats()[7].process) // memory_info.PAGE_BYTES

    assert pages(5, 5, own=10) == 5
    assert pages(5, 99, own=10) == 5  # which no kernel shows: nothing has run
    assert pages(6, 6, own=10) == 6
    assert pages(6, 8, own=11) == 8
    assert files.memory_bytes(Process(7, 999)) == 0
    files.close()


def test_without_descriptors_to_spare_nothing_is_kept_and_all_is_read(
    files: ProcessFiles, process: "Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    before = descriptors()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (process_files.SPARE_DESCRIPTORS, 4096))
    files.keep(frozenset({identity(process)}))
    assert process.pid in files.stats()
    assert descriptors() == before


def test_the_limit_of_descriptors_is_raised_as_far_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: given.append(limits))
    process_files.raise_limit()
    assert given == [(4096, 4096)]


def stat(pid: int, start: int) -> str:
    return f"{pid} (x) S 1 {' '.join('0' * 17)} {start} 0 0\n".replace("  ", " ")
