import json

import pytest
from core.tests.qos_values import ETL, GIB, NOW, key, node_view, pressure, seen

from fallow_core.model.qos_policy import TerminationPolicy
from fallow_core.model.task import ApplicationKey, ObservedTask, TaskKey
from fallow_core.qos.termination import Order, Phase, Route, Termination, Terminations
from fallow_core.qos.terminations import Observed, answered, begun, being_freed, due, history, observed
from fallow_core.qos.victims import Choice, History, choose
from fallow_core.state.terminations_file import from_json, to_json
from fallow_hookspecs import KillAnswer, KillOutcome, KillResult, Resources

POLICY = TerminationPolicy(
    grace_seconds=30, margin_seconds=10, repeat_seconds=5, back_off_seconds=60, budget=2, budget_seconds=3600
)
APP = ApplicationKey(ETL, "app")
COMPLETE = frozenset({ETL})
LEDGER = node_view().ledger
NONE: frozenset[TaskKey] = frozenset()


def task(name: str, **more: object) -> ObservedTask:
    return seen(name, use=Resources(0, GIB), **more)  # type: ignore[arg-type]


def choice_of(*tasks: ObservedTask, enforce: bool = True) -> Choice:
    return choose(pressure(len(tasks) * GIB, enforce=enforce), node_view(*tasks), POLICY, History())


def ordered(*tasks: ObservedTask, now: float = NOW) -> Terminations:
    return begun(Terminations(), choice_of(*tasks), POLICY, LEDGER, now)


def orders(terminations: Terminations, now: float) -> tuple[Terminations, list[tuple[Route, bool, tuple[str, ...]]]]:
    terminations, due_now = due(terminations, POLICY, now)
    return terminations, [(each.route, each.order.force, each.order.task_ids) for each in due_now]


def with_answers(terminations: Terminations, now: float, **answers: KillResult) -> Terminations:
    """All orders that are due are given, and answered so."""
    terminations, due_now = due(terminations, POLICY, now)
    for order in due_now:
        outcome = {
            name: KillAnswer(result=answers[name], reason="so") for name in order.order.task_ids if name in answers
        }
        terminations = answered(terminations, order, KillOutcome(answers=outcome), now)
    return terminations


def look(
    terminations: Terminations,
    now: float,
    *tasks: ObservedTask,
    complete: frozenset[str] = COMPLETE,
    alive: frozenset[TaskKey] = NONE,
) -> Observed:
    return observed(terminations, tasks, complete, alive, POLICY, now)


def only(terminations: Terminations) -> Termination:
    (termination,) = terminations.active
    return termination


# Orders


def test_victims_are_ordered_to_terminate_gracefully_all_in_one_order() -> None:
    terminations, due_now = due(ordered(task("b"), task("a")), POLICY, NOW)
    assert due_now == (Order(cluster=ETL, route=Route.PLUGIN, order=due_now[0].order),)
    order = due_now[0].order
    assert (order.task_ids, order.force, order.reason) == (("a", "b"), False, "memory_evict: full")
    assert being_freed(terminations) == {key("a"), key("b")}


def test_a_choice_that_only_observes_orders_nothing() -> None:
    assert begun(Terminations(), choice_of(task("a"), enforce=False), POLICY, LEDGER, NOW) == Terminations()


def test_orders_go_by_cluster() -> None:
    _, due_now = due(ordered(task("a"), task("b", cluster="yarn/adhoc")), POLICY, NOW)
    assert [(each.cluster, each.order.task_ids) for each in due_now] == [("yarn/adhoc", ("b",)), (ETL, ("a",))]


def test_an_answered_order_is_not_given_again_and_one_without_an_answer_is() -> None:
    terminations = with_answers(ordered(task("a"), task("b")), NOW, a=KillResult.TERMINATING)
    assert orders(terminations, NOW + 4.9)[1] == []
    terminations, again = orders(terminations, NOW + 5)
    assert again == [(Route.PLUGIN, False, ("b",))]
    assert orders(terminations, NOW + 5.1)[1] == []


def test_force_comes_after_the_grace_and_not_before() -> None:
    terminations = with_answers(ordered(task("a")), NOW, a=KillResult.TERMINATING)
    assert orders(terminations, NOW + 29.9)[1] == []
    terminations, forced = orders(terminations, NOW + 30)
    assert forced == [(Route.PLUGIN, True, ("a",))]
    assert orders(terminations, NOW + 31)[1] == []


