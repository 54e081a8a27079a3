"""`fallow demo` as a user runs it: in a terminal of 80×24, without one, and interrupted."""

import os
import pty
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from threading import Thread

import pytest

COMMAND = [str(Path(sys.executable).parent / "fallow"), "demo"]
pytestmark = pytest.mark.timeout(180)


class Terminal:
    """A pseudo terminal of 80×24, and all that was written to it."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        ioctl(self.slave, TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.seen = b""
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            try:
                self.seen += os.read(self.master, 65536)
            except OSError:
                return

    def close(self) -> None:
        os.close(self.slave)
        self._thread.join(5)
        os.close(self.master)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    yield terminal
    terminal.close()


@contextmanager
def demo(tmp_path: Path, terminal: Terminal) -> Iterator[subprocess.Popen[bytes]]:
    """It runs in the terminal, with `tmp_path` for its files; in the end nothing of it may be left there."""
    environment = {**os.environ, "TMPDIR": str(tmp_path), "TERM": "xterm-256color"}
    slave = terminal.slave
    with subprocess.Popen(
        COMMAND, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()
    until(lambda: left(tmp_path) == [], "the end of its processes")


def left(tmp_path: Path) -> list[str]:
    """The processes that have to do with a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(tmp_path) in command:
            found.append(command)
    return found


def until(test: Callable[[], bool], what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.1)


def words(terminal: Terminal) -> str:
    return re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", terminal.seen).decode(errors="replace")


def test_without_a_terminal_it_prints_what_happens_and_what_was_seen(tmp_path: Path) -> None:
    done = subprocess.run(
        COMMAND,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Online services alone" in done.stdout
    finished, lost = re.findall(r"Tasks +(\d+) finished, (\d+) lost", done.stdout)[0]
    assert int(finished) > 0, done.stdout
    assert int(lost) < int(finished)
    without, used = re.findall(r"CPU in use +(\d+) % without Fallow, (\d+) % with it", done.stdout)[0]
    assert int(used) > int(without)
    assert re.search(r"Load step to RM +(\d+\.\d s|none was told)", done.stdout)
    assert list(tmp_path.iterdir()) == []
    assert left(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_while_it_is_shown_it_leaves_nothing_behind(
    tmp_path: Path, terminal: Terminal, number: signal.Signals
) -> None:
    with demo(tmp_path, terminal) as process:
        until(lambda: "BATCH TASKS" in words(terminal) and "####" in words(terminal), "the tasks")
        assert len(left(tmp_path)) > 3
        process.send_signal(number)
        assert process.wait(40) in (0, 130)
    assert list(tmp_path.iterdir()) == []
    assert terminal.seen.count(b"\x1b[?1049h") == terminal.seen.count(b"\x1b[?1049l") == 1
    assert "Traceback" not in words(terminal)


def test_interrupted_before_fallow_lends_it_leaves_nothing_behind(tmp_path: Path, terminal: Terminal) -> None:
    with demo(tmp_path, terminal) as process:
        until(lambda: "CPU in use" in words(terminal), "the first phase")
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 130
    assert list(tmp_path.iterdir()) == []
    assert "Traceback" not in words(terminal)


def test_killed_it_takes_all_its_processes_with_it(tmp_path: Path, terminal: Terminal) -> None:
    with demo(tmp_path, terminal) as process:
        until(lambda: "####" in words(terminal), "the tasks")
        process.kill()
        process.wait(10)
        until(lambda: left(tmp_path) == [], "the end of its processes")


def test_a_plugin_that_has_no_demo_is_said_to_have_none() -> None:
    done = subprocess.run([*COMMAND, "--plugin", "slurm"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr == "no installed plugin 'slurm' has a demo; there are: yarn\n"
