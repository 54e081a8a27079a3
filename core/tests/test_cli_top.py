import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from core.tests.live_values import cluster, decision, explanation, node, row, status, task

from fallow_core.api.control_socket import ControlServer, Peer
from fallow_core.cli import main as cli
from fallow_core.cli.live.screen import Extra
from fallow_core.cli.live.view import LiveView
from fallow_core.cli.top import source_of
from fallow_core.errors import ControlError


class Served:
    """A control socket whose Fallow says what a test wants, and can be stopped and started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.status = status(node("worker-1"), clusters=(cluster("yarn/etl", row("worker-1")),))
        self.tasks = [task("container_1"), task("container_2", user="bob")]
        self.hangs = threading.Event()
        self.hangs.set()
        self._server: ControlServer | None = None
        (folder / "fallow.yaml").write_text("apiVersion: fallow/v1\nkind: Fallow\ncontrolSocket: control\n")
        self.start()

    def start(self) -> None:
        self._server = ControlServer(self.folder / "control", None, self.answer)

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        self._server = None

    def answer(self, _peer: Peer, question: dict[str, Any]) -> dict[str, Any]:
        self.hangs.wait(20)
        match question["request"]:
            case "status":
                return self.status
            case "tasks":
                return {
                    "node": "n1",
                    "tasks": self.tasks,
                    "incomplete": {},
                    "terminations_error": "",
                    "terminations_lost": "",
                }
            case _:
                return explanation(question["node"], "yarn/etl", decisions=[decision("container_9")])


@pytest.fixture
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("f"))
    yield served
    served.hangs.set()
    served.stop()


class Terminal:
    """`fallow top` on a terminal of 80 × 24."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.ours, self.theirs = pty.openpty()
        self.resize(80, 24)
        self.before = termios.tcgetattr(self.theirs)
        code = "import sys; from fallow_core.cli.main import main; sys.exit(main(sys.argv[1:]))"
        command = [sys.executable, "-c", code, "top", "-c", str(folder), "--interval", "100ms", *arguments]
        environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
        environment |= {"TERM": "xterm", "PYTHONUTF8": "1"}
        stream = self.theirs
        self.process = subprocess.Popen(command, stdin=stream, stdout=stream, stderr=stream, env=environment)
        self.written = ""

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def see(self, wanted: str, seconds: float = 20) -> str:
        """Wait until a drawing from now on has this in it; the drawing, without colours."""
        self.written = ""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            comes = self._read(0.1)
            drawings = self.written.split("\x1b[H")[1:]
            for drawing in drawings[:-1] if comes else drawings:  # the last one may not have come in full
                if wanted in plain(drawing):
                    return plain(drawing)
        raise AssertionError(f"never seen: {wanted!r}; last: {self.written[-3000:]!r}")

    def _read(self, seconds: float) -> bool:
        """Read what comes; whether something did."""
        if not select.select([self.ours], [], [], seconds)[0]:
            return False
        self.written += os.read(self.ours, 65536).decode()
        return True

    def ends(self) -> int:
        deadline = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read(0.05)
        self._read(0.05)
        return self.process.wait(1)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


Open = Callable[..., Terminal]


@pytest.fixture
def terminal(served: Served) -> Iterator[Open]:
    opened: list[Terminal] = []

    def open_one(*arguments: str) -> Terminal:
        opened.append(Terminal(served.folder, *arguments))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


# Without a terminal


def test_without_a_terminal_it_prints_lines_until_its_time_is_over(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["top", "-c", str(served.folder), "--for", "500ms", "--interval", "100ms"]) == 0
    out, err = capsys.readouterr()
    lines = [re.sub(r"^\d\d:\d\d:\d\d  ", "", line) for line in out.splitlines()]
    assert err == ""
    assert lines[0] == "mode enforce"
    assert "task yarn/etl container_2 running" in lines
    assert sum(line.startswith("node worker-1  CPU online 2.00 can lend 5.00") for line in lines) == 1
    assert sum(line.startswith("cluster yarn/etl") for line in lines) == 1


def test_filter_and_sort_hold_for_lines_too(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["top", "-c", str(served.folder), "--for", "200ms", "--filter", "BOB", "--sort", "cpu"]) == 0
    out = capsys.readouterr().out
    assert "container_2" in out
    assert "container_1" not in out