@pytest.mark.parametrize(("own", "forced_at"), [(5.0, NOW + 5), (90.0, NOW + 90), (0.0, NOW)])
def test_a_task_gets_the_grace_that_it_wants(own: float, forced_at: float) -> None:
    terminations = with_answers(ordered(task("a", grace_seconds=own)), NOW, a=KillResult.TERMINATING)
    terminations, given = orders(terminations, forced_at - 0.1)
    assert not any(force for _, force, _ in given)
    assert only(due(terminations, POLICY, forced_at)[0]).phase is Phase.FORCED


def test_a_grace_without_any_answer_still_ends_in_force() -> None:
    terminations, _ = due(ordered(task("a")), POLICY, NOW)
    assert orders(terminations, NOW + 30)[1] == [(Route.PLUGIN, True, ("a",))]


def test_a_late_answer_to_the_graceful_order_says_nothing_of_the_forced_one() -> None:
    terminations, (graceful,) = due(ordered(task("a")), POLICY, NOW)
    terminations, _ = due(terminations, POLICY, NOW + 30)
    late = KillOutcome(answers={"a": KillAnswer(result=KillResult.TERMINATING)})
    terminations = answered(terminations, graceful, late, NOW + 31)
    assert orders(terminations, NOW + 35)[1] == [(Route.PLUGIN, True, ("a",))]


def test_an_answer_counts_only_for_the_cluster_and_the_tasks_of_its_order() -> None:
    terminations, due_now = due(ordered(task("a"), task("a", cluster="yarn/adhoc")), POLICY, NOW)
    outcome = KillOutcome(
        answers={"a": KillAnswer(result=KillResult.TERMINATING), "x": KillAnswer(result=KillResult.TERMINATING)}
    )
    terminations = answered(terminations, due_now[1], outcome, NOW)
    assert {termination.key for termination in terminations.active if termination.answered} == {key("a")}


def test_a_task_chosen_again_keeps_its_grace() -> None:
    terminations = with_answers(ordered(task("a")), NOW, a=KillResult.TERMINATING)
    assert begun(terminations, choice_of(task("a")), POLICY, LEDGER, NOW + 20) == terminations


# Answers


def test_no_access_asks_the_controller_at_once_and_its_no_access_is_a_failure() -> None:
    terminations = with_answers(ordered(task("a")), NOW, a=KillResult.NO_ACCESS)
    assert orders(terminations, NOW)[1] == [(Route.CONTROLLER, False, ("a",))]
    terminations = with_answers(terminations, NOW, a=KillResult.NO_ACCESS)
    assert (only(terminations).phase, only(terminations).note) == (Phase.FAILED, "no access: so (so)")
    assert being_freed(terminations) == NONE


def test_the_controller_forces_what_it_was_asked_for() -> None:
    terminations = with_answers(ordered(task("a")), NOW, a=KillResult.NO_ACCESS)
    terminations = with_answers(terminations, NOW, a=KillResult.TERMINATING)
    assert orders(terminations, NOW + 30)[1] == [(Route.CONTROLLER, True, ("a",))]


def test_a_pod_is_evicted() -> None:
    terminations = with_answers(ordered(task("a")), NOW, a=KillResult.EVICT)
    assert orders(terminations, NOW)[1] == [(Route.EVICTION, False, ("a",))]


def test_a_spared_task_is_not_being_freed_and_not_chosen_until_it_was_left_alone_long_enough() -> None:
    terminations = with_answers(ordered(task("a")), NOW, a=KillResult.SPARED)
    assert (being_freed(terminations), only(terminations).note) == (NONE, "spared: so")
    assert orders(terminations, NOW + 100)[1] == []
    assert history(terminations, POLICY, NOW + 59).failed == {key("a")}
    assert history(terminations, POLICY, NOW + 60).failed == NONE


def test_a_failed_order_is_given_again_and_then_with_force() -> None:
    terminations = with_answers(ordered(task("a")), NOW, a=KillResult.FAILED)
    assert only(terminations).note == "so"
    assert orders(terminations, NOW + 5)[1] == [(Route.PLUGIN, False, ("a",))]
    assert orders(terminations, NOW + 30)[1] == [(Route.PLUGIN, True, ("a",))]


