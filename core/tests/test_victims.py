from collections import Counter
from dataclasses import replace

import pytest
from core.tests.qos_values import ETL, GIB, NOW, key, node_view, pressure, seen

from fallow_core.model.qos_policy import TerminationPolicy
from fallow_core.model.task import ApplicationKey, ObservedTask
from fallow_core.qos.harm import harms
from fallow_core.qos.need import Need
from fallow_core.qos.victims import Choice, History, choose
from fallow_hookspecs import Application, Gang, Resources, TaskState

POLICY = TerminationPolicy(charge_core_seconds=60, budget=2)
NOBODY = History()
ADHOC = "yarn/adhoc"


def gib(much: float) -> Resources:
    return Resources(0, int(much * GIB))


def ids(choice: Choice) -> set[str]:
    return {victim.task.task.id for victim in choice.victims}


def chosen(need: Need, *tasks: ObservedTask, policy: TerminationPolicy = POLICY, history: History = NOBODY) -> set[str]:
    return ids(choose(need, node_view(*tasks), policy, history))


def application(priority: int = 0, progress: float | None = None, masters: tuple[str, ...] = ()) -> Application:
    return Application(
        id="app",
        name="n",
        user="u",
        queue="q",
        kind="SPARK",
        priority=priority,
        progress=progress,
        master_task_ids=masters,
    )


def by_request(amount: int, **more: object) -> Need:
    need = replace(pressure(amount), counted_by="request", masters=False, clusters=frozenset({ETL}))
    return replace(need, at_most=more.get("at_most"))  # type: ignore[arg-type]


# Enough, and no more than enough


def test_one_victim_that_frees_enough_is_enough() -> None:
    tasks = [seen(f"t{n}", use=gib(1)) for n in range(5)]
    assert len(chosen(pressure(GIB), *tasks)) == 1
    assert len(chosen(pressure(4 * GIB), *tasks)) == 4
    assert len(chosen(pressure(GIB + 1), *tasks)) == 2


def test_the_shortfall_is_said_when_all_together_do_not_suffice() -> None:
    choice = choose(pressure(5 * GIB), node_view(seen("a", use=gib(1)), seen("b", use=gib(2))), POLICY, NOBODY)
    assert (ids(choice), choice.freed, choice.shortfall) == ({"a", "b"}, 3 * GIB, 2 * GIB)


def test_without_candidates_everything_is_missing() -> None:
    choice = choose(pressure(GIB), node_view(), POLICY, NOBODY)
    assert (choice.victims, choice.runners_up, choice.freed, choice.shortfall) == ((), (), 0, GIB)


def test_pressure_is_credited_with_measured_use_and_overdraft_with_requests() -> None:
    asks_much, uses_much = seen("asks", memory=8 * GIB, use=gib(1)), seen("uses", memory=2 * GIB, use=gib(2))
    assert chosen(pressure(2 * GIB), asks_much, uses_much) == {"uses"}
    assert chosen(by_request(3 * GIB), asks_much, uses_much) == {"asks"}


def test_a_use_above_two_gib_of_kib_is_no_overflow() -> None:
    assert chosen(pressure(1 << 42), seen("huge", use=gib(1 << 13)), seen("small", use=gib(1))) == {"huge"}


def test_a_task_whose_use_is_not_known_is_never_terminated_for_pressure_and_comes_last() -> None:
    unknown, old = seen("unknown", age=1), seen("old", age=1, use=gib(5), measured_at=NOW - 60)
    known = [seen(f"k{n}", age=9999, use=gib(1)) for n in range(2)]
    choice = choose(pressure(5 * GIB), node_view(unknown, old, *known), POLICY, NOBODY)
    assert ids(choice) == {"k0", "k1"}
    choice = choose(pressure(GIB), node_view(unknown, old, *known), POLICY, NOBODY)
    assert [candidate.task.task.id for candidate in choice.runners_up][-2:] == ["old", "unknown"]
    assert chosen(by_request(GIB), unknown) == {"unknown"}


# Who may end at all


