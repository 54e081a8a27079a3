import json

import pytest
from core.tests.qos_values import ETL, GIB, NOW, key, node_view, pressure, seen

from fallow_core.model.qos_policy import EndingPolicy
from fallow_core.model.task import ApplicationKey, SeenTask, TaskKey
from fallow_core.qos.ending import Ending, Endings, Order, Phase, Route
from fallow_core.qos.ending_json import from_json, to_json
from fallow_core.qos.endings import Observed, answered, begun, being_freed, due, observed, past
from fallow_core.qos.victims import Choice, Past, choose
from fallow_hookspecs import KillAnswer, KillOutcome, KillResult, Resources

POLICY = EndingPolicy(
    grace_seconds=30, margin_seconds=10, repeat_seconds=5, back_off_seconds=60, budget=2, budget_seconds=3600
)
APP = ApplicationKey(ETL, "app")
COMPLETE = frozenset({ETL})
LEDGER = node_view().ledger
NONE: frozenset[TaskKey] = frozenset()


def task(name: str, **more: object) -> SeenTask:
    return seen(name, use=Resources(0, GIB), **more)  # type: ignore[arg-type]


def choice_of(*tasks: SeenTask, enforce: bool = True) -> Choice:
    return choose(pressure(len(tasks) * GIB, enforce=enforce), node_view(*tasks), POLICY, Past())


def ordered(*tasks: SeenTask, now: float = NOW) -> Endings:
    return begun(Endings(), choice_of(*tasks), POLICY, LEDGER, now)


def orders(endings: Endings, now: float) -> tuple[Endings, list[tuple[Route, bool, tuple[str, ...]]]]:
    endings, due_now = due(endings, POLICY, now)
    return endings, [(each.route, each.order.force, each.order.task_ids) for each in due_now]


def with_answers(endings: Endings, now: float, **answers: KillResult) -> Endings:
    """All orders that are due are given, and answered so."""
    endings, due_now = due(endings, POLICY, now)
    for order in due_now:
        outcome = {
            name: KillAnswer(result=answers[name], reason="so") for name in order.order.task_ids if name in answers
        }
        endings = answered(endings, order, KillOutcome(answers=outcome), now)
    return endings


def look(
    endings: Endings,
    now: float,
    *tasks: SeenTask,
    complete: frozenset[str] = COMPLETE,
    alive: frozenset[TaskKey] = NONE,
) -> Observed:
    return observed(endings, tasks, complete, alive, POLICY, now)


def only(endings: Endings) -> Ending:
    (ending,) = endings.active
    return ending


# Orders


def test_victims_are_ordered_to_end_gracefully_all_in_one_order() -> None:
    endings, due_now = due(ordered(task("b"), task("a")), POLICY, NOW)
    assert due_now == (Order(cluster=ETL, route=Route.PLUGIN, order=due_now[0].order),)
    order = due_now[0].order
    assert (order.task_ids, order.force, order.reason) == (("a", "b"), False, "memory_evict: full")
    assert being_freed(endings) == {key("a"), key("b")}


def test_a_choice_that_only_observes_orders_nothing() -> None:
    assert begun(Endings(), choice_of(task("a"), enforce=False), POLICY, LEDGER, NOW) == Endings()


def test_orders_go_by_cluster() -> None:
    _, due_now = due(ordered(task("a"), task("b", cluster="yarn/adhoc")), POLICY, NOW)
    assert [(each.cluster, each.order.task_ids) for each in due_now] == [("yarn/adhoc", ("b",)), (ETL, ("a",))]


def test_an_answered_order_is_not_given_again_and_one_without_an_answer_is() -> None:
    endings = with_answers(ordered(task("a"), task("b")), NOW, a=KillResult.ENDING)
    assert orders(endings, NOW + 4.9)[1] == []
    endings, again = orders(endings, NOW + 5)
    assert again == [(Route.PLUGIN, False, ("b",))]
    assert orders(endings, NOW + 5.1)[1] == []


def test_force_comes_after_the_grace_and_not_before() -> None:
    endings = with_answers(ordered(task("a")), NOW, a=KillResult.ENDING)
    assert orders(endings, NOW + 29.9)[1] == []
    endings, forced = orders(endings, NOW + 30)
    assert forced == [(Route.PLUGIN, True, ("a",))]
    assert orders(endings, NOW + 31)[1] == []