def test_already_gone_is_believed_only_when_it_is_seen() -> None:
    terminations = with_answers(ordered(task("a")), NOW, a=KillResult.ALREADY_GONE)
    assert being_freed(look(terminations, NOW + 1, task("a")).terminations) == {key("a")}
    assert look(terminations, NOW + 1).gone == terminations.active


# What is seen


def test_gone_is_what_a_complete_list_no_longer_has_and_what_has_no_process() -> None:
    terminations = with_answers(ordered(task("a")), NOW, a=KillResult.TERMINATING)
    assert look(terminations, NOW + 1, task("a")).gone == ()
    assert look(terminations, NOW + 1, complete=frozenset()).gone == ()
    assert look(terminations, NOW + 1, complete=frozenset({"yarn/adhoc"})).gone == ()
    assert look(terminations, NOW + 1, alive=frozenset({key("a")})).gone == ()
    after = look(terminations, NOW + 1)
    assert (after.gone, after.terminations.active, after.failed) == (terminations.active, (), ())


def test_a_task_that_ended_by_itself_is_gone_as_well() -> None:
    after = look(ordered(task("a")), NOW + 1)
    assert [termination.key for termination in after.gone] == [key("a")]
    assert history(after.terminations, POLICY, NOW + 1).recent_terminations == {}


def test_still_there_after_grace_and_margin_is_a_failure_that_is_said_once() -> None:
    terminations = with_answers(ordered(task("a")), NOW, a=KillResult.TERMINATING)
    terminations = with_answers(terminations, NOW + 30, a=KillResult.TERMINATING)
    assert look(terminations, NOW + 39.9, task("a")).failed == ()
    after = look(terminations, NOW + 40, task("a"))
    assert [(termination.key, termination.note) for termination in after.failed] == [(key("a"), "it is still there")]
    assert being_freed(after.terminations) == NONE
    assert history(after.terminations, POLICY, NOW + 40).failed == {key("a")}
    assert orders(after.terminations, NOW + 50)[1] == []
    assert look(after.terminations, NOW + 41, task("a")).failed == ()
    assert look(after.terminations, NOW + 42).gone == after.failed


def test_processes_that_are_still_there_are_a_failure_without_any_list() -> None:
    terminations, _ = due(due(ordered(task("a")), POLICY, NOW)[0], POLICY, NOW + 30)
    assert look(terminations, NOW + 40, complete=frozenset(), alive=frozenset({key("a")})).failed != ()


def test_what_nobody_sees_is_neither_gone_nor_a_failure() -> None:
    terminations, _ = due(due(ordered(task("a")), POLICY, NOW)[0], POLICY, NOW + 30)
    after = look(terminations, NOW + 400, task("a"), complete=frozenset())
    assert (after.terminations, after.gone, after.failed) == (terminations, (), ())


def test_each_further_attempt_is_left_alone_twice_as_long() -> None:
    terminations, left_alone = Terminations(), []
    now = NOW
    for _ in range(9):
        terminations = with_answers(
            begun(terminations, choice_of(task("a")), POLICY, LEDGER, now), now, a=KillResult.SPARED
        )
        waits = (
            seconds for seconds in range(10, 10_000, 10) if not history(terminations, POLICY, now + seconds).failed
        )
        left_alone.append(next(waits))
        now += left_alone[-1]
    assert left_alone == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


# Terminations by the framework


def test_a_task_that_the_framework_terminates_is_being_freed_until_it_hangs() -> None:
    theirs = task("a", terminating=True)
    terminations = look(Terminations(), NOW, theirs).terminations
    assert being_freed(terminations) == {key("a")}
    assert orders(terminations, NOW + 100)[1] == []
    assert look(terminations, NOW + 39, theirs).failed == ()
    hung = look(terminations, NOW + 40, theirs)
    assert (len(hung.failed), being_freed(hung.terminations)) == (1, NONE)
    assert look(terminations, NOW + 5).gone == ()
    assert look(terminations, NOW + 5).terminations.active == ()
    assert history(terminations, POLICY, NOW).recent_terminations == {}


def test_its_time_counts_from_when_the_framework_says_that_it_began_to_end() -> None:
    theirs = task("a", terminating=True, terminating_age_seconds=39.0)
    terminations = look(Terminations(), NOW, theirs).terminations
    assert look(terminations, NOW + 1, theirs).failed != ()


