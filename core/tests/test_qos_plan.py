from dataclasses import replace

import pytest
from core.tests.qos_values import ETL, GIB, NOW, key, node_view, seen
from hypothesis import given
from hypothesis import strategies as st

from fallow_core.model.qos_policy import (
    CpuEvictPolicy,
    MemoryEvictPolicy,
    MemoryReclaimPolicy,
    OverdraftEvictPolicy,
    QosPolicy,
    StrategyMode,
    TerminationPolicy,
)
from fallow_core.model.task import ApplicationKey, ObservedTask, TaskKey
from fallow_core.qos import memory_reclaim
from fallow_core.qos.memory_reclaim import GroupMemory, MemoryReclaimState
from fallow_core.qos.need import NodeView
from fallow_core.qos.plan import PlanState, plan, still_lacking
from fallow_core.qos.relief import NodeRelief, Relief, defer_eviction
from fallow_core.qos.termination import Terminations
from fallow_core.qos.terminations import begun, being_freed, history, observed
from fallow_core.qos.victims import Choice, History
from fallow_hookspecs import Resources

NOTHING = History()
TASKS = tuple(seen(f"t{n}", cpu=1000, memory=10 * GIB, use=Resources(390, 2 * GIB), age=float(n)) for n in range(10))


def policy(
    memory: StrategyMode = StrategyMode.OFF,
    cpu: StrategyMode = StrategyMode.OFF,
    overdraft: StrategyMode = StrategyMode.OFF,
) -> QosPolicy:
    return QosPolicy(
        memory_evict=MemoryEvictPolicy(mode=memory, threshold_percent=90, lower_percent=85, cool_down_seconds=4),
        cpu_evict=CpuEvictPolicy(mode=cpu, window_seconds=0, samples=1, cool_down_seconds=20),
        overdraft_evict=OverdraftEvictPolicy(mode=overdraft, after_seconds=0, cool_down_seconds=20),
        termination=TerminationPolicy(budget=100),
    )


def node(
    *tasks: ObservedTask, now: float = NOW, termination: frozenset[TaskKey] = frozenset(), used: int = 92
) -> NodeView:
    """Memory is 7 GiB above the lower threshold, CPU 1672 milli-cores short, 20 GiB too much memory allocated."""
    tasks = tuple(
        replace(task, usage=replace(task.usage, measured_at=now)) if task.usage is not None else task for task in tasks
    )
    return node_view(
        *tasks,
        now=now,
        cpu_allowed=4000,
        cpu_batch_used=390 * len(tasks),
        memory_used=used * GIB,
        memory_batch=80 * GIB,
        rows={ETL: (100 * GIB, 0)},
        termination_budget_bytes={ETL: 1000 * GIB},
        terminating=termination,
    )


def told(choices: tuple[Choice, ...]) -> list[tuple[str, bool, set[str]]]:
    return [
        (choice.need.strategy, choice.need.enforce, {victim.task.task.id for victim in choice.victims})
        for choice in choices
    ]


OFF, OBSERVE, ENFORCE = StrategyMode


def test_a_strategy_that_is_off_decides_nothing_and_remembers_nothing() -> None:
    state, choices = plan(node(*TASKS), policy(ENFORCE, ENFORCE, ENFORCE), PlanState(), NOTHING)
    assert [choice.need.strategy for choice in choices] != []
    assert plan(node(*TASKS), policy(), state, NOTHING) == (PlanState(), ())


def test_memory_comes_first_and_who_serves_two_needs_is_counted_once() -> None:
    _, choices = plan(node(*TASKS), policy(ENFORCE, ENFORCE, ENFORCE), PlanState(), NOTHING)
    assert told(choices) == [("memory_evict", True, {"t0", "t1", "t2", "t3"})]


def test_each_alone_would_have_chosen_for_itself() -> None:
    _, cpu = plan(node(*TASKS), policy(cpu=ENFORCE), PlanState(), NOTHING)
    _, overdraft = plan(node(*TASKS), policy(overdraft=ENFORCE), PlanState(), NOTHING)
    assert told(cpu) == [("cpu_evict", True, {"t0", "t1", "t2", "t3", "t4"})]
    assert told(overdraft) == [("overdraft_evict", True, {"t0", "t1"})]


def test_a_later_need_is_reduced_by_what_was_chosen_before() -> None:
    few = replace(
        policy(ENFORCE, ENFORCE),
        memory_evict=replace(policy(ENFORCE).memory_evict, threshold_percent=91, lower_percent=91),
    )
    _, choices = plan(node(*TASKS), few, PlanState(), NOTHING)
    assert [strategy for strategy, _, _ in told(choices)] == ["memory_evict", "cpu_evict"]
    first, second = (victims for _, _, victims in told(choices))
    assert first == {"t0"}
    assert second
    assert not first & second


