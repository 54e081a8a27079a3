import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result
from rich.console import Console
from rich.screen import Screen

from fallow_core.cli.watch import watch
from fallow_core.cli.watch_screen import screen
from fallow_core.cli.watch_text import Reading
from fallow_core.errors import SampleError
from fallow_core.ledger.capacity import batch_capacity
from fallow_core.model.policy import ResourcePolicy
from fallow_core.model.sample import Usage
from fallow_core.node.host_sampler import HostSampler

if TYPE_CHECKING:
    from core.tests.conftest import FakeProc

GIB_KIB = 1 << 20


class Host:
    """A host with 2 cores and 16 GiB on which time passes only while the command sleeps."""

    def __init__(self, proc: "FakeProc") -> None:
        self.proc = proc
        self.now = 500.0
        self.busy_ticks = 0.0
        self.busy_cores = 0.5
        self.on_sleep: Callable[[], None] = lambda: None
        self.write()

    def write(self) -> None:
        self.proc.host(busy=round(self.busy_ticks), total_kib=16 * GIB_KIB, available_kib=12 * GIB_KIB)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.busy_ticks += 100 * seconds * self.busy_cores
        self.write()
        self.on_sleep()

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(watch, arguments)


@pytest.fixture
def host(fake_proc: "FakeProc", monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(fake_proc)
    monkeypatch.setattr("fallow_core.cli.watch.HostSampler", lambda: HostSampler(lambda: host.now, fake_proc.root))
    monkeypatch.setattr("fallow_core.cli.watch.time", SimpleNamespace(monotonic=lambda: host.now, sleep=host.sleep))
    return host


def seconds_of(result: Result) -> list[float]:
    return [json.loads(line)["elapsed_seconds"] for line in result.stdout.splitlines()]


def test_a_line_a_sample_says_what_is_in_use_and_what_could_be_lent(host: Host) -> None:
    host.busy_cores = 0.4
    result = host.run("--for", "2s")
    assert result.exit_code == 0
    *samples, cpu, memory = result.stdout.splitlines()
    assert [re.sub(r"^\d\d:\d\d:\d\d +", "", line) for line in samples] == [
        "CPU 0.40 of 2.00 cores in use, could lend 0.80   Memory 4.0 of 16.0 GiB in use, could lend 6.4"
    ] * 3
    assert cpu == "CPU: on average 0.40 of 2.00 cores in use, 0.80 to lend (never below 0.80)"
    assert memory == "Memory: on average 4.0 of 16.0 GiB in use, 6.4 to lend (never below 6.4)"


def test_json_is_one_object_a_line_with_units_in_its_names(host: Host) -> None:
    result = host.run("--for", "3s", "--json", "--cpu-watermark", "75%", "--memory-watermark", "50")
    assert seconds_of(result) == [0.25, 1.0, 2.0, 3.0]
    newest = json.loads(result.stdout.splitlines()[-1])
    assert datetime.fromisoformat(newest.pop("time")).tzinfo is not None
    assert newest == {
        "elapsed_seconds": 3.0,
        "cpu": {"capacity_milli": 2000, "used_milli": 500, "lendable_milli": 1000, "watermark_percent": 75},
        "memory": {
            "capacity_bytes": 16 << 30,
            "used_bytes": 4 << 30,
            "lendable_bytes": 4 << 30,
            "watermark_percent": 50,
        },
        "missing": {},
    }
    assert result.stderr.splitlines()[0].startswith("CPU: on average 0.50 of 2.00 cores")


def test_the_summary_weighs_by_time_and_names_the_least(host: Host) -> None:
    def busy_after_three_seconds() -> None:
        host.busy_cores = 1.2 if host.now >= 503 else 0.2

    host.busy_cores = 0.2
    host.on_sleep = busy_after_three_seconds
    result = host.run("--for", "4s", "--interval", "3s")
    assert "CPU: on average 0.45 of 2.00 cores in use, 0.75 to lend (never below 0.00)" in result.stdout


def test_no_reading_is_too_short_to_be_true(host: Host) -> None:
    assert seconds_of(host.run("--json", "--for", "1050ms")) == [0.25, 1.05]
    assert seconds_of(host.run("--json", "--for", "300ms", "--interval", "300ms")) == [0.3]
    assert seconds_of(host.run("--json", "--for", "100ms")) == [0.1]


def test_after_it_was_stopped_for_a_while_it_does_not_catch_up(host: Host) -> None:
    def stopped_once() -> None:
        if 502 <= host.now < 502.1:
            host.now += 7.5

    host.on_sleep = stopped_once
    assert seconds_of(host.run("--json", "--for", "11s")) == [0.25, 1.0, 9.5, 10.0, 11.0]


def test_ctrl_c_ends_it_with_the_summary(host: Host) -> None:
    def interrupted() -> None:
        if host.now > 502.5:
            os.kill(os.getpid(), signal.SIGINT)

    host.on_sleep = interrupted
    result = host.run()
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 3 + 2


def test_a_resource_that_is_unknown_is_named_with_the_reason_and_the_other_goes_on(host: Host) -> None:
    host.on_sleep = lambda: host.proc.write("stat", "")
    line, summary = host.run("--for", "200ms").stdout.splitlines()
    assert f"CPU unknown: {host.proc.root}/stat: expected a line 'cpu'" in line
    assert "Memory 4.0 of 16.0 GiB in use" in line
    assert summary.startswith("Memory: ")
    newest = json.loads(host.run("--for", "200ms", "--json").stdout)
    assert newest["cpu"] is None
    assert newest["missing"]["cpu"].startswith(f"{host.proc.root}/stat: expected")


def test_a_host_that_cannot_be_read_at_all_is_an_error(host: Host) -> None:
    host.on_sleep = lambda: host.proc.write("1/stat", "garbage")
    result = host.run("--for", "200ms")
    assert isinstance(result.exception, SampleError)
    assert str(result.exception).startswith(f"{host.proc.root}/1/stat: expected a name in parentheses")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--for", "20"], "'20': expected a duration such as"),
        (["--for", "0s"], "'0s': expected at least 100ms"),
        (["--interval", "99ms"], "'99ms': expected at least 100ms"),
        (["--cpu-watermark", "0.6"], "'0.6': expected whole percent from 0 to 100"),
        (["--memory-watermark", "101"], "'101': expected whole percent from 0 to 100"),
    ],
)
def test_a_wrong_option_is_refused_with_what_is_allowed(host: Host, arguments: list[str], message: str) -> None:
    result = host.run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def reading(used_milli: int = 500) -> Reading:
    usage = Usage(measured_at=0.0, capacity=2000, used=used_milli, batch_used=0)
    return Reading(
        time=datetime.now(UTC),
        elapsed_seconds=7.0,
        resources={"cpu": batch_capacity(usage, ResourcePolicy(watermark_percent=60))},
        missing={"memory": "no meminfo " * 50},
    )