def test_our_own_victim_that_the_framework_lists_as_termination_stays_ours() -> None:
    terminations = with_answers(ordered(task("a")), NOW, a=KillResult.TERMINATING)
    assert look(terminations, NOW + 1, task("a", terminating=True)).terminations == terminations


# Budgets


def test_terminations_count_in_the_budget_while_under_way_and_for_its_time_afterwards() -> None:
    terminations = with_answers(ordered(task("a"), task("b")), NOW, a=KillResult.TERMINATING, b=KillResult.SPARED)
    assert history(terminations, POLICY, NOW).recent_terminations == {APP: 1}
    terminations = look(terminations, NOW + 10).terminations
    terminations = look(terminations, NOW + 3609).terminations
    assert history(terminations, POLICY, NOW + 3609).recent_terminations == {APP: 1}
    assert history(terminations, POLICY, NOW + 3610).recent_terminations == {}
    assert look(terminations, NOW + 3610).terminations == Terminations()


# Over a restart


def restarted(terminations: Terminations, now: float) -> Terminations:
    """Through a file, which a new process reads at `now`."""
    return from_json(json.loads(json.dumps(to_json(terminations))), now)


def test_everything_survives_a_restart() -> None:
    terminations = with_answers(
        ordered(task("a"), task("b"), task("c"), task("d")),
        NOW,
        a=KillResult.TERMINATING,
        b=KillResult.SPARED,
        c=KillResult.NO_ACCESS,
    )
    terminations = look(
        terminations, NOW + 1, task("b"), task("c"), task("d"), task("e", terminating=True)
    ).terminations
    assert (len(terminations.active), len(terminations.hits)) == (4, 1)
    assert restarted(terminations, NOW + 10) == terminations


def test_a_restart_in_the_middle_of_a_grace_neither_lengthens_nor_forgets_it() -> None:
    terminations = with_answers(ordered(task("a")), NOW, a=KillResult.TERMINATING)
    terminations = restarted(terminations, NOW + 13)
    assert orders(terminations, NOW + 29.9)[1] == []
    assert orders(terminations, NOW + 30.0)[1] == [(Route.PLUGIN, True, ("a",))]


def test_after_a_long_absence_it_is_forced_first_and_fails_only_after_the_margin() -> None:
    terminations = with_answers(ordered(task("a")), NOW, a=KillResult.TERMINATING)
    terminations = restarted(terminations, NOW + 5000.0)
    assert look(terminations, NOW + 5000.0, task("a")).failed == ()
    terminations, forced = orders(terminations, NOW + 5000.0)
    assert forced == [(Route.PLUGIN, True, ("a",))]
    assert look(terminations, NOW + 5009.0, task("a")).failed == ()
    assert look(terminations, NOW + 5010.0, task("a")).failed != ()


def test_an_order_that_was_perhaps_never_given_is_given_after_the_restart() -> None:
    terminations, _ = due(ordered(task("a")), POLICY, NOW)
    terminations = restarted(terminations, NOW + 5.0)
    assert orders(terminations, NOW + 5.0)[1] == [(Route.PLUGIN, False, ("a",))]


def test_a_clock_that_was_set_back_makes_no_grace_longer() -> None:
    terminations = with_answers(ordered(task("a")), NOW, a=KillResult.TERMINATING)
    terminations = restarted(terminations, NOW - 86_400)
    assert only(terminations).ordered_at == NOW - 86_400


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"active": [{}], "hits": [], "floor_losses": []},
        {"active": [], "hits": [["yarn/etl", "app"]], "floor_losses": []},
        {"active": [], "hits": [["yarn/etl", "app", "yesterday"]], "floor_losses": []},
    ],
)
def test_what_was_not_written_here_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)):
        from_json(broken, NOW)


def test_an_unknown_phase_is_refused() -> None:
    values = to_json(ordered(task("a")))
    values["active"][0]["phase"] = "undone"
    with pytest.raises(ValueError, match="undone"):
        from_json(values, NOW)


def test_the_values_are_plain_json() -> None:
    values = to_json(ordered(task("a")))
    assert json.loads(json.dumps(values))["active"][0]["key"] == [ETL, "a"]