@pytest.mark.parametrize(("own", "forced_at"), [(5.0, NOW + 5), (90.0, NOW + 90), (0.0, NOW)])
def test_a_task_gets_the_grace_that_it_wants(own: float, forced_at: float) -> None:
    endings = with_answers(ordered(task("a", grace_seconds=own)), NOW, a=KillResult.ENDING)
    endings, given = orders(endings, forced_at - 0.1)
    assert not any(force for _, force, _ in given)
    assert only(due(endings, POLICY, forced_at)[0]).phase is Phase.FORCED


def test_a_grace_without_any_answer_still_ends_in_force() -> None:
    endings, _ = due(ordered(task("a")), POLICY, NOW)
    assert orders(endings, NOW + 30)[1] == [(Route.PLUGIN, True, ("a",))]


def test_a_late_answer_to_the_graceful_order_says_nothing_of_the_forced_one() -> None:
    endings, (graceful,) = due(ordered(task("a")), POLICY, NOW)
    endings, _ = due(endings, POLICY, NOW + 30)
    late = KillOutcome(answers={"a": KillAnswer(result=KillResult.ENDING)})
    endings = answered(endings, graceful, late, NOW + 31)
    assert orders(endings, NOW + 35)[1] == [(Route.PLUGIN, True, ("a",))]


def test_an_answer_counts_only_for_the_cluster_and_the_tasks_of_its_order() -> None:
    endings, due_now = due(ordered(task("a"), task("a", cluster="yarn/adhoc")), POLICY, NOW)
    outcome = KillOutcome(
        answers={"a": KillAnswer(result=KillResult.ENDING), "x": KillAnswer(result=KillResult.ENDING)}
    )
    endings = answered(endings, due_now[1], outcome, NOW)
    assert {ending.key for ending in endings.active if ending.answered} == {key("a")}


def test_a_task_chosen_again_keeps_its_grace() -> None:
    endings = with_answers(ordered(task("a")), NOW, a=KillResult.ENDING)
    assert begun(endings, choice_of(task("a")), POLICY, LEDGER, NOW + 20) == endings


# Answers


def test_no_access_asks_the_controller_at_once_and_its_no_access_is_a_failure() -> None:
    endings = with_answers(ordered(task("a")), NOW, a=KillResult.NO_ACCESS)
    assert orders(endings, NOW)[1] == [(Route.CONTROLLER, False, ("a",))]
    endings = with_answers(endings, NOW, a=KillResult.NO_ACCESS)
    assert (only(endings).phase, only(endings).note) == (Phase.FAILED, "no access: so (so)")
    assert being_freed(endings) == NONE


def test_the_controller_forces_what_it_was_asked_for() -> None:
    endings = with_answers(ordered(task("a")), NOW, a=KillResult.NO_ACCESS)
    endings = with_answers(endings, NOW, a=KillResult.ENDING)
    assert orders(endings, NOW + 30)[1] == [(Route.CONTROLLER, True, ("a",))]


def test_a_pod_is_evicted() -> None:
    endings = with_answers(ordered(task("a")), NOW, a=KillResult.EVICT)
    assert orders(endings, NOW)[1] == [(Route.EVICTION, False, ("a",))]


def test_a_spared_task_is_not_being_freed_and_not_chosen_until_it_was_left_alone_long_enough() -> None:
    endings = with_answers(ordered(task("a")), NOW, a=KillResult.SPARED)
    assert (being_freed(endings), only(endings).note) == (NONE, "spared: so")
    assert orders(endings, NOW + 100)[1] == []
    assert past(endings, POLICY, NOW + 59).failed == {key("a")}
    assert past(endings, POLICY, NOW + 60).failed == NONE


def test_a_failed_order_is_given_again_and_then_with_force() -> None:
    endings = with_answers(ordered(task("a")), NOW, a=KillResult.FAILED)
    assert only(endings).note == "so"
    assert orders(endings, NOW + 5)[1] == [(Route.PLUGIN, False, ("a",))]
    assert orders(endings, NOW + 30)[1] == [(Route.PLUGIN, True, ("a",))]