def test_where_none_runs_it_says_so_at_once(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    served.stop()
    assert cli.main(["top", "-c", str(served.folder)]) == 1
    assert capsys.readouterr() == ("", f"no Fallow is running: nobody serves {served.folder}/control\n")


def test_a_fallow_of_another_version_is_a_clear_error(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    del served.status["mode"]
    assert cli.main(["top", "-c", str(served.folder)]) == 1
    assert "of another version: Object missing required field `mode`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--interval", "1"], "'1': expected a duration such as"),
        (["--for", "5ms"], "'5ms': expected at least 100ms"),
        (["--sort", "colour"], "'cost', 'cpu', 'memory', 'age', 'name'"),
    ],
)
def test_a_wrong_option_is_refused_with_what_is_allowed(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["top", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_lines_tell_when_it_stops_answering_and_when_it_answers_again(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    tries: list[int] = []
    read = source_of(served.folder / "control")

    def source() -> Any:
        tries.append(1)
        if len(tries) in (2, 3):
            raise ControlError("gone")
        return read()

    def extra() -> Extra:
        if len(tries) >= 6:
            os.kill(os.getpid(), signal.SIGTERM)
        return Extra()

    assert LiveView(title="x", interval_seconds=0.15).run(source, extra) is True
    texts = [line[10:] for line in capsys.readouterr().out.splitlines()]
    stopped, back = texts.index("! gone; trying again"), texts.index("over: it answers again")
    assert stopped < back


def test_a_mistake_in_the_source_is_no_silent_end(served: Served) -> None:
    def source() -> Any:
        raise ZeroDivisionError("a mistake")

    with pytest.raises(ZeroDivisionError):
        LiveView(title="x", run_for_seconds=10).run(source)


def test_a_caller_has_a_caption_of_its_own(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    view = LiveView(title="x", interval_seconds=0.1, run_for_seconds=0.4)
    view.run(source_of(served.folder / "control"), lambda: Extra(caption="the load rises"))
    assert capsys.readouterr().out.count("the load rises") == 1


def test_a_name_that_the_encoding_lacks_is_no_reason_to_end(served: Served) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    view = LiveView(title="x", run_for_seconds=0.3, out=out)
    assert view.run(source_of(served.folder / "control"), lambda: Extra(caption="日本")) is False
    out.seek(0)
    assert "  ??\n" in out.read()


def test_a_signal_ends_it_and_the_handlers_are_those_of_before(served: Served) -> None:
    before = signal.getsignal(signal.SIGTERM)

    def extra() -> Extra:
        os.kill(os.getpid(), signal.SIGTERM)
        return Extra()

    assert LiveView(title="x").run(source_of(served.folder / "control"), extra) is True
    assert signal.getsignal(signal.SIGTERM) is before


# On a terminal


def test_keys_select_explain_filter_and_end(terminal: Open) -> None:
    view = terminal()
    seen = view.see("container_2")
    assert "NODES" in seen
    assert "DECISIONS" in seen
    view.press("j")
    view.see(">worker-1")
    view.press("\r")
    view.see("node worker-1, publishing mode enforce")
    view.press("\x1b")
    view.see("DECISIONS")
    view.press("/bob")
    view.see("show what has: bob_")
    view.press("\r")
    view.see("only 'bob'")
    view.press("q")
    assert view.ends() == 0
    assert termios.tcgetattr(view.theirs) == view.before


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_well_and_gives_the_terminal_back(terminal: Open, end: signal.Signals) -> None:
    view = terminal()
    view.see("container_2")
    assert termios.tcgetattr(view.theirs) != view.before
    view.process.send_signal(end)
    assert view.ends() == 0
    assert termios.tcgetattr(view.theirs) == view.before
    assert "\x1b[?1049l" in view.written
    assert "\x1b[?25h" in view.written
    assert "Traceback" not in view.written


def test_a_fallow_that_stops_is_told_and_found_again(terminal: Open, served: Served) -> None:
    view = terminal()
    view.see("container_2")
    served.stop()
    seen = view.see("no Fallow is running")
    assert "trying again" in seen
    assert "container_2" in seen
    served.status["uptime_seconds"] = 7.0
    served.start()
    assert "no answer" not in view.see("up 7 s")


def test_one_that_hangs_keeps_no_key_from_working(terminal: Open, served: Served) -> None:
    view = terminal()
    view.see("container_2")
    served.hangs.clear()
    assert "trying again" in view.see("! no answer for")
    view.press("?")
    view.see("turn the order round")
    view.press("q")
    assert view.ends() == 0


def test_another_size_is_drawn_anew(terminal: Open) -> None:
    view = terminal()
    view.see("container_2")
    view.resize(40, 10)
    drawing = view.see("TASKS 1-1/2")
    assert max(len(line) for line in drawing.splitlines()) <= 40


def test_without_a_keyboard_it_draws_and_ends_in_its_time(served: Served) -> None:
    ours, theirs = pty.openpty()
    code = "import sys; from fallow_core.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "top", "-c", str(served.folder), "--for", "300ms"]
    environment = {**os.environ, "TERM": "xterm", "PYTHONUTF8": "1"}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    written = b""
    while True:
        try:
            written += os.read(ours, 65536)
        except OSError:
            break  # the other end is closed
    os.close(ours)
    assert process.wait(20) == 0
    assert b"container_2" in written
