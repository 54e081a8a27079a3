import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from fallow_core.cli.demo import task
from fallow_core.cli.demo.framework import Counts, load
from fallow_core.cli.demo.load import OnlineLoad
from fallow_core.cli.demo.phases import ALONE_SECONDS, END_SECONDS, PHASES, phase_at
from fallow_core.cli.demo.summary import Moment, delays, summary
from fallow_core.errors import PluginLoadError
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
