import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fallow_core.cli import main as cli
from fallow_core.cli.demo import task
from fallow_core.cli.demo.framework import Counts, load
from fallow_core.cli.demo.load import OnlineLoad
from fallow_core.cli.demo.phases import ALONE_SECONDS, END_SECONDS, PHASES, phase_at
from fallow_core.cli.demo.stage import Stage
from fallow_core.cli.demo.summary import Moment, delays, summary
from fallow_core.errors import FallowError, PluginLoadError
from fallow_core.node.procfs import PROC_ROOT, TICKS_PER_SECOND, read_process


def test_the_phases_rise_and_fall_and_end_within_a_minute() -> None:
    assert ALONE_SECONDS + END_SECONDS < 50
    assert PHASES[-1].begins_at < END_SECONDS
    assert phase_at(-1.0) is phase_at(0.0) is PHASES[0]
    assert phase_at(PHASES[1].begins_at) is PHASES[1]
    assert phase_at(1000.0) is PHASES[-1]
    assert sum(after.load_percent > before.load_percent for before, after in pairwise(PHASES)) == 2


def test_the_delay_is_from_the_step_to_the_first_smaller_size() -> None:
    told = [(1.0, 500), (2.0, 1500), (10.5, 1500), (11.5, 400), (12.0, 300), (20.25, 200)]
    assert delays([10.0, 20.0], told) == [1.5, 0.25]


def test_a_step_that_nobody_was_told_of_has_no_delay() -> None:
    assert delays([10.0], []) == []
    assert delays([10.0], [(11.0, 5)]) == []
    assert delays([10.0], [(1.0, 5), (11.0, 6)]) == []


def test_the_summary_compares_the_use_without_and_with_batch() -> None:
    before = [Moment(capacity_milli=2000, used_milli=500, batch_milli=0, lends=False)]
    after = [Moment(capacity_milli=2000, used_milli=1800, batch_milli=1000, lends=True)]
    text = summary(before + after, Counts(finished=20, lost=2), [0.75], ["cpu_evict ended 2: too little CPU"])
    assert "25 % without Fallow, 90 % with it (40 % online and system, 50 % batch)" in text
    assert "20 finished, 2 lost" in text
    assert "cpu_evict ended 2" in text
    assert "0.8 s until" in text


def test_a_demo_that_ended_at_once_has_a_summary_too() -> None:
    text = summary([], Counts(), [], [])
    assert "0 finished, 0 lost" in text
    assert "none was told" in text


def test_a_plugin_without_a_demo_is_said_to_have_none() -> None:
    with pytest.raises(PluginLoadError, match="no installed plugin 'nothing' has a demo; there are: "):
        load("nothing")


def test_the_load_keeps_the_cpus_busy_as_it_is_told_and_ends(tmp_path: Path) -> None:
    def ticks(pids: list[int]) -> int:
        stats = [read_process(PROC_ROOT, pid) for pid in pids]
        return sum(stat.own_ticks for stat in stats if stat is not None)

    with OnlineLoad(tmp_path) as online:
        pids = [burner.pid for burner in online._burners]
        assert online.percent == 0
        time.sleep(0.2)
        idle = ticks(pids)
        online.percent = 100
        end = time.monotonic() + 30
        while ticks(pids) < idle + TICKS_PER_SECOND / 5:
            assert time.monotonic() < end
            time.sleep(0.02)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("cpu_milli", [800, 2400])
def test_a_task_does_its_work_and_writes_down_how_far_it_is(tmp_path: Path, cpu_milli: int) -> None:
    command = [sys.executable, "-IS", task.__file__, str(tmp_path), "ID", "0.2", str(cpu_milli)]
    before = os.times()
    subprocess.run(command, env={"ID": "task_1"}, check=True, timeout=50)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    assert used > 0.19
    assert int((tmp_path / "task_1").read_text()) >= 99


class Framework:
    """A resource manager that runs nothing."""

    def __init__(self, folder: Path, **_: int) -> None:
        self.spec: Mapping[str, Any] = {}
        self.task_variable = "ID"
        self.closed = False

    def submit(self, command: str, tasks: int) -> None:
        """Run nothing."""

    def counts(self) -> dict[str, int]:
        return {}

    def told(self) -> list[tuple[float, int]]:
        return []

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def few_processes(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[subprocess.Popen[bytes]]]:
    """After so many processes the system refuses to start another one, as at RLIMIT_NPROC."""

    def allow(count: int) -> list[subprocess.Popen[bytes]]:
        started: list[subprocess.Popen[bytes]] = []
        start = subprocess.Popen

        def popen(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
            if len(started) == count:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            started.append(start(*arguments, **options))
            return started[-1]

        monkeypatch.setattr(subprocess, "Popen", popen)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
        return started

    return allow


@pytest.mark.parametrize(
    ("allowed", "what"),
    [(0, "the processes of the online load"), (1, "the processes of the online load"), (2, "fallow run")],
)
def test_where_no_process_can_be_started_it_says_what_and_why_and_ends_the_others(
    few_processes: Callable[[int], list[subprocess.Popen[bytes]]], tmp_path: Path, allowed: int, what: str
) -> None:
    started = few_processes(allowed)
    framework = Framework(tmp_path)

    def start(folder: Path, **_: int) -> Framework:
        return framework

    with (
        pytest.raises(FallowError, match=f"^cannot start {what}: .Errno 11. .*ulimit -u"),
        Stage(start, "nothing", tmp_path) as stage,
    ):
        stage.begin()
    assert [process.poll() is None for process in started] == [False] * allowed
    assert framework.closed == (allowed == 2)


def test_the_command_ends_without_a_traceback_and_leaves_nothing_behind(
    few_processes: Callable[[int], list[subprocess.Popen[bytes]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    few_processes(1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("fallow_core.cli.demo.command.load", lambda _: Framework)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert cli.main(["demo"]) == 1
    assert capsys.readouterr().err.startswith("cannot start the processes of the online load: [Errno 11] ")
    assert list(tmp_path.iterdir()) == []


def test_a_resource_manager_that_cannot_be_started_is_one_message(tmp_path: Path) -> None:
    def start(folder: Path, **_: int) -> Framework:
        raise RuntimeError("can't start new thread")

    message = "cannot start the resource manager of the plugin x: can't start new thread; this user or"
    with pytest.raises(FallowError, match=message), Stage(start, "x", tmp_path):
        pass


def test_a_folder_that_is_too_long_for_a_socket_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    long = tmp_path / ("a" * 90)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr("fallow_core.cli.demo.command.load", lambda _: Framework)
    assert cli.main(["demo"]) == 1
    assert "is too long for the path of a socket; set TMPDIR to a shorter path" in capsys.readouterr().err
    assert list(long.iterdir()) == []