def test_already_gone_is_believed_only_when_it_is_seen() -> None:
    endings = with_answers(ordered(task("a")), NOW, a=KillResult.ALREADY_GONE)
    assert being_freed(look(endings, NOW + 1, task("a")).endings) == {key("a")}
    assert look(endings, NOW + 1).gone == endings.active


# What is seen


def test_gone_is_what_a_complete_list_no_longer_has_and_what_has_no_process() -> None:
    endings = with_answers(ordered(task("a")), NOW, a=KillResult.ENDING)
    assert look(endings, NOW + 1, task("a")).gone == ()
    assert look(endings, NOW + 1, complete=frozenset()).gone == ()
    assert look(endings, NOW + 1, complete=frozenset({"yarn/adhoc"})).gone == ()
    assert look(endings, NOW + 1, alive=frozenset({key("a")})).gone == ()
    after = look(endings, NOW + 1)
    assert (after.gone, after.endings.active, after.failed) == (endings.active, (), ())


def test_a_task_that_ended_by_itself_is_gone_as_well() -> None:
    after = look(ordered(task("a")), NOW + 1)
    assert [ending.key for ending in after.gone] == [key("a")]
    assert past(after.endings, POLICY, NOW + 1).endings_lately == {}


def test_still_there_after_grace_and_margin_is_a_failure_that_is_said_once() -> None:
    endings = with_answers(ordered(task("a")), NOW, a=KillResult.ENDING)
    endings = with_answers(endings, NOW + 30, a=KillResult.ENDING)
    assert look(endings, NOW + 39.9, task("a")).failed == ()
    after = look(endings, NOW + 40, task("a"))
    assert [(ending.key, ending.note) for ending in after.failed] == [(key("a"), "it is still there")]
    assert being_freed(after.endings) == NONE
    assert past(after.endings, POLICY, NOW + 40).failed == {key("a")}
    assert orders(after.endings, NOW + 50)[1] == []
    assert look(after.endings, NOW + 41, task("a")).failed == ()
    assert look(after.endings, NOW + 42).gone == after.failed


def test_processes_that_are_still_there_are_a_failure_without_any_list() -> None:
    endings, _ = due(due(ordered(task("a")), POLICY, NOW)[0], POLICY, NOW + 30)
    assert look(endings, NOW + 40, complete=frozenset(), alive=frozenset({key("a")})).failed != ()


def test_what_nobody_sees_is_neither_gone_nor_a_failure() -> None:
    endings, _ = due(due(ordered(task("a")), POLICY, NOW)[0], POLICY, NOW + 30)
    after = look(endings, NOW + 400, task("a"), complete=frozenset())
    assert (after.endings, after.gone, after.failed) == (endings, (), ())


def test_each_further_attempt_is_left_alone_twice_as_long() -> None:
    endings, left_alone = Endings(), []
    now = NOW
    for _ in range(9):
        endings = with_answers(begun(endings, choice_of(task("a")), POLICY, LEDGER, now), now, a=KillResult.SPARED)
        waits = (seconds for seconds in range(10, 10_000, 10) if not past(endings, POLICY, now + seconds).failed)
        left_alone.append(next(waits))
        now += left_alone[-1]
    assert left_alone == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


# Endings by the framework


def test_a_task_that_the_framework_ends_is_being_freed_until_it_hangs() -> None:
    theirs = task("a", ending=True)
    endings = look(Endings(), NOW, theirs).endings
    assert being_freed(endings) == {key("a")}
    assert orders(endings, NOW + 100)[1] == []
    assert look(endings, NOW + 39, theirs).failed == ()
    hung = look(endings, NOW + 40, theirs)
    assert (len(hung.failed), being_freed(hung.endings)) == (1, NONE)
    assert look(endings, NOW + 5).gone == ()
    assert look(endings, NOW + 5).endings.active == ()
    assert past(endings, POLICY, NOW).endings_lately == {}


def test_its_time_counts_from_when_the_framework_says_that_it_began_to_end() -> None:
    theirs = task("a", ending=True, ending_age_seconds=39.0)
    endings = look(Endings(), NOW, theirs).endings
    assert look(endings, NOW + 1, theirs).failed != ()


