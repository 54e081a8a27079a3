from pathlib import Path

import pytest
from plugins.yarn.tests.proc_fakes import NOW_TICKS, YOUNG_TICKS, FakeProc

from fallow_hookspecs import Process
from fallow_yarn.nm import procfs
from fallow_yarn.nm.procfs import MOST_BYTES, TURNS, ProcessReader, Stat, read_all, read_command

OLD, YOUNG, CHILD = 700, 701, 702


class Host:
    """A /proc with an old process, a young one and an old child of it. `read`: those read since it was emptied."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.proc = FakeProc(root)
        self.proc.add(OLD, start=1000)
        self.proc.add(YOUNG, start=YOUNG_TICKS)
        self.proc.add(CHILD, parent=OLD, start=1001)
        self.reader = ProcessReader(root, lambda: NOW_TICKS)
        self.read: list[int] = []
        read_stat = procfs.read_stat

        def reading(proc_root: Path, pid: int) -> Stat | None:
            self.read.append(pid)
            return read_stat(proc_root, pid)

        monkeypatch.setattr(procfs, "read_stat", reading)
        self.reader.read_all()

    def search(self) -> dict[int, Stat]:
        self.read.clear()
        return self.reader.read_all()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


def test_an_old_process_is_read_once_in_some_searches_and_a_young_one_at_each(host: Host) -> None:
    read = [pid for _ in range(TURNS) for pid in (host.search(), host.read)[1]]
    assert (read.count(OLD), read.count(YOUNG)) == (1, TURNS)


def test_a_process_whose_parent_has_ended_is_read_at_once(host: Host) -> None:
    host.proc.end(OLD)
    host.proc.orphan(CHILD)
    assert host.search()[CHILD].parent_pid == 1


def test_an_ended_process_is_forgotten(host: Host) -> None:
    host.proc.end(OLD)
    assert OLD not in host.search()


def test_after_a_signal_all_are_read(host: Host) -> None:
    host.reader.read_all_again()
    host.search()
    assert {OLD, YOUNG, CHILD} <= set(host.read)


def test_a_pid_with_another_directory_is_another_process(host: Host) -> None:
    (host.proc.root / str(OLD)).rename(host.proc.root / "kept")  # so that its number is not given again
    host.proc.add(OLD, start=1002)
    assert host.search()[OLD].process == Process(OLD, 1002)
    assert host.search() == read_all(host.proc.root)


@pytest.mark.parametrize("more", [0, 1])
def test_a_command_line_that_is_too_long_counts_as_unreadable(tmp_path: Path, more: int) -> None:
    host = FakeProc(tmp_path)
    host.add(OLD, command=["x" * (MOST_BYTES - 1 + more)])
    assert len(read_command(tmp_path, OLD)[0]) == (0 if more else MOST_BYTES - 1)
