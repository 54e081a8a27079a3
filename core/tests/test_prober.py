from itertools import pairwise
from pathlib import Path

import pytest
from core.tests.fake_standalone import config

from fallow_core.agent.probing import prober, schedule
from fallow_core.agent.probing.prober import Prober, with_others
from fallow_core.model.qos_policy import CpuSuppressPolicy, QosPolicy, StrategyMode
from fallow_core.model.sample import NodeSample, Usage


def sample(used: int, batch: int) -> NodeSample:
    return NodeSample(cpu=Usage(measured_at=1.0, capacity=8000, used=used, batch_used=batch))


@pytest.mark.parametrize(
    ("others", "used", "batch"),
    [(1000, 4000, 3000), (6000, 8000, 2000), (8000, 8000, 0), (9000, 8000, 0), (0, 3000, 3000)],
)
def test_limits_go_by_what_is_not_batch_now_and_nothing_is_above_the_node(others: int, used: int, batch: int) -> None:
    cpu = with_others(sample(used=3500, batch=3000), others, at=2.0).cpu
    assert cpu is not None
    assert (cpu.used, cpu.batch_used, cpu.measured_at) == (used, batch, 2.0)
    assert cpu.used - cpu.batch_used == min(others, 8000)


def test_a_node_that_was_never_measured_stays_so() -> None:
    assert with_others(NodeSample(), 1000, at=2.0) == NodeSample()


def test_what_comes_and_goes_is_listed_twice_and_no_more_often_than_that(tmp_path: Path) -> None:
    now, woken = [100.0], []
    seen = Prober(config(tmp_path, {}), lambda: now[0], lambda: woken.append(1))
    try:
        assert not seen.list_tasks_now()
        assert seen.list_tasks_in_seconds == schedule.LONGEST_SECONDS
        now[0] += prober.LIST_INTERVAL_SECONDS + 0.01
        for _ in range(3):
            seen._on_change()
        assert len(woken) == 3
        assert seen.list_tasks_in_seconds == 0
        assert seen.list_tasks_now()
        assert not seen.list_tasks_now()  # a directory may be made before a process is in it: once more a little later
        assert 0 < seen.list_tasks_in_seconds <= prober.LIST_INTERVAL_SECONDS
        now[0] += prober.LIST_INTERVAL_SECONDS + 0.01
        assert seen.list_tasks_now()
        now[0] += 10
        assert not seen.list_tasks_now()
    finally:
        seen.close()


@pytest.mark.parametrize(("missing", "pause"), [("", schedule.CPU_SECONDS), ("it cannot be read", 1.0)])
def test_where_cpu_besides_batch_is_not_seen_it_is_not_looked_for_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, pause: float
) -> None:
    limits = QosPolicy(cpu_suppress=CpuSuppressPolicy(mode=StrategyMode.ENFORCE))
    settings = config(tmp_path, {}, qos=limits)
    seen = Prober(settings, lambda: 100.0, lambda: None)
    monkeypatch.setattr(seen.quick, "cpu", lambda _: None)
    seen.quick.missing = missing
    try:
        seen.probe(settings, sample(used=3500, batch=3000), {"hadoop-yarn"})
        assert seen.pause == pause
    finally:
        seen.close()


def test_what_causes_no_event_is_told(tmp_path: Path) -> None:
    seen = Prober(config(tmp_path, {}), lambda: 0.0, lambda: None)
    seen.kernel_events.missing["pressure of cpu"] = "no such file"
    seen.quick.missing = "no control group accounts CPU"
    try:
        assert "no kernel events for pressure of cpu: no such file" in seen.missing
        assert seen.missing[-1].endswith("no control group accounts CPU")
    finally:
        seen.close()


def test_while_tasks_come_and_go_all_the_time_they_are_listed_ever_more_rarely(tmp_path: Path) -> None:
    now = [100.0]
    seen = Prober(config(tmp_path, {}), lambda: now[0], lambda: None)

    def lists(tenths: int) -> list[int]:
        found = []
        for tenth in range(tenths):
            seen._on_change()
            if seen.list_tasks_now():
                found.append(tenth)
            now[0] += 0.1
        return found

    try:
        gaps = [after - before for before, after in pairwise(lists(200))]
        assert gaps[0] < gaps[1] < gaps[2] < max(gaps)
        assert max(gaps) <= 10 * prober.LONGEST_LIST_INTERVAL_SECONDS + 1
        now[0] += 2 * prober.LONGEST_LIST_INTERVAL_SECONDS
        first, second = lists(10)
        assert first == 0  # after a calm time a change is listed at once, and soon once more
        assert second <= 10 * prober.LIST_INTERVAL_SECONDS + 1
    finally:
        seen.close()