def test_our_own_victim_that_the_framework_lists_as_ending_stays_ours() -> None:
    endings = with_answers(ordered(task("a")), NOW, a=KillResult.ENDING)
    assert look(endings, NOW + 1, task("a", ending=True)).endings == endings


# Budgets


def test_endings_count_in_the_budget_while_under_way_and_for_its_time_afterwards() -> None:
    endings = with_answers(ordered(task("a"), task("b")), NOW, a=KillResult.ENDING, b=KillResult.SPARED)
    assert past(endings, POLICY, NOW).endings_lately == {APP: 1}
    endings = look(endings, NOW + 10).endings
    endings = look(endings, NOW + 3609).endings
    assert past(endings, POLICY, NOW + 3609).endings_lately == {APP: 1}
    assert past(endings, POLICY, NOW + 3610).endings_lately == {}
    assert look(endings, NOW + 3610).endings == Endings()


# Over a restart


def restarted(endings: Endings, before: float, after: float, now: float) -> Endings:
    """Through a file; the clock of the old process was `before` where that of the new one is `after`."""
    wall = 1_700_000_000.0
    return from_json(json.loads(json.dumps(to_json(endings, wall - before))), wall - after, now)


def test_everything_survives_a_restart() -> None:
    endings = with_answers(
        ordered(task("a"), task("b"), task("c"), task("d")),
        NOW,
        a=KillResult.ENDING,
        b=KillResult.SPARED,
        c=KillResult.NO_ACCESS,
    )
    endings = look(endings, NOW + 1, task("b"), task("c"), task("d"), task("e", ending=True)).endings
    assert (len(endings.active), len(endings.hits)) == (4, 1)
    assert restarted(endings, NOW, NOW, NOW + 10) == endings


def test_a_restart_in_the_middle_of_a_grace_neither_lengthens_nor_forgets_it() -> None:
    endings = with_answers(ordered(task("a")), NOW, a=KillResult.ENDING)
    endings = restarted(endings, before=NOW + 12, after=7.0, now=8.0)  # 1 s later
    assert orders(endings, 24.9)[1] == []
    assert orders(endings, 25.0)[1] == [(Route.PLUGIN, True, ("a",))]


def test_after_a_long_absence_it_is_forced_first_and_fails_only_after_the_margin() -> None:
    endings = with_answers(ordered(task("a")), NOW, a=KillResult.ENDING)
    endings = restarted(endings, before=NOW, after=0.0, now=5000.0)
    assert look(endings, 5000.0, task("a")).failed == ()
    endings, forced = orders(endings, 5000.0)
    assert forced == [(Route.PLUGIN, True, ("a",))]
    assert look(endings, 5009.0, task("a")).failed == ()
    assert look(endings, 5010.0, task("a")).failed != ()


def test_an_order_that_was_perhaps_never_given_is_given_after_the_restart() -> None:
    endings, _ = due(ordered(task("a")), POLICY, NOW)
    endings = restarted(endings, before=NOW, after=0.0, now=5.0)
    assert orders(endings, 5.0)[1] == [(Route.PLUGIN, False, ("a",))]


def test_a_clock_that_was_set_back_makes_no_grace_longer() -> None:
    endings = with_answers(ordered(task("a")), NOW, a=KillResult.ENDING)
    endings = restarted(endings, before=NOW, after=NOW + 86_400, now=NOW)
    assert only(endings).ordered_at == NOW


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"active": [{}], "hits": []},
        {"active": [], "hits": [["yarn/etl", "app"]]},
        {"active": [], "hits": [["yarn/etl", "app", "yesterday"]]},
    ],
)
def test_what_was_not_written_here_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)):
        from_json(broken, 0.0, NOW)


def test_an_unknown_phase_is_refused() -> None:
    values = to_json(ordered(task("a")), 0.0)
    values["active"][0]["phase"] = "undone"
    with pytest.raises(ValueError, match="undone"):
        from_json(values, 0.0, NOW)


def test_the_values_are_plain_json() -> None:
    values = to_json(ordered(task("a")), 0.0)
    assert json.loads(json.dumps(values))["active"][0]["key"] == [ETL, "a"]
