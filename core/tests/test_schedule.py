from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.ledger.schedule import scheduled
from fallow_core.model.node_policies import NodeChange, ResourceChange, Schedule, Window
from fallow_core.model.policy import NodePolicy

DAILY = frozenset(range(7))
HOUR = 60


def at(text: str) -> float:
    """Seconds since 1970 of a time in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def window(begin: float, end: float, percent: int = 80, days: frozenset[int] = DAILY) -> Window:
    """From one hour to another, with a CPU watermark."""
    change = NodeChange(cpu=ResourceChange(watermark_percent=percent))
    return Window(days=days, from_minute=int(begin * HOUR), to_minute=int(end * HOUR), change=change)


def watermark(schedule: Schedule, time: str) -> int:
    return scheduled(NodePolicy(), schedule, at(time)).cpu.watermark_percent


def test_a_window_counts_from_its_first_to_before_its_last_second() -> None:
    schedule = Schedule(time_zone="UTC", windows=(window(9, 17),))
    times = ["2026-11-30 08:59:59", "2026-11-30 09:00:00", "2026-11-30 16:59:59", "2026-11-30 17:00:00"]
    assert [watermark(schedule, time) for time in times] == [60, 80, 80, 60]


def test_a_window_over_midnight_belongs_to_the_day_on_which_it_begins() -> None:
    friday = Schedule(time_zone="UTC", windows=(window(22, 6, days=frozenset({4})),))
    times = ["2026-12-04 05:00", "2026-12-04 22:00", "2026-12-05 05:59", "2026-12-05 06:00", "2026-12-05 23:00"]
    assert [watermark(friday, time) for time in times] == [60, 80, 80, 60, 60]


def test_the_first_of_two_windows_that_overlap_counts() -> None:
    schedule = Schedule(time_zone="UTC", windows=(window(12, 13, 50), window(9, 17, 80)))
    assert [watermark(schedule, f"2026-11-30 {hour}:30") for hour in (11, 12, 13)] == [80, 50, 80]


def test_a_window_from_a_time_to_the_same_time_is_a_whole_day() -> None:
    monday = Schedule(time_zone="UTC", windows=(window(6, 6, days=frozenset({0})),))
    times = ["2026-11-30 05:59", "2026-11-30 06:00", "2026-12-01 05:59", "2026-12-01 06:00"]
    assert [watermark(monday, time) for time in times] == [60, 80, 80, 60]


def test_times_are_those_of_the_time_zone() -> None:
    schedule = Schedule(time_zone="Asia/Kolkata", windows=(window(9, 17),))
    assert [watermark(schedule, f"2026-11-30 {time}") for time in ("03:29", "03:30", "11:29", "11:30")] == [
        60,
        80,
        80,
        60,
    ]


def test_a_window_keeps_its_local_times_over_a_change_of_clocks() -> None:
    """Berlin puts its clocks back on 25 October 2026 at 01:00 UTC."""
    schedule = Schedule(time_zone="Europe/Berlin", windows=(window(9, 17),))
    assert [watermark(schedule, f"2026-10-24 {time}") for time in ("06:59", "07:00")] == [60, 80]
    assert [watermark(schedule, f"2026-10-25 {time}") for time in ("07:59", "08:00")] == [60, 80]


def test_a_time_that_is_there_twice_is_the_first_one() -> None:
    """02:30 in Berlin on 25 October 2026 is 00:30 UTC, and again 01:30 UTC."""
    until = Schedule(time_zone="Europe/Berlin", windows=(window(22, 2.5),))
    since = Schedule(time_zone="Europe/Berlin", windows=(window(2.5, 6),))
    times = [f"2026-10-25 {time}" for time in ("00:29", "00:30", "01:15", "01:45", "04:59", "05:00")]
    assert [watermark(until, time) for time in times] == [80, 60, 60, 60, 60, 60]
    assert [watermark(since, time) for time in times] == [60, 80, 80, 80, 80, 60]


def test_a_time_that_is_left_out_is_as_much_later() -> None:
    """Berlin puts its clocks forward on 28 March 2027 at 01:00 UTC, so 02:30 becomes 03:30, which is 01:30 UTC."""
    schedule = Schedule(time_zone="Europe/Berlin", windows=(window(2.5, 6),))
    times = [f"2027-03-28 {time}" for time in ("01:29", "01:30", "03:59", "04:00")]
    assert [watermark(schedule, time) for time in times] == [60, 80, 80, 60]
    left_out = Schedule(time_zone="Europe/Berlin", windows=(window(2, 3),))
    assert {watermark(left_out, f"2027-03-28 {hour:02}:{minute:02}") for hour in range(4) for minute in (0, 30)} == {60}


def test_a_change_takes_the_time_of_its_ramp() -> None:
    schedule = Schedule(time_zone="UTC", windows=(window(9, 17),), ramp_seconds=20 * 60)
    times = ["09:00", "09:05", "09:10", "09:20", "17:00", "17:05", "17:19", "17:20"]
    assert [watermark(schedule, f"2026-11-30 {time}") for time in times] == [60, 65, 70, 80, 80, 75, 61, 60]


def test_what_no_window_names_stays_as_it_is() -> None:
    policy = NodePolicy()
    night = scheduled(
        policy, Schedule(time_zone="UTC", windows=(window(0, 6),), ramp_seconds=600), at("2026-11-30 03:00")
    )
    assert night == replace(policy, cpu=replace(policy.cpu, watermark_percent=80))


def test_the_overcommit_ratio_follows_the_schedule_too() -> None:
    change = NodeChange(memory=ResourceChange(overcommit_percent=150))
    whole_day = Window(days=DAILY, from_minute=0, to_minute=24 * HOUR, change=change)
    schedule = Schedule(time_zone="UTC", windows=(whole_day,))
    assert scheduled(NodePolicy(), schedule, 0.0).memory.overcommit_percent == 150


WINDOWS = st.builds(
    window,
    st.integers(0, 47).map(lambda halves: halves / 2),
    st.integers(0, 48).map(lambda halves: halves / 2),
    st.integers(0, 100),
    st.frozensets(st.integers(0, 6), max_size=7),
)
SCHEDULES = st.builds(
    Schedule,
    time_zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
    windows=st.lists(WINDOWS, max_size=4).map(tuple),
    ramp_seconds=st.integers(0, 4 * 3600),
)
TIMES = st.integers(int(at("2026-01-01")), int(at("2027-12-31")))


@given(SCHEDULES, TIMES, st.integers(1, 600))
def test_with_a_ramp_no_change_is_faster_than_the_ramp(schedule: Schedule, now: int, seconds: int) -> None:
    schedule = replace(schedule, ramp_seconds=max(schedule.ramp_seconds, 60))
    before, after = (scheduled(NodePolicy(), schedule, time).cpu.watermark_percent for time in (now, now + seconds))
    assert abs(after - before) <= 100 * seconds / schedule.ramp_seconds + 1


@given(SCHEDULES, TIMES)
def test_a_policy_lies_between_those_of_the_time_of_its_ramp(schedule: Schedule, now: int) -> None:
    found = scheduled(NodePolicy(), schedule, now).cpu.watermark_percent
    known = [60, *(w.change.cpu.watermark_percent or 0 for w in schedule.windows)]
    assert min(known) <= found <= max(known)
    assert scheduled(NodePolicy(), schedule, now + 0.9).cpu.watermark_percent == found


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
def test_windows_that_tile_a_day_leave_no_gap_at_any_change_of_clocks(zone: str) -> None:
    schedule = Schedule(time_zone=zone, windows=(window(0, 2.5, 10), window(2.5, 7, 20), window(7, 24, 30)))
    found = {
        scheduled(NodePolicy(), schedule, time).cpu.watermark_percent
        for time in range(int(at("2026-01-01")), int(at("2027-01-01")), 900)
    }
    assert found == {10, 20, 30}