def test_observe_says_exactly_what_enforce_would_do() -> None:
    _, enforced = plan(node(*TASKS), policy(ENFORCE, ENFORCE, ENFORCE), PlanState(), NOTHING)
    _, said = plan(node(*TASKS), policy(OBSERVE, OBSERVE, OBSERVE), PlanState(), NOTHING)
    assert [replace(choice, need=replace(choice.need, enforce=True)) for choice in said] == list(enforced)


@pytest.mark.parametrize("complete", [True, False])
def test_observe_says_each_termination_once_as_long_as_the_task_lives(complete: bool) -> None:
    state, choices = plan(node(*TASKS), policy(OBSERVE), PlanState(), NOTHING)
    assert len(choices) == 1
    for n in range(1, 20):
        view = replace(node(*TASKS, now=NOW + n), tasks_complete=complete)
        state, choices = plan(view, policy(OBSERVE), state, NOTHING)
        assert choices == ()


def test_observe_goes_on_as_enforce_would() -> None:
    mode: dict[StrategyMode, list[list[set[str]]]] = {}
    for each in (OBSERVE, ENFORCE):
        state, terminations, mode[each] = PlanState(), Terminations(), []
        for n, used in enumerate((92, 92, 92, 97, 97, 97, 99, 99, 99, 99)):
            now = NOW + 2 * n
            view = node(*TASKS, now=now, used=used)
            terminations = observed(
                terminations, view.tasks, frozenset({ETL}), frozenset(), policy().termination, now
            ).terminations
            view = replace(view, terminating=being_freed(terminations))
            state, choices = plan(view, policy(each), state, history(terminations, policy().termination, now))
            for choice in choices:
                terminations = begun(terminations, choice, policy().termination, view.ledger, now)
            mode[each].append([victims for _, _, victims in told(choices)])
    assert mode[OBSERVE] == mode[ENFORCE]
    assert [len(victims) for victims in mode[ENFORCE]] == [1, 0, 0, 1, 0, 0, 1, 0, 0, 0]


def test_what_was_only_said_is_forgotten_when_the_task_is_gone() -> None:
    state, _ = plan(node(*TASKS), policy(OBSERVE), PlanState(), NOTHING)
    assert state.would_terminate == {key(f"t{n}") for n in range(4)}
    state, _ = plan(node(*TASKS[2:], now=NOW + 1), policy(OBSERVE), state, NOTHING)
    assert state.would_terminate == {key("t2"), key("t3")}


def test_an_enforcing_strategy_does_not_rely_on_what_was_only_said() -> None:
    _, choices = plan(node(*TASKS), policy(OBSERVE, ENFORCE), PlanState(), NOTHING)
    assert told(choices) == [
        ("memory_evict", False, {"t0", "t1", "t2", "t3"}),
        ("cpu_evict", True, {"t0", "t1", "t2", "t3", "t4"}),
    ]


def test_an_observing_strategy_counts_on_what_an_enforcing_one_does() -> None:
    _, choices = plan(node(*TASKS), policy(ENFORCE, OBSERVE), PlanState(), NOTHING)
    assert told(choices) == [("memory_evict", True, {"t0", "t1", "t2", "t3"})]


def test_what_one_strategy_took_from_an_application_counts_in_the_budget_of_the_next() -> None:
    two = (*TASKS[:5], *(replace(task, task=replace(task.task, application_id="other")) for task in TASKS[5:]))
    both = policy(ENFORCE, ENFORCE)
    both = replace(
        both,
        memory_evict=replace(both.memory_evict, threshold_percent=91, lower_percent=91),
        termination=TerminationPolicy(budget=2),
    )
    lately = History(recent_terminations={ApplicationKey(ETL, "other"): 1})
    _, (memory, cpu) = plan(node(*two), both, PlanState(), lately)
    assert told((memory,))[0][2] == {"t0"}
    assert {each.task.task.application_id: each.budget for each in (*cpu.victims, *cpu.runners_up)} == {
        "app": 1,
        "other": 1,
    }


def test_a_need_that_nobody_can_serve_is_told_and_not_repeated_at_once() -> None:
    held = [replace(task, task=replace(task.task, may_be_ended=False)) for task in TASKS]
    state, (choice,) = plan(node(*held), policy(ENFORCE), PlanState(), NOTHING)
    assert (choice.victims, choice.shortfall) == ((), 7 * GIB)
    assert plan(node(*held, now=NOW + 1), policy(ENFORCE), state, NOTHING)[1] == ()
    assert len(plan(node(*held, now=NOW + 4), policy(ENFORCE), state, NOTHING)[1]) == 1


