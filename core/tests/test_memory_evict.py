from dataclasses import replace

import pytest
from core.tests.qos_values import GIB, MEMORY_CAPACITY, NOW, key, node_view, seen

from fallow_core.model.qos_policy import MemoryEvictPolicy, StrategyMode
from fallow_core.model.sample import NodeSample
from fallow_core.model.task import ObservedTask
from fallow_core.qos import memory_evict
from fallow_core.qos.memory_evict import MemoryEvictState
from fallow_core.qos.need import Need, NodeView
from fallow_hookspecs import Resources

POLICY = MemoryEvictPolicy(threshold_percent=90, lower_percent=85, cool_down_seconds=4)
FRESH = MemoryEvictState()


def decide(view: NodeView, policy: MemoryEvictPolicy, state: MemoryEvictState) -> tuple[MemoryEvictState, Need | None]:
    return memory_evict.decide(view, policy, state, critical_percent=95)


def test_below_the_threshold_nothing_has_to_be_freed() -> None:
    assert decide(node_view(memory_used=90 * GIB - 1), POLICY, FRESH) == (FRESH, None)


def test_at_the_threshold_all_above_the_lower_threshold_has_to_be_freed() -> None:
    state, need = decide(node_view(memory_used=90 * GIB), POLICY, FRESH)
    assert need is not None
    assert need.amount == 5 * GIB
    assert (need.resource, need.counted_by, need.masters, need.enforce) == ("memory", "usage", True, False)
    assert need.why == "90 % of memory is used, the threshold is 90 %"
    assert need.terms == {
        "used": 90 * GIB,
        "capacity": MEMORY_CAPACITY,
        "lower": 85 * GIB,
        "being_freed": 0,
    }
    assert state == MemoryEvictState(asked_at=NOW)


def test_between_the_marks_it_neither_begins_nor_goes_on() -> None:
    asked = MemoryEvictState(asked_at=NOW - 3600)
    assert decide(node_view(memory_used=89 * GIB), POLICY, asked) == (asked, None)


def test_what_is_terminating_counts_as_being_freed_by_its_measured_use() -> None:
    tasks = seen("big", use=Resources(0, 3 * GIB)), seen("other", use=Resources(0, GIB))
    _, need = decide(node_view(*tasks, memory_used=90 * GIB, terminating=frozenset({key("big")})), POLICY, FRESH)
    assert need is not None
    assert need.amount == 2 * GIB


@pytest.mark.parametrize(
    "tasks", [(), (seen("big", use=Resources(0, 0)),), (seen("big", use=None),)], ids=["not listed", "exits", "unknown"]
)
def test_a_victim_counts_as_it_was_last_seen_until_it_is_known_to_be_gone(tasks: tuple[ObservedTask, ...]) -> None:
    view = node_view(*tasks, memory_used=91 * GIB, terminating=frozenset({key("big")}))
    assert decide(replace(view, freeing_bytes={key("big"): 6 * GIB}), POLICY, FRESH) == (FRESH, None)
    assert decide(replace(view, freeing_bytes={}), POLICY, FRESH)[1] is not None


def test_enough_being_freed_asks_for_nothing_and_does_not_start_the_cool_down() -> None:
    tasks = (seen("big", use=Resources(0, 6 * GIB)),)
    view = node_view(*tasks, memory_used=91 * GIB, terminating=frozenset({key("big")}))
    assert decide(view, POLICY, FRESH) == (FRESH, None)


@pytest.mark.parametrize("use", [None, Resources(0, 6 * GIB)], ids=["unknown", "old"])
def test_an_termination_task_whose_use_is_not_known_is_credited_with_nothing(use: Resources | None) -> None:
    termination = seen("gone?", use=use, measured_at=NOW - 60)
    _, need = decide(node_view(termination, memory_used=90 * GIB, terminating=frozenset({key("gone?")})), POLICY, FRESH)
    assert need is not None
    assert need.amount == 5 * GIB


def test_an_old_reading_or_none_asks_for_nothing_and_forgets_nothing() -> None:
    asked = MemoryEvictState(asked_at=NOW - 5)
    old = node_view(memory_used=99 * GIB, sample_age=10.1)
    assert decide(old, POLICY, asked) == (asked, None)
    assert decide(replace(old, sample=NodeSample()), POLICY, asked) == (asked, None)


def test_a_reading_is_good_up_to_the_age_that_is_allowed() -> None:
    assert decide(node_view(memory_used=99 * GIB, sample_age=10.0), POLICY, FRESH)[1] is not None


def test_after_a_need_it_waits_for_the_cool_down_and_a_shorter_one_counts_at_once() -> None:
    state, _ = decide(node_view(memory_used=95 * GIB), POLICY, FRESH)
    soon = node_view(memory_used=95 * GIB, now=NOW + 2)
    assert decide(soon, POLICY, state) == (state, None)
    assert decide(soon, replace(POLICY, cool_down_seconds=2), state)[1] is not None
    assert decide(node_view(memory_used=95 * GIB, now=NOW + 4), POLICY, state)[1] is not None


def test_an_incomplete_list_of_tasks_does_not_stop_it() -> None:
    assert decide(node_view(memory_used=95 * GIB, complete=False), POLICY, FRESH)[1] is not None


def test_only_enforce_says_enforce() -> None:
    _, need = decide(node_view(memory_used=95 * GIB), replace(POLICY, mode=StrategyMode.ENFORCE), FRESH)
    assert need is not None
    assert need.enforce


@pytest.mark.parametrize(("used", "critical"), [(95 * GIB - 1, False), (95 * GIB, True), (100 * GIB, True)])
def test_a_need_is_critical_from_the_critical_threshold_on(used: int, critical: bool) -> None:
    _, need = decide(node_view(memory_used=used), POLICY, FRESH)
    assert need is not None
    assert need.critical == critical


def test_what_is_lacking_is_what_nothing_frees_yet_also_during_the_cool_down() -> None:
    big = seen("big", use=Resources(0, 6 * GIB))
    assert memory_evict.lacking(node_view(big, memory_used=90 * GIB - 1), POLICY) == 0
    assert memory_evict.lacking(node_view(big, memory_used=92 * GIB), POLICY) == 7 * GIB
    freeing = frozenset({key("big")})
    assert memory_evict.lacking(node_view(big, memory_used=92 * GIB, terminating=freeing), POLICY) == GIB
    assert memory_evict.lacking(node_view(big, memory_used=90 * GIB, terminating=freeing), POLICY) == 0
    assert memory_evict.lacking(node_view(memory_used=99 * GIB, sample_age=10.1), POLICY) == 0
