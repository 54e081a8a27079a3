from collections.abc import Callable
from dataclasses import replace

import pytest
from core.tests.qos_values import CPU_CAPACITY, ETL, NOW, key, node_view, pressure, seen

from fallow_core.ledger.entries import AccountEntry
from fallow_core.model.qos_policy import CpuEvictPolicy, TerminationPolicy
from fallow_core.qos.cpu_evict import CpuEvictState, decide
from fallow_core.qos.duration import ConditionDuration
from fallow_core.qos.need import Need, NodeView
from fallow_core.qos.victims import History, choose
from fallow_hookspecs import Resources

POLICY = CpuEvictPolicy(
    satisfaction_percent=60,
    until_percent=70,
    usage_percent=80,
    window_seconds=5,
    samples=6,
    cool_down_seconds=20,
)
FRESH = CpuEvictState()
ADHOC = "yarn/adhoc"
TASKS = tuple(seen(f"t{n}", cpu=1000, use=Resources(390, 0)) for n in range(10))


def short(now: float) -> NodeView:
    """Ten tasks that requested 10 cores may use 4 and use 3.9."""
    return node_view(*TASKS, now=now, cpu_allowed=4000, cpu_batch_used=3900)


def asked(views: list[NodeView], policy: CpuEvictPolicy = POLICY, state: CpuEvictState = FRESH) -> list[Need | None]:
    needs = []
    for view in views:
        state, need = decide(view, policy, state)
        needs.append(need)
    return needs