def test_an_termination_that_failed_makes_way_for_the_next_candidate() -> None:
    state, (choice,) = plan(node(*TASKS), policy(ENFORCE), PlanState(), NOTHING)
    failed = History(failed=frozenset(victim.task.key for victim in choice.victims))
    _, (again,) = plan(node(*TASKS, now=NOW + 4), policy(ENFORCE), state, failed)
    assert told((again,)) == [("memory_evict", True, {"t4", "t5", "t6", "t7"})]


def test_the_age_at_which_a_reading_is_as_good_as_none_is_a_setting() -> None:
    old = replace(node(*TASKS), now=NOW + 5)
    assert plan(old, policy(ENFORCE), PlanState(), NOTHING)[1] != ()
    assert plan(old, replace(policy(ENFORCE), stale_seconds=4.0), PlanState(), NOTHING)[1] == ()


SQUEEZED = st.builds(
    Relief, possible=st.booleans(), begun_at=st.one_of(st.none(), st.floats(NOW - 100, NOW, allow_nan=False))
)


@given(memory=SQUEEZED, cpu=SQUEEZED, used=st.integers(80, 100), modes=st.tuples(*[st.sampled_from(StrategyMode)] * 3))
def test_nothing_is_terminated_before_a_throttle_that_may_bring_it_had_its_time(
    memory: Relief, cpu: Relief, used: int, modes: tuple[StrategyMode, StrategyMode, StrategyMode]
) -> None:
    every = replace(policy(*modes), memory_reclaim=MemoryReclaimPolicy(window_seconds=5, critical_percent=95))
    every = replace(every, cpu_evict=replace(every.cpu_evict, window_seconds=60, samples=0))
    first = defer_eviction(every, NodeRelief(memory=memory, cpu=cpu, enforced_since=NOW - 5), NOW)
    _, choices = plan(node(*TASKS, used=used), first, PlanState(), NOTHING)
    needs = {choice.need.strategy for choice in choices}
    waits = memory.possible and (memory.begun_at is None or NOW - memory.begun_at < 5)
    assert ("memory_evict" in needs) == (modes[0] is not OFF and used >= (95 if waits else 90))
    if cpu.possible and (cpu.begun_at is None or NOW - cpu.begun_at < 60):
        assert "cpu_evict" not in needs


def test_a_throttle_that_cannot_bring_anything_is_not_waited_for() -> None:
    every = policy(ENFORCE, ENFORCE, ENFORCE)
    assert defer_eviction(every, NodeRelief(enforced_since=NOW - 5), NOW) == every
    over = Relief(possible=True, begun_at=NOW - 3600)
    assert defer_eviction(every, NodeRelief(memory=over, cpu=over, enforced_since=NOW - 3600), NOW) == every


@given(
    since=st.one_of(st.none(), st.floats(NOW - 20, NOW, allow_nan=False)),
    used=st.integers(80, 100),
    window=st.integers(0, 10),
)
def test_after_a_start_tasks_are_terminated_only_after_throttling_had_its_window_or_at_the_critical_threshold(
    since: float | None, used: int, window: int
) -> None:
    every = replace(policy(ENFORCE), memory_reclaim=MemoryReclaimPolicy(window_seconds=window, critical_percent=95))
    _, choices = plan(
        node(*TASKS, used=used), defer_eviction(every, NodeRelief(enforced_since=since), NOW), PlanState(), NOTHING
    )
    had_its_time = since is not None and NOW - since >= window
    assert bool(choices) == (used >= (90 if had_its_time else 95))


def test_pressure_that_lasts_from_before_the_start_terminates_no_task_before_the_window_is_over() -> None:
    every = policy(ENFORCE)
    state, told_at = PlanState(), []
    for n in range(12):
        since = None if n < 3 else NOW + 3  # tasks are known after three seconds
        view = node(*TASKS, now=NOW + n)
        state, choices = plan(view, defer_eviction(every, NodeRelief(enforced_since=since), NOW + n), state, NOTHING)
        told_at += [n] if choices else []
    assert told_at[0] == 3 + every.memory_reclaim.window_seconds