def test_who_may_not_be_terminated_is_not_and_the_choice_says_why() -> None:
    tasks = (
        seen("held", use=gib(4), may_be_ended=False),
        seen("failed", use=gib(4)),
        seen("ordered", use=gib(4)),
        seen("termination", use=gib(4), terminating=True),
        seen("ok", use=gib(1), age=99999),
    )
    view = node_view(*tasks, terminating=frozenset({key("ordered")}))
    choice = choose(pressure(4 * GIB), view, POLICY, History(failed=frozenset({key("failed")})))
    assert (ids(choice), choice.shortfall) == ({"ok"}, 3 * GIB)
    assert choice.ineligible == {
        key("held"): "its framework says that it may not be terminated",
        key("failed"): "it could not be terminated a short time ago",
    }
    assert choice.runners_up == ()


def test_only_the_accounts_that_have_to_pay_do() -> None:
    tasks = seen("mine", age=99999), seen("other", cluster=ADHOC, age=0)
    choice = choose(by_request(GIB), node_view(*tasks), POLICY, NOBODY)
    assert ids(choice) == {"mine"}
    assert choice.ineligible == {key("other", ADHOC): "the need is not for its account"}


def test_no_more_than_what_may_be_lost_is_lost() -> None:
    tasks = [seen("a", memory=3 * GIB, age=1), seen("b", memory=3 * GIB, age=2), seen("big", memory=9 * GIB, age=0)]
    choice = choose(by_request(5 * GIB, at_most=5 * GIB), node_view(*tasks), POLICY, NOBODY)
    assert (ids(choice), choice.shortfall) == ({"a"}, 2 * GIB)
    assert chosen(by_request(5 * GIB, at_most=6 * GIB), *tasks) == {"a", "b"}


# Masters


def test_masters_are_terminated_only_when_nothing_else_suffices() -> None:
    master, named = (
        seen("am", use=gib(4), age=0, master=True),
        seen("am2", use=gib(4), age=0, application=application(masters=("am2",))),
    )
    workers = [seen(f"w{n}", use=gib(1), age=99999) for n in range(3)]
    history = History(recent_terminations={workers[0].application_key: 99})
    assert chosen(pressure(3 * GIB), master, named, *workers, history=history) == {"w0", "w1", "w2"}
    more = chosen(pressure(4 * GIB), master, named, *workers)
    assert len(more & {"am", "am2"}) == 1


def test_masters_are_spared_below_the_critical_threshold_when_even_they_do_not_suffice() -> None:
    tasks = seen("am", use=gib(1), master=True), seen("w0", use=gib(1)), seen("w1", use=gib(2))
    choice = choose(pressure(4 * GIB + 1), node_view(*tasks), POLICY, NOBODY)
    assert ids(choice) == {"w0", "w1"}  # they are terminated as far as they help
    assert choice.shortfall == GIB + 1
    assert choice.ineligible == {key("am"): "it is a master, and all tasks together would not free enough"}
    assert choice.spared() == {"it is a master, and all tasks together would not free enough": 1}
    assert chosen(pressure(4 * GIB), *tasks) == {"am", "w0", "w1"}
    critical = choose(pressure(4 * GIB + 1, critical=True), node_view(*tasks), POLICY, NOBODY)
    assert (ids(critical), critical.shortfall) == ({"am", "w0", "w1"}, 1)


def test_a_master_alone_is_spared_when_it_does_not_suffice() -> None:
    choice = choose(pressure(2 * GIB), node_view(seen("am", use=gib(1), master=True)), POLICY, NOBODY)
    assert (choice.victims, choice.shortfall) == ((), 2 * GIB)


def test_masters_of_a_restored_cluster_do_not_count_as_what_suffices() -> None:
    tasks = seen("am", use=gib(1), master=True), seen("far", cluster=ADHOC, use=gib(9)), seen("w", use=gib(1))
    view = node_view(*tasks, restored=frozenset({ADHOC}))
    choice = choose(pressure(4 * GIB), view, POLICY, NOBODY)
    assert (ids(choice), choice.shortfall) == ({"w"}, 3 * GIB)
    assert choice.ineligible[key("far", ADHOC)] == "yarn/adhoc is restored"