def drawn(newest: Reading, columns: int = 80, lines: int = 24, *, ascii_only: bool = False) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=columns, height=lines, color_system=None)
    console.print(Screen(screen([newest], "web-17.example.org", 20.0, ascii_only, columns, lines)), end="")
    return [line.rstrip() for line in out.getvalue().split("\n")]


def test_the_three_parts_of_a_bar_are_the_whole_capacity() -> None:
    lines = drawn(reading())
    assert lines[0] == " fallow watch  web-17.example.org  2 cores" + " " * 28 + "7 of 20 s"
    assert lines[2] == " CPU     " + "█" * 18 + "▒" * 24 + "·" * 28
    assert lines[3:6] == [
        "         █ in use        0.50 cores   25%   ▃",
        "         ▒ could lend    0.70 cores   35%   ▃",
        "         · kept free     0.80 cores   40%   above the watermark of 60 %",
    ]
    assert lines[7].startswith(" Memory  unknown: no meminfo no meminfo")


def test_use_over_the_watermark_is_said() -> None:
    lines = drawn(reading(used_milli=1500))
    assert "         · kept free     0.50 cores   25%   use is over the watermark of 60 %" in lines


@pytest.mark.parametrize(("columns", "rows"), [(20, 5), (40, 24), (80, 24), (80, 8), (300, 100)])
def test_a_view_fits_the_terminal(columns: int, rows: int) -> None:
    lines = drawn(reading(), columns, rows)
    assert len(lines) <= rows
    assert max(map(len, lines)) <= columns


def test_a_small_terminal_gets_no_empty_lines() -> None:
    assert drawn(reading(), 80, 6)[5].startswith(" Memory  unknown")


def test_a_terminal_without_unicode_is_respected() -> None:
    assert any("#" * 18 + "=" * 24 + "." * 28 in line for line in drawn(reading(), ascii_only=True))


@contextmanager
def watching(**environment: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The command on a real terminal, and the other end of it."""
    ours, theirs = pty.openpty()
    inherited = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    process = subprocess.Popen(
        [sys.executable, "-c", "from fallow_core.cli.watch import watch; watch()"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**inherited, "TERM": "xterm", "PYTHONUTF8": "1", **environment},
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_until(ours: int, text: str) -> str:
    written = ""
    while text not in written:
        written += os.read(ours, 65536).decode()
    return written


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, b"q"])
def test_on_a_real_terminal_a_signal_or_a_key_ends_it_well_and_brings_the_cursor_back(
    end: signal.Signals | bytes,
) -> None:
    with watching() as (process, ours):
        shown = read_until(ours, "Ctrl-C ends")
        if isinstance(end, bytes):
            os.write(ours, end)
        else:
            process.send_signal(end)
        ended = read_until(ours, "Memory: on average")
        assert process.wait() == 0
    assert "\x1b[?25l" in shown
    assert "\x1b[36m█" in shown
    assert "\x1b[?25h" in ended
    assert "Traceback" not in shown + ended


def test_no_color_is_respected() -> None:
    with watching(NO_COLOR="1") as (_, ours):
        shown = read_until(ours, "Ctrl-C ends")
    assert "could lend" in shown
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", shown)


def test_it_imports_neither_configuration_nor_plugins() -> None:
    code = "import sys, fallow_core.cli.watch; print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "fallow_core.node.host_sampler" in output
    assert not {"pydantic", "yaml", "rich", "fallow_core.plugins", "fallow_core.config", "fallow_yarn"} & set(output)