def test_a_shortage_for_the_whole_window_asks_for_the_share_of_the_use_that_the_others_lack() -> None:
    *before, need = asked([short(NOW + n) for n in range(6)])
    assert before == [None] * 5
    assert need is not None
    assert need.amount == -(-3900 * 3 // 7)  # satisfaction is 0.4: 3/7 of the use make it 0.7
    assert (need.resource, need.counted_by, need.masters) == ("cpu", "usage", False)
    assert need.why == "for 5 s batch may use only 40 % of the CPU that it requested"
    assert need.terms == {"allowed": 4000, "requested": 10_000, "used": 3900, "until_percent": 70}


def test_tasks_of_accounts_above_their_fair_share_pay_first() -> None:
    """Etl has 8 cores allocated and adhoc 2, of 4 that can be lent: 2 would be fair for each."""
    own = [seen(f"e{n}", cluster=ETL, cpu=1000, use=Resources(400, 0), age=1000.0) for n in range(8)]
    others = [seen(f"a{n}", cluster=ADHOC, cpu=1000, use=Resources(400, 0), age=1.0) for n in range(2)]
    need = replace(pressure(1600, masters=False), resource="cpu", first=frozenset({ETL}))
    view = node_view(*own, *others)
    policy = TerminationPolicy(budget=100)
    choice = choose(need, view, policy, History())
    assert {victim.task.cluster for victim in choice.victims} == {ETL}
    assert (choice.freed, choice.shortfall) == (1600, 0)
    most = choose(replace(need, amount=3600), view, policy, History())
    assert sorted(victim.task.cluster for victim in most.victims) == [ADHOC, *[ETL] * 8]
    assert {v.task.cluster for v in choose(replace(need, first=frozenset()), view, policy, History()).victims} >= {
        ADHOC
    }


def test_the_accounts_above_their_fair_share_are_named_by_the_ledger() -> None:
    def with_accounts(view: NodeView) -> NodeView:
        accounts = tuple(
            AccountEntry(
                cluster=name, weight=1, unit=1000, allocated=allocated, in_force=0, pending=None, room=0, spare=0,
                wants=None, demand=None, limit=None, floor=0, fair=2000,
            )
            for name, allocated in ((ETL, 8000), (ADHOC, 2000))
        )  # fmt: skip
        return replace(view, ledger=replace(view.ledger, cpu=replace(view.ledger.cpu, accounts=accounts)))

    need = asked([with_accounts(short(NOW + n)) for n in range(6)])[-1]
    assert need is not None
    assert need.first == {ETL}


def test_the_window_and_the_number_of_samples_are_settings() -> None:
    two = replace(POLICY, window_seconds=1, samples=2)
    assert [need is not None for need in asked([short(NOW), short(NOW + 1)], two)] == [False, True]
    assert asked([short(NOW + n) for n in range(6)], replace(POLICY, samples=7))[-1] is None
    assert asked([short(NOW + n) for n in range(6)], replace(POLICY, window_seconds=6))[-1] is None


def test_the_same_reading_seen_again_is_not_another_sample() -> None:
    again = [replace(short(NOW), now=NOW + n / 10) for n in range(60)]
    assert asked(again, replace(POLICY, window_seconds=0)) == [None] * 60


def test_what_was_seen_survives_an_edit_of_the_policy() -> None:
    state = FRESH
    for n in range(5):
        state, _ = decide(short(NOW + n), POLICY, state)
    edited = replace(POLICY, cool_down_seconds=10, until_percent=80)
    assert decide(short(NOW + 5), edited, state)[1] is not None


def test_one_good_reading_begins_the_window_anew() -> None:
    good = node_view(*TASKS, now=NOW + 4.5, cpu_allowed=9000, cpu_batch_used=3900)
    views = [short(NOW + n) for n in range(5)] + [good] + [short(NOW + n) for n in range(5, 12)]
    assert [need is not None for need in asked(views)] == [False] * 11 + [True, False]


def test_use_below_the_allowance_is_no_shortage() -> None:
    idle = [replace(short(NOW + n), sample=node_view(now=NOW + n, cpu_batch_used=3200).sample) for n in range(10)]
    assert asked(idle) == [None] * 10


def test_at_the_satisfaction_that_is_due_there_is_no_shortage() -> None:
    assert (
        asked([node_view(*TASKS, now=NOW + n, cpu_allowed=6000, cpu_batch_used=6000) for n in range(10)]) == [None] * 10
    )


def test_a_shortage_that_is_within_the_goal_asks_for_nothing() -> None:
    assert asked([short(NOW + n) for n in range(10)], replace(POLICY, until_percent=40)) == [None] * 10


def test_a_gap_counts_as_nothing_and_costs_nothing() -> None:
    policy = replace(POLICY, window_seconds=30, samples=2)
    views = [short(NOW + n) for n in (0, 10, 25, 35, 44, 45)]
    assert [need is not None for need in asked(views, policy)] == [False] * 5 + [True]


def test_what_was_seen_before_a_gap_longer_than_the_window_is_of_another_time() -> None:
    assert asked([short(NOW + n) for n in (0, 1, 2, 3, 4, 3600)]) == [None] * 6


def test_an_old_reading_changes_nothing() -> None:
    state = CpuEvictState(low=ConditionDuration(seconds=4, samples=5, last_at=NOW - 60))
    assert decide(replace(short(NOW), now=NOW + 10.1), POLICY, state) == (state, None)


@pytest.mark.parametrize("lost", ["ledger", "sample", "list"])
def test_a_lost_input_is_not_a_zero(lost: str) -> None:
    never = node_view(*TASKS, measured=False)
    views = [short(NOW + n) for n in range(1200)]
    without: dict[str, Callable[[NodeView], NodeView]] = {
        "ledger": lambda view: replace(view, ledger=never.ledger),
        "sample": lambda view: replace(view, sample=never.sample),
        "list": lambda view: replace(view, tasks_complete=False),
    }
    views = [without[lost](view) for view in views]
    assert asked(views) == [None] * 1200


def test_slow_may_be_fine() -> None:
    assert asked([short(NOW + n) for n in range(10)], replace(POLICY, slow_is_fine=True)) == [None] * 10


def test_termination_tasks_are_counted_neither_in_requests_nor_in_use() -> None:
    ended = frozenset(key(f"t{n}") for n in range(4))
    half = [node_view(*TASKS, now=NOW + n, cpu_allowed=3000, cpu_batch_used=3900, terminating=ended) for n in range(6)]
    need = asked(half, replace(POLICY, usage_percent=70))[-1]
    assert need is not None
    assert (need.terms["requested"], need.terms["used"]) == (6000, 3900 - 4 * 390)
    by_state = tuple(seen(f"t{n}", cpu=1000, terminating=True) for n in range(4)) + TASKS[4:]
    enough = [node_view(*by_state, now=NOW + n, cpu_allowed=4800, cpu_batch_used=4800) for n in range(6)]
    assert asked(enough) == [None] * 6  # 0.8 of what still runs, not 0.48


def test_nothing_allowed_frees_all_use() -> None:
    need = asked([node_view(*TASKS, now=NOW + n, cpu_allowed=0, cpu_batch_used=300) for n in range(6)])[-1]
    assert need is not None
    assert need.amount == 300


def test_no_tasks_and_nothing_allowed_is_no_shortage() -> None:
    assert asked([node_view(now=NOW + n, cpu_allowed=0) for n in range(10)]) == [None] * 10


def test_after_a_need_it_waits_for_the_cool_down() -> None:
    needs = asked([short(NOW + n) for n in range(40)])
    assert [n for n, need in enumerate(needs) if need is not None] == [5, 25]


def test_a_busy_task_is_terminated_and_an_idle_one_that_asked_for_much_does_not() -> None:
    idle = seen("idle", cpu=8000, use=Resources(0, 0), age=1)
    busy = seen("busy", cpu=2000, use=Resources(2000, 0), age=5000)
    views = [node_view(idle, busy, now=NOW + n, cpu_allowed=2000, cpu_batch_used=2000) for n in range(6)]
    need = asked(views)[-1]
    assert need is not None
    choice = choose(need, views[-1], TerminationPolicy(), History())
    assert [victim.task.task.id for victim in choice.victims] == ["busy"]


@pytest.mark.parametrize(("used", "ends"), [(CPU_CAPACITY // 100, False), (CPU_CAPACITY // 100 + 1, True)])
def test_where_nothing_is_allowed_a_hundredth_of_the_node_is_not_yet_near(used: int, ends: bool) -> None:
    views = [node_view(*TASKS, now=NOW + n, cpu_allowed=0, cpu_batch_used=used) for n in range(6)]
    assert (asked(views)[-1] is not None) is ends


def test_what_is_promised_twice_over_is_low_by_requests_and_full_by_use() -> None:
    """Of 4 cores 6 are promised: 10 requested ones have 0.6 of what they may expect, and use nearly all there is."""

    def view(now: float, ratio: int) -> NodeView:
        found = short(now)
        capacity = found.ledger.cpu.capacity
        assert capacity is not None
        promised = replace(capacity, batch=capacity.batch_real * ratio // 100)
        return replace(found, ledger=replace(found.ledger, cpu=replace(found.ledger.cpu, capacity=promised)))

    *_, need = asked([view(NOW + n, 140) for n in range(6)])
    assert need is not None
    assert need.why == "for 5 s batch may use only 56 % of the CPU that it requested"
    assert asked([view(NOW + n, 150) for n in range(6)]) == [None] * 6


def test_what_tasks_of_a_restored_cluster_use_is_not_allowed_to_others_and_their_requests_do_not_count() -> None:
    far = [replace(task, cluster="yarn/far") for task in TASKS[:5]]
    views = [replace(short(NOW + n), tasks=(*far, *TASKS[5:]), restored=frozenset({"yarn/far"})) for n in range(6)]
    need = asked(views)[-1]
    assert need is not None
    assert need.terms == {"allowed": 4000 - 5 * 390, "requested": 5000, "used": 3900 - 5 * 390, "until_percent": 70}
    alone = [replace(view, restored=frozenset({"yarn/far", TASKS[0].cluster})) for view in views]
    assert asked(alone) == [None] * 6