def test_a_need_that_spares_masters_spares_them() -> None:
    choice = choose(pressure(4 * GIB, masters=False), node_view(seen("am", use=gib(4), master=True)), POLICY, NOBODY)
    assert (choice.victims, choice.ineligible) == ((), {key("am"): "it is a master"})


# Harm


@pytest.mark.parametrize(
    ("spared", "ended"),
    [
        pytest.param(seen("a", use=gib(1), age=200), seen("b", use=gib(1), age=100), id="older"),
        pytest.param(seen("a", use=gib(1), cpu=2000), seen("b", use=gib(1), cpu=1000), id="larger CPU request"),
        pytest.param(seen("a", use=gib(1), memory=2 * GIB), seen("b", use=gib(1)), id="larger memory request"),
        pytest.param(seen("a", use=gib(1)), seen("b", use=gib(1), kept_share=0.5), id="nothing kept"),
        pytest.param(seen("a", use=gib(1), priority=-1), seen("b", use=gib(1), priority=-7), id="priority"),
        pytest.param(
            seen("a", app="x", use=gib(1), application=application(priority=5)),
            seen("b", app="y", use=gib(1), application=application(priority=4)),
            id="priority of the application",
        ),
        pytest.param(seen("a", use=gib(1)), seen("b", use=gib(1), opportunistic=True), id="guaranteed"),
        pytest.param(seen("a", use=gib(1), progress=0.9), seen("b", use=gib(1), progress=0.1), id="progress"),
        pytest.param(
            seen("a", use=gib(1), ends_in_seconds=5.0),
            seen("b", use=gib(1), ends_in_seconds=500.0),
            id="terminates soon",
        ),
        pytest.param(
            seen("a", app="x", use=gib(1), application=application(progress=0.9)),
            seen("b", app="y", use=gib(1), application=application(progress=0.1)),
            id="progress of the application",
        ),
        pytest.param(seen("a", use=gib(1), age=None), seen("b", use=gib(1), age=100.0), id="unknown age, by name"),
    ],
)
def test_the_one_whose_end_would_cost_more_is_spared(spared: ObservedTask, ended: ObservedTask) -> None:
    longer_known = seen("older", use=gib(0.1), age=101.0)
    assert chosen(pressure(GIB), spared, ended, longer_known) == {"b"}
    assert chosen(pressure(GIB), longer_known, ended, spared) == {"b"}


def test_a_starting_task_of_unknown_age_has_done_no_work() -> None:
    starting = seen("starting", use=gib(1), age=None)
    starting = replace(starting, task=replace(starting.task, state=TaskState.STARTING))
    assert chosen(pressure(GIB), starting, seen("running", use=gib(1), age=10)) == {"starting"}


@pytest.mark.parametrize(
    ("task", "percent"),
    [
        (seen("t"), 100),
        (seen("t", age=75.0, ends_in_seconds=25.0), 400),
        (seen("t", age=75.0, ends_in_seconds=25.0, progress=0.5), 400),
        (seen("t", progress=0.5, application=application(progress=0.9)), 200),
        (seen("t", application=application(progress=0.9)), 1000),
        (seen("t", progress=1.0), 10_000),
        (seen("t", age=0.0, ends_in_seconds=0.0), 10_000),
    ],
)
def test_the_nearer_its_end_the_dearer(task: ObservedTask, percent: int) -> None:
    assert harms([task], POLICY, {})(task).near_end_percent == percent


def test_only_the_order_of_priorities_means_something() -> None:
    low, high = seen("low", use=gib(1), priority=0), seen("high", use=gib(1), priority=1_000_000_000)
    harm = harms([low, high], POLICY, {})
    assert (harm(low).priority_percent, harm(high).priority_percent) == (100, 200)


