from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from core.tests.qos_values import ETL, GIB, NOW, key, node_view, seen

from fallow_core.model.qos_policy import OverdraftEvictPolicy
from fallow_core.qos.need import Need, NodeView
from fallow_core.qos.overdraft_evict import LATEST_REPORT_SECONDS, OverdraftEvictState, decide

POLICY = OverdraftEvictPolicy(after_seconds=10, cool_down_seconds=20)
ADHOC = "yarn/adhoc"
MUCH = {ETL: 1000 * GIB, ADHOC: 1000 * GIB}


def over(now: float, *tasks: Any, **more: Any) -> NodeView:
    """60 GiB can be lent, and etl has 70 GiB allocated."""
    rows = {ETL: (70 * GIB, 0)}
    return node_view(
        *tasks, now=now, **{"memory_batch": 60 * GIB, "rows": rows, "termination_budget_bytes": MUCH, **more}
    )


def asked(
    views: list[NodeView], policy: OverdraftEvictPolicy = POLICY, state: OverdraftEvictState | None = None
) -> list[Need | None]:
    state = state or OverdraftEvictState()
    needs = []
    for view in views:
        state, need = decide(view, policy, state)
        needs.append(need)
    return needs


def last(views: list[NodeView]) -> Need | None:
    return asked(views)[-1]


def amount(need: Need | None) -> int:
    assert need is not None
    return need.amount


def test_what_lasts_has_to_be_freed_by_request_by_the_account_that_is_over() -> None:
    *before, need = asked([over(NOW + n) for n in range(11)])
    assert before == [None] * 10
    assert need is not None
    assert (need.amount, need.at_most, need.clusters) == (10 * GIB, 1000 * GIB, frozenset({ETL}))
    assert (need.resource, need.counted_by, need.masters) == ("memory", "request", False)
    assert need.why == "for 10 s yarn/etl has had more memory allocated than the node can lend"


def test_an_account_that_fits_for_a_moment_begins_anew() -> None:
    fits = over(NOW + 5, memory_batch=70 * GIB)
    views = [over(NOW + n) for n in range(5)] + [fits] + [over(NOW + n) for n in range(6, 17)]
    assert [need is not None for need in asked(views)] == [False] * 16 + [True]


def test_time_in_which_the_node_fits_does_not_count() -> None:
    drained = [drains(NOW + n) for n in range(20)]
    assert [
        n for n, need in enumerate(asked(drained + [over(NOW + n) for n in range(20, 35)])) if need is not None
    ] == [30]


def test_time_inside_the_floor_does_not_count() -> None:
    inside = [over(NOW + n, rows={ETL: (70 * GIB, 70 * GIB)}) for n in range(20)]
    views = inside + [over(NOW + n) for n in range(20, 35)]
    assert [n for n, need in enumerate(asked(views)) if need is not None] == [30]


def test_an_account_above_its_target_on_a_node_that_fits_drains_and_terminates_nothing() -> None:
    assert asked([drains(NOW + n) for n in range(20)]) == [None] * 20


def drains(now: float) -> NodeView:
    """80 GiB can be lent, and etl has 70 GiB of the 60 GiB that it should have."""
    view = over(now, memory_batch=80 * GIB)
    accounts = tuple(replace(account, target=60 * GIB) for account in view.ledger.memory.accounts)
    return replace(view, ledger=replace(view.ledger, memory=replace(view.ledger.memory, accounts=accounts)))


def test_nothing_inside_the_floor_is_over() -> None:
    assert amount(last([over(NOW + n, rows={ETL: (70 * GIB, 65 * GIB)}) for n in range(11)])) == 5 * GIB
    assert asked([over(NOW + n, rows={ETL: (70 * GIB, 70 * GIB)}) for n in range(20)]) == [None] * 20


def test_it_never_goes_below_the_masters() -> None:
    tasks = (
        seen("am1", memory=64 * GIB, master=True),
        seen("am2", memory=2 * GIB, master=True),
        seen("worker", memory=4 * GIB),
        seen("am", memory=3 * GIB, master=True, cluster=ADHOC),
    )
    assert amount(last([over(NOW + n, *tasks) for n in range(11)])) == 4 * GIB


def test_an_account_may_lose_no_more_than_it_may_and_one_that_is_not_named_nothing() -> None:
    need = last([over(NOW + n, termination_budget_bytes={ETL: 3 * GIB}) for n in range(11)])
    assert need is not None
    assert (need.amount, need.at_most) == (3 * GIB, 3 * GIB)
    assert asked([over(NOW + n, termination_budget_bytes={ADHOC: 3 * GIB}) for n in range(20)]) == [None] * 20


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda view: replace(view, ledger=node_view(measured=False, rows={ETL: (70 * GIB, 0)}).ledger),
        lambda view: replace(view, now=view.now + 10.1),
        lambda view: replace(view, sample=node_view(measured=False).sample),
        lambda view: replace(view, tasks_complete=False),
    ],
    ids=["no capacity", "old sample", "no sample", "incomplete list"],
)
def test_a_lost_input_terminates_nothing_and_forgets_nothing(spoilt: Callable[[NodeView], NodeView]) -> None:
    state = OverdraftEvictState()
    for n in range(10):
        state, _ = decide(over(NOW + n), POLICY, state)
    assert decide(spoilt(over(NOW + 10)), POLICY, state) == (state, None)
    assert decide(over(NOW + 10), POLICY, state)[1] is not None