@given(st.lists(st.tuples(st.integers(70, 100), st.sampled_from([0, 1, 50])), min_size=1, max_size=40))
def test_whatever_memory_does_no_task_is_terminated_before_what_can_be_swapped_was_tried(
    course: list[tuple[int, int]],
) -> None:
    every = replace(policy(ENFORCE), memory_reclaim=MemoryReclaimPolicy(mode=ENFORCE, window_seconds=5))
    state, reclaim, throttles = PlanState(), MemoryReclaimState(), NodeRelief(enforced_since=NOW - 3600)
    for n, (used, swappable) in enumerate([(70, course[0][1]), *course]):  # it starts without pressure
        now = NOW + n
        view = node(*TASKS, now=now, used=used)
        state, choices = plan(view, defer_eviction(every, throttles, now), state, NOTHING)
        if choices and used < 95 and throttles.memory.possible:
            assert throttles.memory.begun_at is not None
            assert now - throttles.memory.begun_at >= 5
        groups = {"yarn": GroupMemory(droppable=0, swappable=swappable * GIB)}
        reclaim, _ = memory_reclaim.decide(view, groups, every.memory_reclaim, reclaim)
        relief = Relief(possible=reclaim.swappable > 0, begun_at=reclaim.begun_at)
        throttles = replace(throttles, memory=relief)


def test_what_is_throttled_and_not_terminated_meanwhile_keeps_its_window() -> None:
    every = policy(cpu=ENFORCE)
    every = replace(every, cpu_evict=replace(every.cpu_evict, window_seconds=10, samples=2))
    state, limited = PlanState(), NodeRelief(cpu=Relief(possible=True, begun_at=NOW))
    told_at = []
    for n in range(0, 40, 2):
        view = node(*TASKS, now=NOW + n)
        state, choices = plan(view, defer_eviction(every, limited, NOW + n), state, NOTHING)
        told_at += [n] if choices else []
    assert told_at[0] == 20  # its own window begins when the limit has been in force for one


OTHER = "yarn/other"


def of_other(*tasks: ObservedTask) -> list[ObservedTask]:
    return [replace(task, cluster=OTHER) for task in tasks]


@given(
    used=st.integers(80, 100),
    modes=st.tuples(*[st.sampled_from(StrategyMode)] * 3),
    split=st.integers(0, 10),
    stopped=st.booleans(),
)
def test_no_strategy_terminates_a_task_of_a_restored_cluster(
    used: int, modes: tuple[StrategyMode, StrategyMode, StrategyMode], split: int, stopped: bool
) -> None:
    view = node(*TASKS[:split], *of_other(*TASKS[split:]), used=used)
    view = replace(view, restored=frozenset({ETL}), stopped=frozenset({ETL} if stopped else ()))
    _, choices = plan(view, policy(*modes), PlanState(), NOTHING)
    assert not [victim for choice in choices for victim in choice.victims if victim.task.cluster == ETL]
    for choice in choices:
        assert {key for key, why in choice.ineligible.items() if why == "yarn/etl is restored"} == {
            task.key for task in TASKS[:split]
        }


def test_tasks_of_other_clusters_pay_as_before_when_one_is_restored() -> None:
    view = replace(node(*TASKS[:5], *of_other(*TASKS[5:])), restored=frozenset({ETL}))
    _, (choice,) = plan(view, policy(ENFORCE), PlanState(), NOTHING)
    assert told((choice,)) == [("memory_evict", True, {"t5", "t6", "t7", "t8"})]
    assert choice.shortfall == 0


def test_a_restored_account_above_its_target_has_no_need() -> None:
    view = replace(node(*TASKS), restored=frozenset({ETL}))
    state, choices = plan(view, policy(overdraft=ENFORCE), PlanState(), NOTHING)
    assert choices == ()
    assert state.overdraft_evict.accounts == {}


def test_pressure_lasts_while_something_lacks_and_no_longer() -> None:
    calm = node(*TASKS[:2], now=NOW + 1, used=89)
    for name, only in {"memory_evict": policy(OBSERVE), "cpu_evict": policy(cpu=OBSERVE)}.items():
        state, _ = plan(node(*TASKS), only, PlanState(), NOTHING)
        assert still_lacking(node(*TASKS), only, state) == {name}
        state, _ = plan(calm, only, state, NOTHING)
        assert still_lacking(calm, only, state) == frozenset()
    assert still_lacking(node(*TASKS), policy(), PlanState()) == frozenset()


def test_equal_inputs_give_equal_outputs_in_any_order_of_tasks() -> None:
    every = policy(ENFORCE, OBSERVE, OBSERVE)
    one = plan(node(*TASKS), every, PlanState(), NOTHING)
    other = plan(node(*reversed(TASKS)), every, PlanState(), NOTHING)
    assert one == other