def test_priorities_of_different_frameworks_are_not_compared() -> None:
    ours = seen("a", use=gib(1), application=application(priority=3))
    theirs = seen("b", cluster=ADHOC, use=gib(1), application=application(priority=100))
    harm = harms([ours, theirs], POLICY, {})
    assert harm(ours).priority_percent == harm(theirs).priority_percent == 100


def test_with_equal_harm_the_newest_is_terminated() -> None:
    kept = [seen(f"t{n}", use=gib(1), kept_share=1.0, age=float(age)) for n, age in enumerate((50, 10, 30))]
    assert chosen(pressure(GIB), *kept) == {"t1"}
    assert chosen(pressure(2 * GIB), *kept) == {"t1", "t2"}


def test_one_old_victim_may_be_less_harm_than_many_new_ones() -> None:
    many = [seen(f"new{n}", use=gib(0.1), age=1.0, app=f"app{n}") for n in range(10)]
    assert chosen(pressure(GIB), seen("old", use=gib(1), age=200.0), *many) == {"old"}


def test_every_term_of_the_harm_is_told() -> None:
    gang = Gang(id="g", minimum=4, members=4)
    task = seen(
        "t", cpu=2000, memory=8 * GIB, age=100.0, kept_share=0.25, progress=0.5, priority=9, gang=gang, use=gib(1)
    )
    lower = seen("lower", priority=1, use=gib(1))
    (harm,) = {harms([task, lower], POLICY, {task.application_key: 2})(task)}
    assert (harm.age_ms, harm.size_milli, harm.lost_permille) == (100_000, 4000, 750)
    assert (harm.priority_percent, harm.near_end_percent, harm.gang_percent) == (200, 200, 400)
    assert harm.work == 100 * 4000 * 3 // 4
    assert harm.charge == 3 * 60_000
    assert harm.total == 300_000 * 2 * 2 * 4 + 180_000
    assert harm.arithmetic == (
        "4980 core-s = 100 s × 4 cores × 75 % lost × priority 200 % × near its end 200 % × gang 400 % + charge 180"
    )


def test_a_choice_explains_itself() -> None:
    tasks = [seen(f"t{n}", use=gib(1), age=float(n)) for n in range(8)]
    choice = choose(pressure(2 * GIB), node_view(*tasks), POLICY, NOBODY)
    assert [candidate.task.task.id for candidate in choice.runners_up] == ["t2", "t3", "t4", "t5", "t6"]
    lines = choice.arithmetic
    assert lines[0].startswith(f"memory_evict: full; to be freed: {2 * GIB} of memory")
    assert [line.split()[:2] for line in lines[1:4]] == [
        ["terminates", "t0:"],
        ["terminates", "t1:"],
        ["spares", "t2:"],
    ]
    assert lines[-1] == f"freed {2 * GIB} by usage, short of 0"


# Budgets


def test_an_application_that_used_up_its_budget_is_spared_as_long_as_others_suffice() -> None:
    hit, other = seen("hit", app="a", use=gib(1), age=0), seen("other", app="b", use=gib(1), age=99999)
    history = History(recent_terminations={ApplicationKey(ETL, "a"): 2})
    assert chosen(pressure(GIB), hit, other, history=history) == {"other"}
    assert chosen(pressure(2 * GIB), hit, other, history=history) == {"hit", "other"}


def test_the_victims_of_one_choice_count_in_the_budget() -> None:
    own = [seen(f"a{n}", app="a", use=gib(1), age=0) for n in range(4)]
    others = [seen(f"b{n}", app="b", use=gib(1), age=99999) for n in range(4)]
    victims = chosen(pressure(4 * GIB), *own, *others)
    assert Counter(name[0] for name in victims) == {"a": 2, "b": 2}


def test_each_termination_makes_the_next_one_of_the_application_dearer() -> None:
    tasks = seen("a", app="a", use=gib(1), age=100), seen("b", app="b", use=gib(1), age=110)
    assert chosen(pressure(GIB), *tasks) == {"a"}
    assert chosen(pressure(GIB), *tasks, history=History(recent_terminations={ApplicationKey(ETL, "a"): 1})) == {"b"}
