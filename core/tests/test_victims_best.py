"""Gangs, and what holds for every choice: against all sets of tasks that may end together."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from random import Random

from core.tests.qos_values import ETL, GIB, key, node_view, pressure, seen
from core.tests.test_victims import ADHOC, NOBODY, POLICY, chosen, gib, ids
from hypothesis import given, settings
from hypothesis import strategies as st

from fallow_core.model.task import ApplicationKey, ObservedTask
from fallow_core.qos.gangs import GangKey, gang_key, gangs
from fallow_core.qos.harm import harms
from fallow_core.qos.need import Need, NodeView
from fallow_core.qos.units import Cost
from fallow_core.qos.victims import History, choose
from fallow_hookspecs import Gang, Resources


def gang_of(count: int, **more: int) -> list[ObservedTask]:
    gang = Gang(id="g", minimum=more.get("minimum", count), members=more.get("members", count))
    return [seen(f"g{n}", app="gang", use=gib(1), gang=gang, age=more.get("age", 10)) for n in range(count)]


def test_a_gang_is_terminated_whole_or_not_at_all() -> None:
    alone = seen("alone", app="b", use=gib(1), age=100)
    assert chosen(pressure(GIB), *gang_of(3), alone) == {"alone"}
    assert chosen(pressure(3 * GIB), *gang_of(3), alone) == {"g0", "g1", "g2"}


def test_a_gang_with_a_member_that_may_not_be_terminated_is_not_terminated() -> None:
    members = gang_of(3)
    members[1] = replace(members[1], task=replace(members[1].task, may_be_ended=False))
    choice = choose(pressure(GIB), node_view(*members), POLICY, NOBODY)
    assert choice.victims == ()
    assert choice.ineligible[key("g0")] == "its gang cannot be terminated as a whole"
    assert choice.ineligible[key("g1")] == "its framework says that it may not be terminated"


def test_members_elsewhere_that_would_be_of_no_use_are_harm_too() -> None:
    alone = seen("alone", app="b", use=gib(2), age=100)
    assert chosen(pressure(2 * GIB), *gang_of(2), alone) == {"g0", "g1"}
    assert chosen(pressure(2 * GIB), *gang_of(2, members=40, minimum=39), alone) == {"alone"}
    assert chosen(pressure(2 * GIB), *gang_of(2, members=40, minimum=38), alone) == {"g0", "g1"}


def test_gangs_of_the_same_name_in_two_clusters_are_two() -> None:
    gang = Gang(id="g", minimum=1, members=1)
    tasks = seen("a", use=gib(1), gang=gang), seen("b", cluster=ADHOC, use=gib(1), gang=gang)
    assert len(chosen(pressure(GIB), *tasks)) == 1


def test_of_a_gang_so_many_end_that_the_rest_is_still_of_use_and_then_all() -> None:
    elastic = gang_of(4, minimum=2)
    assert len(chosen(pressure(GIB), *elastic)) == 1
    assert len(chosen(pressure(2 * GIB), *elastic)) == 2
    assert len(chosen(pressure(3 * GIB), *elastic)) == 4
    old = [seen(f"old{n}", app="b", use=gib(1), age=300) for n in range(2)]
    policy = replace(POLICY, budget=9)
    assert chosen(pressure(4 * GIB), *elastic, *old, policy=policy) == {"g0", "g1", "g2", "g3"}
    assert chosen(pressure(3 * GIB), *elastic[:3], *old, policy=policy) == {"g0", "g1", "g2"}
    dear = replace(policy, charge_core_seconds=10_000)
    assert len(chosen(pressure(3 * GIB), *elastic, *old, policy=dear) & {"old0", "old1"}) == 1


def test_a_member_that_its_gang_can_do_without_costs_no_more_than_another_task() -> None:
    alone = seen("alone", app="b", use=gib(1), age=11)
    choice = choose(pressure(GIB), node_view(*gang_of(2, members=40, minimum=39), alone), POLICY, NOBODY)
    assert [victim.harm.gang_percent for victim in choice.victims] == [100]
    assert [candidate.task.task.id for candidate in choice.runners_up] == ["g1", "alone"]


def test_members_that_may_not_be_terminated_leave_the_gang_only_what_it_can_spare() -> None:
    members = gang_of(4, minimum=2)
    members[0] = replace(members[0], task=replace(members[0].task, may_be_ended=False))
    choice = choose(pressure(4 * GIB), node_view(*members), POLICY, NOBODY)
    assert (len(ids(choice)), choice.shortfall) == (2, 2 * GIB)


def test_members_that_are_termination_here_are_not_taken_for_ones_elsewhere() -> None:
    members = gang_of(3, minimum=2)
    view = node_view(*members, terminating=frozenset({key("g0")}))
    assert ids(choose(pressure(GIB), view, POLICY, NOBODY)) == {"g1", "g2"}
    assert choose(pressure(GIB), view, POLICY, NOBODY).victims[0].harm.gang_percent == 100


def test_a_gang_that_is_on_other_nodes_too_is_the_controllers_unless_memory_is_short() -> None:
    members = gang_of(2, members=3, minimum=3)
    view = node_view(*members, seen("alone", app="b", use=gib(1), age=300))
    choice = choose(pressure(3 * GIB, masters=False), view, POLICY, NOBODY)
    assert (ids(choice), choice.ineligible[key("g0")]) == (
        {"alone"},
        "its gang is on other nodes too: the controller terminates it",
    )
    assert ids(choose(pressure(3 * GIB), view, POLICY, NOBODY)) == {"g0", "g1", "alone"}
    spanning = gang_of(2, members=3, minimum=2)
    choice = choose(pressure(2 * GIB, masters=False), node_view(*spanning), POLICY, NOBODY)
    assert (len(ids(choice)), choice.shortfall) == (1, GIB)


def gang(number: int) -> Gang:
    return Gang(id=f"g{number}", minimum=(2, 1, 3)[number], members=(3, 4, 3)[number])


def tasks_of_a_node(most: int) -> st.SearchStrategy[list[ObservedTask]]:
    task = st.builds(
        lambda app, mem, part, age, master, priority, progress, kept, held, in_gang: {
            "app": f"app{app}",
            "memory": mem * GIB,
            "use": None if part is None else Resources(0, mem * GIB * part // 4),
            "age": age,
            "master": master,
            "priority": priority,
            "progress": progress,
            "kept_share": kept,
            "may_be_ended": not held,
            "gang": gang(app) if in_gang else None,
        },
        st.integers(0, 2),
        st.integers(1, 8),
        st.one_of(st.none(), st.integers(0, 4)),
        st.one_of(st.none(), st.integers(0, 5000)),
        st.integers(0, 9).map(lambda n: n == 0),
        st.integers(0, 2),
        st.one_of(st.none(), st.sampled_from([0.0, 0.5, 0.99, 1.0])),
        st.sampled_from([0.0, 0.9, 1.0]),
        st.integers(0, 9).map(lambda n: n == 0),
        st.integers(0, 4).map(lambda n: n == 0),
    )
    return st.lists(task, max_size=most).map(lambda many: [seen(f"t{n}", **each) for n, each in enumerate(many)])


PASTS = st.dictionaries(st.integers(0, 2).map(lambda n: ApplicationKey(ETL, f"app{n}")), st.integers(0, 4)).map(
    lambda lately: History(recent_terminations=lately)
)
NEEDS = st.builds(lambda n, critical: pressure(n * GIB // 2, critical=critical), st.integers(1, 40), st.booleans())


@settings(max_examples=60)
@given(tasks_of_a_node(16), NEEDS, PASTS, st.randoms(use_true_random=False))
def test_what_holds_for_every_choice(tasks: list[ObservedTask], need: Need, history: History, random: Random) -> None:
    view = node_view(*tasks)
    choice = choose(need, view, POLICY, history)
    victims = choice.victims
    assert choice.freed == sum(victim.freed for victim in victims)
    assert choice.shortfall == max(need.amount - choice.freed, 0)
    assert all(victim.task in tasks and victim.task.task.may_be_ended for victim in victims)
    assert len({victim.task.key for victim in victims}) == len(victims)
    assert not {victim.task.key for victim in victims} & choice.ineligible.keys()
    assert Sets(tasks, view, history).cost([victim.task for victim in victims]) is not None, "no gang is torn"
    for one in victims:
        if one.task.task.gang is None:
            assert choice.freed - one.freed < need.amount, "nobody is redundant"
    shuffled = random.sample(tasks, len(tasks))
    assert choose(need, node_view(*shuffled), POLICY, history) == choice


@settings(max_examples=60)
@given(tasks_of_a_node(12), NEEDS, st.sets(st.integers(0, 11)))
def test_no_task_of_a_restored_cluster_is_chosen_and_masters_are_only_where_they_suffice_or_it_is_critical(
    tasks: list[ObservedTask], need: Need, of_restored: set[int]
) -> None:
    tasks = [replace(task, cluster=ADHOC) if n in of_restored else task for n, task in enumerate(tasks)]
    view = node_view(*tasks, restored=frozenset({ADHOC}))
    choice = choose(need, view, POLICY, NOBODY)
    assert all(victim.task.cluster == ETL for victim in choice.victims)
    assert {task.key for task in tasks if task.cluster == ADHOC} <= choice.ineligible.keys()
    if any(victim.task.is_master for victim in choice.victims):
        assert need.critical or not choice.shortfall


class Sets:
    """What sets of the tasks of a node free and cost, worked out from the harm of each and the rule of gangs."""

    def __init__(self, tasks: Sequence[ObservedTask], view: NodeView, history: History) -> None:
        self.view, self.history = view, history
        self.tasks = [task for task in tasks if task.task.may_be_ended]
        self.gangs = gangs(tasks)
        harm = harms(tasks, POLICY, history.recent_terminations)
        self.alone = {task.key: replace(harm(task), gang_percent=100).total for task in tasks}
        self.more = Counter[GangKey | None]()  # that all members of a gang end together costs so much more
        for task in tasks:
            self.more[gang_key(task)] += harm(task).total - self.alone[task.key]

    def all(self) -> Iterator[tuple[int, Cost]]:
        for count in range(len(self.tasks) + 1):
            for each in combinations(self.tasks, count):
                cost = self.cost(each)
                if cost is not None:
                    yield sum(self.view.use(task, "memory") or 0 for task in each), cost

    def cost(self, ended: Sequence[ObservedTask]) -> Cost | None:
        """`None`: these may not end together."""
        harm = sum(self.alone[task.key] for task in ended)
        for name, lost in Counter(map(gang_key, ended)).items():
            gang = None if name is None else self.gangs[name]
            if gang is not None and gang.here + gang.elsewhere - lost < gang.minimum:
                if lost < gang.here:
                    return None
                harm += self.more[name]
        left = self.history.recent_terminations
        terminations = Counter(task.application_key for task in ended)
        above = sum(max(n - max(POLICY.budget - left.get(app, 0), 0), 0) for app, n in terminations.items())
        return Cost(masters=sum(task.is_master for task in ended), above_budget=above, harm=harm, age_ms=0)


@settings(max_examples=60)
@given(tasks_of_a_node(12), NEEDS, PASTS)
def test_of_up_to_twelve_tasks_those_with_the_least_harm_end(
    tasks: list[ObservedTask], need: Need, history: History
) -> None:
    view = node_view(*tasks)
    choice = choose(need, view, POLICY, history)
    sets = Sets(tasks, view, history)
    found = sets.cost([victim.task for victim in choice.victims])
    assert found is not None, "no gang is torn"
    possible = list(sets.all())
    enough = [cost for freed, cost in possible if freed >= need.amount]
    if not enough:
        assert choice.freed == max(freed for freed, cost in possible if need.critical or not cost.masters)
        return
    least = min(enough)
    assert (choice.shortfall, found[:2]) == (0, least[:2])
    assert found.harm * 5 <= least.harm * 6
