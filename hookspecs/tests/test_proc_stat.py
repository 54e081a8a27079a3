import os
import subprocess
from pathlib import Path

import pytest

from fallow_hookspecs import Process, parse_stat, read_stat

TAIL = b"S 1 7 7 0 -1 4194560 9 8 7 6 11 12 13 14 20 0 3 0 5000 4096 2 18446744073709551615\n"


@pytest.mark.parametrize("name", [b"java", b"a b", b"a) R 1 (b", b")", b"x\ny", b"", b"\xff\xfe"])
def test_a_name_may_hold_anything(name: bytes) -> None:
    stat = parse_stat(b"42 (" + name + b") " + TAIL)
    assert stat == (42, name, "S", 1, 7, 11, 12, 13, 14, 3, 5000)
    assert stat.process == Process(42, 5000)


@pytest.mark.parametrize(
    ("state", "threads", "ended"),
    [("Z", 1, True), ("X", 0, True), ("Z", 2, False), ("S", 1, False), ("R", 0, False)],
)
def test_a_process_has_ended_when_no_thread_of_it_runs(state: str, threads: int, ended: bool) -> None:
    line = f"42 (x) {state} 1 7 7 0 -1 0 9 8 7 6 11 12 13 14 20 0 {threads} 0 5000 4096 2\n"
    assert parse_stat(line.encode()).has_ended is ended


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", "expected a name in parentheses and more than 20 fields behind it, found ''"),
        (b"42 (x) S 1 7\n", "more than 20 fields behind it, found '42 (x) S 1 7\\n'"),
        ((b"42 (x) " + TAIL)[:-1], "more than 20 fields"),
        (b"42 x " + TAIL, "a name in parentheses"),
        (b"42 (x) " + TAIL.replace(b"5000", b"-5"), "expected whole numbers, found '42 1 7 11 12 13 14 3 -5'"),
        (b"me (x) " + TAIL, "expected whole numbers, found 'me 1"),
    ],
)
def test_what_no_kernel_writes_is_a_clear_error(raw: bytes, text: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the text follows
        parse_stat(raw)
    assert text in str(error.value)


def test_this_process_is_read_and_one_that_ended_is_not() -> None:
    stat = read_stat(os.getpid())
    assert stat is not None
    assert (stat.pid, stat.parent_pid, stat.session) == (os.getpid(), os.getppid(), os.getsid(0))
    assert stat.command == Path("/proc/self/comm").read_bytes().rstrip(b"\n")
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert read_stat(gone.pid) is None


def test_another_root_is_read(tmp_path: Path) -> None:
    (tmp_path / "42").mkdir()
    (tmp_path / "42" / "stat").write_bytes(b"42 (x) " + TAIL)
    stat = read_stat(42, tmp_path)
    assert stat is not None
    assert stat.start_ticks == 5000
