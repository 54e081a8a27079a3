import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.agent.probing import schedule
from fallow_core.agent.probing.schedule import ProbeDue, ProbeReading, ProbeState, Thresholds

GIB = 1 << 30
CAPACITY = 20 * GIB
THRESHOLD = 18 * GIB


def thresholds(threshold: int | None = THRESHOLD, cpu: bool = False) -> Thresholds:
    return Thresholds(memory_threshold=threshold, memory_capacity=CAPACITY, cpu_capacity=8000, cpu_is_quick=cpu)


def quick(at: float, gib: float | None = 1.0, others: int | None = None) -> ProbeReading:
    return ProbeReading(at=at, memory_used=None if gib is None else round(gib * GIB), others_milli=others)


def start(gib: float | None = 1.0, others: int | None = None) -> ProbeState:
    """Decisions were just made, with so much in use."""
    state, _, _ = schedule.after(ProbeState(last=quick(-1.0, gib)), quick(0.0, gib, others), thresholds())
    return schedule.decided(state, state.last.memory_used)


def test_a_quiet_node_is_probed_once_a_second() -> None:
    _, pause, due = schedule.after(start(), quick(1.0), thresholds())
    assert (pause, due) == (1.0, ProbeDue.NOTHING)


def test_a_rise_brings_the_next_probe_closer_and_closer_to_the_threshold() -> None:
    pauses: list[float] = []
    state, at, used = start(16.0), 0.0, 16.0
    while used < 18:
        at, used = at + (pauses[-1] if pauses else 0.1), used + 2 * (pauses[-1] if pauses else 0.1)  # 2 GiB/s
        state, pause, due = schedule.after(state, quick(at, used), thresholds())
        pauses.append(pause)
    assert due is ProbeDue.THRESHOLD_CROSSED
    assert sorted(pauses[:-1], reverse=True) == pauses[:-1]
    assert used - 18 < 2 * 2 * schedule.SHORTEST_SECONDS  # it was seen within two of the shortest pauses


def test_after_a_fast_rise_the_probes_stay_close_for_a_while_and_are_rare_again_then() -> None:
    state, _, _ = schedule.after(start(12.0), quick(0.1, 13.0), thresholds())  # 10 GiB/s
    _, soon, _ = schedule.after(state, quick(1.1, 13.0), thresholds())
    assert soon < 0.3
    for second in range(2, 60):
        state, pause, _ = schedule.after(state, quick(float(second), 13.0), thresholds())
    assert pause == 1.0


def test_crossing_the_threshold_is_due_once_and_not_again_before_it_has_moved() -> None:
    state = start(17.95)
    state, _, due = schedule.after(state, quick(0.1, 18.0), thresholds())
    assert due is ProbeDue.THRESHOLD_CROSSED
    _, _, due = schedule.after(schedule.decided(state, 18 * GIB), quick(0.2, 18.01), thresholds())
    assert due is ProbeDue.NOTHING


def test_a_full_probe_that_saw_a_little_less_than_the_threshold_is_followed_by_another_one_at_once() -> None:
    state, pause, due = schedule.after(start(17.95), quick(0.1, 18.0), thresholds())
    assert due is ProbeDue.THRESHOLD_CROSSED
    state = schedule.decided(state, 18 * GIB - 1)
    state, pause, due = schedule.after(state, quick(0.2, 18.01), thresholds())
    assert (pause, due) == (schedule.SHORTEST_SECONDS, ProbeDue.FULL_PROBE)
    _, pause, due = schedule.after(schedule.decided(state, 18 * GIB), quick(0.3, 18.01), thresholds())
    assert (pause, due) == (1.0, ProbeDue.NOTHING)


@pytest.mark.parametrize(
    ("gib", "due"),
    [(10.0, ProbeDue.NOTHING), (10.39, ProbeDue.NOTHING), (10.41, ProbeDue.FULL_PROBE), (9.5, ProbeDue.FULL_PROBE)],
)
def test_memory_that_has_moved_by_a_part_of_the_node_is_probed(gib: float, due: ProbeDue) -> None:
    assert schedule.after(start(10.0), quick(1.0, gib), thresholds())[2] is due


@pytest.mark.parametrize(
    ("others", "due"),
    [(1000, ProbeDue.NOTHING), (1400, ProbeDue.NOTHING), (1401, ProbeDue.CPU_LIMIT), (599, ProbeDue.CPU_LIMIT)],
)
def test_cpu_besides_batch_that_has_moved_brings_new_limits(others: int, due: ProbeDue) -> None:
    assert schedule.after(start(others=1000), quick(1.0, others=others), thresholds(cpu=True))[2] is due
    assert schedule.after(start(others=1000), quick(1.0, others=others), thresholds(cpu=False))[2] is ProbeDue.NOTHING


def test_where_cpus_are_contended_the_probes_are_close() -> None:
    assert schedule.after(start(), quick(1.0), thresholds(cpu=True))[1] == schedule.CPU_SECONDS


@pytest.mark.parametrize(
    ("batch", "pause"), [(None, schedule.CPU_SECONDS), (401, schedule.CPU_SECONDS), (400, 1.0), (0, 1.0)]
)
def test_batch_that_has_used_nothing_for_a_while_brings_no_probe_closer(batch: int | None, pause: float) -> None:
    state, seconds = start(), 0.0
    for at in (0.0, 0.1, schedule.IDLE_AFTER_SECONDS - 0.01, schedule.IDLE_AFTER_SECONDS):
        look = ProbeReading(at=at, memory_used=GIB, batch_milli=8000 if at == 0.0 else batch, others_milli=4000)
        assert seconds in (0.0, schedule.CPU_SECONDS)
        state, seconds, _ = schedule.after(state, look, thresholds(cpu=True))
    assert seconds == pause


def test_what_is_not_known_calls_for_nothing() -> None:
    state = start(None)
    _, pause, due = schedule.after(state, quick(1.0, None), thresholds(cpu=True))
    assert (pause, due) == (schedule.CPU_SECONDS, ProbeDue.NOTHING)


def test_without_a_threshold_memory_brings_no_probe_closer() -> None:
    assert schedule.after(start(17.9), quick(1.0, 17.9), thresholds(threshold=None))[1] == 1.0


def test_a_clock_that_stands_still_is_no_rise() -> None:
    state, _, _ = schedule.after(start(10.0), quick(0.0, 10.3), thresholds())
    assert state.rise == 0.0


@given(
    st.floats(0, 1e6),
    st.floats(0, 1e3),
    st.integers(0, CAPACITY),
    st.integers(0, CAPACITY),
    st.floats(0, 1e15),
)
def test_the_pause_is_always_within_its_bounds(at: float, later: float, before: int, now: int, rise: float) -> None:
    state = ProbeState(last=ProbeReading(at=at, memory_used=before), rise=rise, memory_then=before)
    _, pause, _ = schedule.after(state, ProbeReading(at=at + later, memory_used=now), thresholds())
    assert schedule.SHORTEST_SECONDS <= pause <= schedule.LONGEST_SECONDS


@pytest.mark.parametrize(("calm", "seconds"), [(0.0, 1.0), (9.9, 1.0), (10.0, 5.0)])
def test_full_probes_are_rarer_on_a_calm_node(calm: float, seconds: float) -> None:
    assert schedule.full_interval(1.0, calm) == seconds
    assert schedule.full_interval(7.0, calm) == 7.0
