"""How the benchmark of take-back judges a run: `tests/benchmarks/take_back` measures real ones."""

from collections.abc import Sequence

import pytest
from tests.benchmarks.take_back import judge
from tests.benchmarks.take_back.facts import containers_of, events_of
from tests.benchmarks.take_back.judge import TAKEN_BACK, Container, InForce, Sample
from tests.benchmarks.take_back.load import RATE, oscillating, ramps
from tests.benchmarks.take_back.report import Run, measures, missed
from tests.e2e.yarn.application import Ended

AWAY = None
ID = "container_1_0001_01_00000"


def samples(*nodes: tuple[int, int] | None, lendable_mb: int = 1000) -> list[Sample]:
    """One sample a second from 0 on: size and allocation, or nothing without a ResourceManager."""
    return [
        Sample(
            at=float(at),
            in_force=None if node is None else InForce(size_mb=node[0], allocated_mb=node[1]),
            lendable_mb=lendable_mb,
            floor_mb=0,
        )
        for at, node in enumerate(nodes)
    ]


def container(started: float, memory_mb: int, end: float = 100.0, exit_code: int = 0) -> Container:
    return Container(name=f"c{started}", memory_mb=memory_mb, started=started, end=end, exit_code=exit_code)


def lendable(sample: Sample, _: InForce) -> int:
    return sample.lendable_mb


def test_a_stretch_lasts_from_the_first_size_that_is_too_large_to_the_first_that_fits() -> None:
    found = samples((1000, 0), (1500, 0), (1500, 0), (900, 0), (1500, 0), (900, 0))
    assert judge.stretches(found, lendable) == [2.0, 1.0]


def test_a_size_that_is_one_unit_too_large_fits() -> None:
    assert judge.stretches(samples((1001, 0), (1001, 0)), lendable) == []
    assert judge.stretches(samples((1002, 0), (1002, 0)), lendable) == [1.0]


def test_a_stretch_goes_on_behind_the_absence_of_the_manager_which_does_not_count() -> None:
    found = samples((1500, 0), AWAY, AWAY, AWAY, (1500, 0), (900, 0))
    assert judge.stretches(found, lendable) == [2.0]


def test_the_blast_radius_permits_a_share_or_one_largest_task_less_what_was_taken_back_lately() -> None:
    running = [container(0, 512), container(0, 256)]
    assert judge.left_mb(50, 4000, running, 5) == 512
    assert judge.left_mb(50, 4000, running, 20) == 800
    assert judge.left_mb(50, 4000, [*running, container(0, 300, 40, TAKEN_BACK)], 5) == 212
    assert judge.left_mb(50, 4000, [*running, container(0, 300, 40, 143)], 5) == 512


def test_what_was_taken_back_long_ago_is_permitted_again() -> None:
    containers = [container(0, 512, 5000), container(0, 512, 1000, TAKEN_BACK)]
    assert judge.left_mb(1599, 4000, containers, 5) == 0
    assert judge.left_mb(1601, 4000, containers, 5) == 512


@pytest.mark.parametrize(("lendable_mb", "expected"), [(767, [256]), (768, []), (1100, [])])
def test_a_container_starts_overdrawn_if_the_others_are_above_by_more_than_its_size(
    lendable_mb: int, expected: Sequence[int]
) -> None:
    containers = [container(0, 1024), container(0, 512, end=1.2), container(1.5, 256)]
    found = judge.started_overdrawn(samples((2000, 1024), (2000, 1024), lendable_mb=lendable_mb), containers)
    assert [each.memory_mb for each in found] == expected


def test_a_container_was_warned_while_the_size_was_below_the_allocation() -> None:
    found = samples((1024, 1024), (500, 1024), (1024, 1024), (500, 1024), (500, 1024), (500, 1024), (512, 512))
    assert judge.warnings(found, [container(0, 512, 5.5, TAKEN_BACK), container(0, 512)]) == [2.5]


def test_of_two_that_end_together_the_second_was_warned_when_one_did_not_suffice() -> None:
    found = samples((1024, 1024), (900, 1024), (900, 1024), (900, 1024), (100, 1024), (100, 1024), (100, 512))
    together = [container(-1, 512, 5.4, TAKEN_BACK), container(-2, 512, 5.5, TAKEN_BACK)]
    assert judge.warnings(found, together) == [1.5, 4.4]


def test_the_absence_of_the_manager_is_no_warning() -> None:
    found = samples((500, 1024), (500, 1024), AWAY, AWAY, AWAY, (500, 1024))
    assert judge.warnings(found, [container(0, 512, 6, TAKEN_BACK)]) == [3.0]


def test_containers_end_by_the_log_of_the_manager_or_when_their_master_was_told() -> None:
    log = [
        "2026-12-01 02:00:00,000 INFO RMAuditLogger: USER=u\tOPERATION=AM Allocated Container\tAPPID=a\t"
        f"CONTAINERID={ID}{i}\tRESOURCE=<memory:256, vCores:1>\tQUEUENAME=default"
        for i in (1, 2, 3)
    ]
    log.append(f"2026-12-01 02:00:07,500 INFO RMContainerImpl: {ID}1 Container Transitioned from RUNNING to KILLED")
    began = containers_of(log, [])[0].started
    told = [Ended(seconds=began + 9, container=f"{ID}{i}", exit_code=-102, diagnostics="") for i in (1, 2)]
    found = containers_of(log, told)
    assert [each.end - began for each in found] == [7.5, 9, float("inf")]
    assert [each.exit_code for each in found] == [-102, -102, None]
    assert {each.memory_mb for each in found} == {256}


def test_events_are_read_from_the_log() -> None:
    lines = ["Traceback", "2026-12-01 02:00:01,000 INFO fallow.take_back take_back_starts cluster=yarn/a amount=1"]
    assert [event.name for event in events_of(lines)] == ["take_back_starts"]


def test_a_ramp_rises_stays_and_falls() -> None:
    held = ramps(10 * RATE, [(5, 2), (0, 3)])
    assert [held(at) // RATE for at in (0, 4, 10, 15, 20, 25, 27, 28, 37, 46, 50)] == [
        0,
        4,
        10,
        10,
        5,
        0,
        0,
        1,
        10,
        1,
        0,
    ]


def test_an_oscillation_holds_for_most_of_its_period() -> None:
    held = oscillating(7, 100)
    assert [held(at) for at in (0, 59, 61, 99, 100)] == [7, 7, 0, 0, 7]


def run(found: Sequence[Sample], containers: Sequence[Container]) -> Run:
    return Run(samples=found, containers=containers, events=[], blast_percent=5, began=0.0)


def test_a_run_that_follows_misses_no_aim() -> None:
    assert missed(run(samples(*[(1000, 900)] * 9), [container(0, 256)]), kills=False) == []


def test_each_aim_can_be_missed() -> None:
    containers = [container(-9, 1024), container(-9, 1024), container(2, 256, 8, TAKEN_BACK)]
    late = run(samples(*[(2304, 2304)] * 5, (2000, 2304), (1000, 2304), (1000, 2304), (1000, 2048)), containers)
    assert [line.split(" ")[0] for line in missed(late, kills=False)] == ["the", "1", "a"]
    assert measures(late)["warnings, s"] == "3"
    assert len(missed(late, kills=True)) == 3


def test_kills_have_an_aim_of_their_own() -> None:
    late = run(samples(*[(2304, 900)] * 5, (1000, 900)), [])
    assert (len(missed(late, kills=False)), missed(late, kills=True)) == (1, [])
