from dataclasses import replace

from core.tests.qos_values import GIB, NOW, node_view
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.model.qos_policy import MemoryReclaimPolicy, StrategyMode
from fallow_core.model.sample import NodeSample
from fallow_core.qos.memory_reclaim import LEAST_BYTES, GroupMemory, MemoryReclaimState, decide

POLICY = MemoryReclaimPolicy(mode=StrategyMode.ENFORCE, threshold_percent=85, step_percent=1, cool_down_seconds=1)
FRESH = MemoryReclaimState()
COLD = {"yarn": GroupMemory(droppable=4 * GIB, swappable=2 * GIB)}


def test_below_the_threshold_nothing_is_reclaimed() -> None:
    state, reclaim = decide(node_view(memory_used=85 * GIB - 1), COLD, POLICY, FRESH)
    assert (state, reclaim) == (MemoryReclaimState(swappable=2 * GIB), None)


def test_at_the_threshold_a_step_is_reclaimed_with_its_arithmetic() -> None:
    state, reclaim = decide(node_view(memory_used=88 * GIB), COLD, POLICY, FRESH)
    assert reclaim is not None
    assert (dict(reclaim.groups), reclaim.enforce) == ({"yarn": GIB}, True)
    assert reclaim.why == "88 % of memory is used, the threshold is 85 %"
    assert reclaim.terms == {
        "used": 88 * GIB,
        "capacity": 100 * GIB,
        "excess": 3 * GIB,
        "cold": 6 * GIB,
        "step": GIB,
    }
    assert state == MemoryReclaimState(begun_at=NOW, asked_at=NOW, swappable=2 * GIB)


def test_no_more_is_reclaimed_than_is_above_the_threshold_or_cold() -> None:
    _, little = decide(node_view(memory_used=85 * GIB + 5 * LEAST_BYTES), COLD, POLICY, FRESH)
    assert little is not None
    assert dict(little.groups) == {"yarn": 5 * LEAST_BYTES}
    few = {"yarn": GroupMemory(droppable=3 * LEAST_BYTES, swappable=0)}
    _, reclaim = decide(node_view(memory_used=95 * GIB), few, POLICY, FRESH)
    assert reclaim is not None
    assert dict(reclaim.groups) == {"yarn": 3 * LEAST_BYTES}


def test_groups_share_a_step_by_what_is_cold_in_each() -> None:
    cold = {"a": GroupMemory(droppable=3 * GIB, swappable=0), "b": GroupMemory(droppable=GIB, swappable=0)}
    _, reclaim = decide(node_view(memory_used=95 * GIB), cold, POLICY, FRESH)
    assert reclaim is not None
    assert dict(reclaim.groups) == {"a": GIB * 3 // 4, "b": GIB // 4}


def test_where_nothing_is_cold_there_is_no_step() -> None:
    assert decide(node_view(memory_used=95 * GIB), {}, POLICY, FRESH)[1] is None
    none = {"yarn": GroupMemory(droppable=LEAST_BYTES - 1, swappable=0)}
    state, reclaim = decide(node_view(memory_used=95 * GIB), none, POLICY, FRESH)
    assert (state.begun_at, reclaim) == (None, None)


def test_steps_keep_their_distance_and_the_begin_stays() -> None:
    state, _ = decide(node_view(memory_used=95 * GIB), COLD, POLICY, FRESH)
    soon, reclaim = decide(node_view(memory_used=95 * GIB, now=NOW + 0.5), COLD, POLICY, state)
    assert (soon, reclaim) == (state, None)
    later, reclaim = decide(node_view(memory_used=95 * GIB, now=NOW + 1), COLD, POLICY, soon)
    assert reclaim is not None
    assert (later.begun_at, later.asked_at) == (NOW, NOW + 1)


def test_when_memory_suffices_again_the_next_shortage_begins_anew() -> None:
    state, _ = decide(node_view(memory_used=95 * GIB), COLD, POLICY, FRESH)
    state, _ = decide(node_view(memory_used=80 * GIB, now=NOW + 1), COLD, POLICY, state)
    assert state.begun_at is None
    state, _ = decide(node_view(memory_used=95 * GIB, now=NOW + 9), COLD, POLICY, state)
    assert state.begun_at == NOW + 9


def test_an_old_reading_or_none_reclaims_nothing() -> None:
    old = node_view(memory_used=99 * GIB, sample_age=10.1)
    assert decide(old, COLD, POLICY, FRESH)[1] is None
    assert decide(replace(old, sample=NodeSample()), COLD, POLICY, FRESH)[1] is None


def test_only_enforce_says_enforce() -> None:
    _, reclaim = decide(node_view(memory_used=95 * GIB), COLD, replace(POLICY, mode=StrategyMode.OBSERVE), FRESH)
    assert reclaim is not None
    assert not reclaim.enforce


MEMORY = st.builds(GroupMemory, droppable=st.integers(0, 9 * GIB), swappable=st.integers(0, 9 * GIB))


@given(cold=st.dictionaries(st.sampled_from("abcd"), MEMORY), used=st.integers(0, 100 * GIB))
def test_a_step_is_bounded_whatever_is_cold(cold: dict[str, GroupMemory], used: int) -> None:
    _, reclaim = decide(node_view(memory_used=used), cold, POLICY, FRESH)
    if reclaim is not None:
        assert all(0 < amount <= cold[name].cold for name, amount in reclaim.groups.items())
        assert sum(reclaim.groups.values()) <= min(GIB, max(used - 85 * GIB, LEAST_BYTES))