def test_what_is_terminating_counts_as_being_freed_by_its_request() -> None:
    termination = seen("t", memory=4 * GIB)
    views = [over(NOW + n, termination, terminating=frozenset({key("t")})) for n in range(11)]
    assert amount(last(views)) == 6 * GIB


def test_what_has_ended_counts_until_the_next_report_must_show_it_however_short_the_cool_down() -> None:
    task = seen("t", memory=10 * GIB)
    views = [over(NOW + n, task, terminating=frozenset({key("t")})) for n in range(11)]
    views += [over(NOW + n) for n in range(11, 80)]
    assert [n for n, need in enumerate(asked(views)) if need is not None] == [10 + LATEST_REPORT_SECONDS]


def test_what_has_ended_counts_no_more_once_the_allocation_has_fallen() -> None:
    task = seen("t", memory=6 * GIB)
    views = [over(NOW + n, task, terminating=frozenset({key("t")})) for n in range(11)]
    views += [over(NOW + n, rows={ETL: (64 * GIB, 0)}) for n in range(11, 40)]
    needs = {n: amount(need) for n, need in enumerate(asked(views)) if need is not None}
    assert needs == {10: 4 * GIB, 30: 4 * GIB}  # of 70, 60 can be lent; the second one after the cool-down


def test_a_task_that_turned_out_not_to_end_counts_no_more() -> None:
    task = seen("t", memory=10 * GIB)
    views = [over(NOW + n, task, terminating=frozenset({key("t")})) for n in range(11)]
    assert amount(last([*views, over(NOW + 11, task)])) == 10 * GIB


def test_the_account_furthest_over_pays_first_and_the_other_next() -> None:
    rows = {ADHOC: (40 * GIB, 0), ETL: (50 * GIB, 0)}
    needs = asked([over(NOW + n, rows=rows) for n in range(13)])
    paying = [(n, need.clusters, need.amount) for n, need in enumerate(needs) if need is not None]
    assert [(n, *(clusters or ())) for n, clusters, _ in paying] == [(10, ETL), (11, ADHOC)]
    assert sum(amount for _, _, amount in paying) == 30 * GIB


def test_the_termination_of_one_account_frees_the_node_for_the_other() -> None:
    rows = {ADHOC: (40 * GIB, 0), ETL: (50 * GIB, 0)}
    task = seen("t", memory=28 * GIB)
    views = [over(NOW + n, task, rows=rows, terminating=frozenset({key("t")})) for n in range(11)]
    assert amount(last(views)) == 2 * GIB


@pytest.mark.parametrize(("cluster", "left"), [(ETL, 15), (ADHOC, 20)])
def test_an_account_is_credited_with_its_own_terminations(cluster: str, left: int) -> None:
    rows = {ADHOC: (40 * GIB, 0), ETL: (50 * GIB, 0)}
    task = seen("t", cluster=cluster, memory=5 * GIB)
    need = last([over(NOW + n, task, rows=rows, terminating=frozenset({task.key})) for n in range(11)])
    assert need is not None
    assert (need.clusters, need.amount) == (frozenset({ETL}), left * GIB)


def test_after_a_need_the_account_waits_for_the_cool_down() -> None:
    needs = asked([over(NOW + n) for n in range(40)])
    assert [n for n, need in enumerate(needs) if need is not None] == [10, 30]


def test_cpu_in_overdraft_terminates_nothing() -> None:
    views = [
        node_view(seen("t", cpu=64_000), now=NOW + n, cpu_allowed=0, termination_budget_bytes=MUCH) for n in range(20)
    ]
    assert asked(views) == [None] * 20


def test_an_account_that_was_stopped_pays_down_to_its_masters_also_where_all_fits() -> None:
    fits: dict[str, Any] = {"memory_batch": 90 * GIB, "rows": {ETL: (70 * GIB, 0), ADHOC: (5 * GIB, 0)}}
    assert last([over(NOW + n, **fits) for n in range(11)]) is None
    master = seen("m", memory=4 * GIB, master=True)
    need = last([replace(over(NOW + n, master, **fits), stopped=frozenset({ETL})) for n in range(11)])
    assert need is not None
    assert (need.amount, need.clusters) == (66 * GIB, frozenset({ETL}))
    assert need.why == "for 10 s yarn/etl has run although it was stopped"
    nothing = [replace(over(NOW + n, **fits, termination_budget_bytes={}), stopped=frozenset({ETL})) for n in range(11)]
    assert last(nothing) is None


def test_where_capacity_is_promised_to_all_nobody_pays_for_it() -> None:
    def shared(view: NodeView) -> NodeView:
        return replace(view, ledger=replace(view.ledger, memory=replace(view.ledger.memory, shared=True)))

    views = [over(NOW + n) for n in range(11)]
    assert last(views) is not None
    assert last([shared(view) for view in views]) is None
