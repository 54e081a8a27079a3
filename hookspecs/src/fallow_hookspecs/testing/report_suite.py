"""What is tried of `report_capacity` as the call that asks."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from fallow_hookspecs.capacity import CapacityReport, Resources
from fallow_hookspecs.testing.base import NOBODYS_NODE, Open, Suite, first_row, offer_of, rows_of, smaller_by, tries
from fallow_hookspecs.testing.calling import Called, OverdueError, wait_until
from fallow_hookspecs.testing.framework import Framework

SHORT_SECONDS = 1.0
SLOW_SECONDS = 0.3
ROUNDS = 10


class ReportSuite(Suite):
    """The clauses `call.*` and `report.*`."""

    @tries("call.shape")
    def test_a_report_has_the_types_of_the_contract(self, ready: Framework, called: Called) -> None:
        ready.have_tasks(1)
        called.report(ready.nodes)  # each answer is compared with the contract

    @tries("call.deadline")
    def test_a_report_ends_in_its_time_when_the_framework_hangs(self, ready: Framework, called: Called) -> None:
        ready.hang()
        seconds = min(SHORT_SECONDS, ready.timeout_seconds)
        try:
            called.report(ready.nodes, seconds)
        except OverdueError:
            raise
        except Exception:
            return  # why does not matter here

    @tries("call.failure")
    def test_without_the_framework_a_report_is_no_answer(self, ready: Framework, called: Called) -> None:
        ready.cut_off()
        try:
            report = called.report(ready.nodes)
        except OverdueError:
            raise
        except Exception:
            return
        pytest.fail(f"nothing could be asked, and it answers: {report}")

    @tries("call.recovers")
    def test_after_a_failure_it_reports_again(self, ready: Framework, called: Called) -> None:
        ready.cut_off()
        try:
            called.report(ready.nodes)
        except Exception:
            ready.mend()
        else:
            pytest.skip("no failure, so nothing to recover from")
        wait_until(lambda: bool(_rows(called, ready)), ready.patience_seconds, "it reports again")

    @tries("call.lanes")
    def test_it_reports_while_it_publishes(self, ready: Framework, called: Called) -> None:
        row = first_row(called, ready)
        offer = offer_of(row, ready.sizes()[row.framework_node])

        def read() -> None:
            for _ in range(ROUNDS):
                assert called.report(ready.nodes).rows

        def act() -> None:
            for _ in range(ROUNDS):
                answers = called.publish(ready.nodes, (offer,)).answers
                assert answers[0].accepted == offer.total, answers

        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(read), pool.submit(act)]:
                done.result()

    @tries("report.rows")
    def test_there_is_one_row_for_each_node_asked_for(self, ready: Framework, called: Called) -> None:
        listed = [row.framework_node for row in called.report(ready.nodes).rows]
        assert sorted(listed) == sorted(ready.sizes()), f"the framework has {sorted(ready.sizes())}"

    @tries("report.rows")
    def test_no_row_is_of_another_node(self, ready: Framework, called: Called) -> None:
        rows = called.report((*ready.nodes, NOBODYS_NODE)).rows
        assert len({row.framework_node for row in rows}) == len(rows), f"one is there twice: {rows}"
        assert NOBODYS_NODE.name not in {row.node for row in rows}, "the framework has nothing on that node"
        assert called.report(()).rows == (), "no node was asked for"
        for node in ready.nodes:
            assert {row.node for row in called.report((node,)).rows} <= {node.name}, "one node was asked for"

    @tries("report.only-asks")
    def test_asking_changes_nothing(self, ready: Framework, opened: Open) -> None:
        tasks, before = ready.start_tasks(1), ready.sizes()
        with opened() as called:
            for _ in range(3):
                assert called.report(ready.nodes).answers == (), "there is an answer, and no offer"
            time.sleep(ready.settle_seconds)
        assert ready.sizes() == before
        assert set(tasks) <= ready.tasks(), "a task has ended"

    @tries("report.allocated")
    def test_allocated_is_what_tasks_were_promised(self, ready: Framework, called: Called) -> None:
        for count in (0, 2):
            ready.start_tasks(count)
            wait_until(
                lambda: {name: row.allocated for name, row in rows_of(called, ready).items()} == ready.allocated(),
                ready.patience_seconds,
                f"with {count} tasks, allocated is {ready.allocated()}, but {_shown(called, ready, 'allocated')}",
            )

    @tries("report.in-force")
    def test_in_force_is_not_what_was_last_sent(self, ready: Framework, called: Called) -> None:
        row = first_row(called, ready)
        before = ready.sizes()[row.framework_node]
        assert row.in_force in (before, None), f"the scheduler works with {before}, reported is {row.in_force}"
        ready.delay_changes()
        called.publish(ready.nodes, (offer_of(row, smaller_by(before, 1, row)),))
        assert ready.sizes()[row.framework_node] == before
        in_force = rows_of(called, ready)[row.framework_node].in_force
        assert in_force in (before, None), f"the scheduler still works with {before}, reported is {in_force}"

    @tries("report.not-negative")
    def test_nothing_is_negative(self, ready: Framework, called: Called) -> None:
        ready.have_tasks(1)
        for row in called.report(ready.nodes).rows:
            amounts = [row.allocated, row.floor, row.in_force, row.maximum]
            assert all(_least(amount) >= 0 for amount in amounts if amount is not None), row
            assert _least(row.unit) >= 1, f"the unit is {row.unit}"
            assert min(row.age_seconds, row.started_age_seconds or 0) >= 0, row

    @tries("report.units")
    def test_sizes_are_whole_units(self, ready: Framework, called: Called) -> None:
        for row in called.report(ready.nodes).rows:
            for what, amount in (("in_force", row.in_force), ("floor", row.floor), ("maximum", row.maximum)):
                assert amount is None or _is_whole(amount, row.unit), f"{what} {amount} is not whole in {row.unit}"
            if row.maximum is not None:
                assert row.floor.cpu_milli <= row.maximum.cpu_milli, row
                assert row.floor.memory_bytes <= row.maximum.memory_bytes, row

    @tries("report.age")
    def test_rows_are_no_older_than_their_call(self, ready: Framework, called: Called) -> None:
        started = time.monotonic()
        rows = called.report(ready.nodes).rows
        took = time.monotonic() - started
        assert all(0 <= row.age_seconds <= took for row in rows), f"the call took {took:.3f} s: {rows}"

    @tries("report.age")
    def test_a_slow_answer_has_its_age(self, ready: Framework, called: Called) -> None:
        ready.slow(SLOW_SECONDS)
        ages = [row.age_seconds for row in called.report(ready.nodes).rows]
        assert min(ages) >= SLOW_SECONDS, f"the framework took {SLOW_SECONDS} s to answer, the ages are {ages}"

    @tries("report.no-news")
    def test_a_node_without_news_is_not_empty(self, ready: Framework, called: Called) -> None:
        ready.start_tasks(1)
        row = first_row(called, ready)
        node = row.framework_node
        ready.lose_news(node)
        lost_at = time.monotonic()
        time.sleep(0.2)
        now = rows_of(called, ready).get(node)
        if now is not None:
            lost_for = time.monotonic() - lost_at
            assert now.age_seconds >= 0.2, f"there was no news for {lost_for:.1f} s, and its age is {now.age_seconds}"
            assert now.allocated == row.allocated, f"{row.allocated} became {now.allocated} without news"

    @tries("report.pending")
    def test_pending_is_what_waits(self, ready: Framework, called: Called) -> None:
        waits = ready.queue_tasks(2)
        if called.report(ready.nodes).pending is None:
            pytest.skip("it does not know what waits")
        wait_until(lambda: _pending(called, ready) == waits, ready.patience_seconds, f"pending is {waits}")
        pending = called.report(ready.nodes).pending
        assert pending is not None
        for one in (pending.smallest, pending.largest):
            assert one is None or (_least(one) >= 0 and _fits(one, pending.total)), pending
        if pending.smallest is not None and pending.largest is not None:
            assert _fits(pending.smallest, pending.largest), pending

    @tries("report.applications")
    def test_applications_are_listed_once(self, ready: Framework, called: Called) -> None:
        tasks = ready.start_tasks(1)
        wait_until(
            lambda: bool(called.report(ready.nodes).applications),
            ready.patience_seconds,
            f"{tasks} have an application",
        )
        listed = called.report(ready.nodes).applications
        assert len({application.id for application in listed}) == len(listed), f"one is there twice: {listed}"
        for application in listed:
            assert application.progress is None or 0 <= application.progress <= 1, application
            assert set(application.master_task_ids) <= ready.tasks(), f"a master is no task: {application}"

    @tries("report.gangs")
    def test_gangs_are_gangs(self, ready: Framework, called: Called) -> None:
        ready.have_tasks(1)
        report = called.report(ready.nodes)
        assert len({gang.id for gang in report.gangs}) == len(report.gangs), f"one is there twice: {report.gangs}"
        assert all(gang.minimum >= 1 and gang.running >= 0 for gang in report.gangs), report.gangs
        assert report.capabilities.has_gangs or not report.gangs, "it says that it has no gangs, and reports some"


def _rows(called: Called, framework: Framework) -> bool:
    try:
        return bool(called.report(framework.nodes).rows)
    except Exception:
        return False


def _pending(called: Called, framework: Framework) -> Resources | None:
    report: CapacityReport = called.report(framework.nodes)
    return None if report.pending is None else report.pending.total


def _shown(called: Called, framework: Framework, what: str) -> str:
    return f"reported is { {name: getattr(row, what) for name, row in rows_of(called, framework).items()} }"


def _least(amount: Resources) -> int:
    return min(amount.cpu_milli, amount.memory_bytes)


def _is_whole(amount: Resources, unit: Resources) -> bool:
    return amount.cpu_milli % unit.cpu_milli == 0 and amount.memory_bytes % unit.memory_bytes == 0


def _fits(small: Resources, large: Resources) -> bool:
    return small.cpu_milli <= large.cpu_milli and small.memory_bytes <= large.memory_bytes
