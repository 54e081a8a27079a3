from pathlib import Path

import pytest
from core.tests.fake_agent import CLUSTER, DEAF, HOST, Host, child, identity, key, messages

from fallow_core.agent.eviction.orders import KILL_TIMEOUT_SECONDS, Members, Orders
from fallow_core.qos.termination import Order, Route
from fallow_hookspecs import KillOrder, KillResult, Process


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Host:
    caplog.set_level("INFO", "fallow.agent")
    return Host(tmp_path, monkeypatch)


def order(*names: str, force: bool = False, route: Route = Route.PLUGIN) -> Order:
    return Order(cluster=CLUSTER, route=route, order=KillOrder(task_ids=names, reason="full", force=force))


def settled(orders: Orders, host: Host, members: Members | None = None) -> list[dict[str, KillResult]]:
    """What came of each order that has an answer now."""
    return [
        {name: answer.result for name, answer in outcome.answers.items()}
        for _, outcome in orders.settle(members or {}, host.now)
    ]


def test_an_order_goes_to_the_plugin_and_its_answer_comes_once(host: Host) -> None:
    orders = Orders(HOST)
    orders.give(order("a", "b", force=True), host.instances, {})
    assert host.killer.given == [(("a", "b"), True)]
    assert settled(orders, host) == [{"a": KillResult.TERMINATING, "b": KillResult.TERMINATING}]
    assert settled(orders, host) == []


def test_the_plugin_is_asked_and_nothing_is_signalled_while_its_lane_is_free(host: Host) -> None:
    orders = Orders(HOST)
    with child() as process:
        orders.give(order("a", force=True), host.instances, {key("a"): [identity(process)]})
        settled(orders, host, {key("a"): [identity(process)]})
        assert process.poll() is None


@pytest.mark.parametrize(("force", "status"), [(False, -15), (True, -9)])
def test_core_terminates_the_task_at_once_while_the_lane_is_busy(
    host: Host, caplog: pytest.LogCaptureFixture, force: bool, status: int
) -> None:
    host.hold()
    orders = Orders(HOST)
    orders.give(order("other"), host.instances, {})
    with child() as process:
        orders.give(order("a", force=force), host.instances, {key("a"): [identity(process)]})
        assert process.wait(5) == status
    assert settled(orders, host) == [{"a": KillResult.TERMINATING}]
    assert host.killer.orders == []
    assert messages(caplog.records, "kill_by_core") == [f"kill_by_core cluster={CLUSTER} tasks=a"]


def test_core_terminates_the_task_when_the_call_has_stalled_and_does_so_once(host: Host) -> None:
    host.hold()
    orders = Orders(HOST)
    with child(*DEAF) as process:
        members = {key("a"): [identity(process)]}
        orders.give(order("a", force=True), host.instances, members)
        host.now += KILL_TIMEOUT_SECONDS - 0.1
        assert settled(orders, host, members) == []
        assert process.poll() is None
        host.now += 0.1
        assert settled(orders, host, members) == [{"a": KillResult.TERMINATING}]
        assert process.wait(5) == -9
    assert settled(orders, host, members) == []


def test_an_answer_that_comes_after_all_is_heard(host: Host) -> None:
    host.hold()
    orders = Orders(HOST)
    orders.give(order("a"), host.instances, {})
    host.now += KILL_TIMEOUT_SECONDS
    assert settled(orders, host) == [{"a": KillResult.FAILED}]
    host.release()
    assert settled(orders, host) == [{"a": KillResult.TERMINATING}]


def test_core_terminates_the_task_when_the_call_fails(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    host.killer.fails = ConnectionError("refused")
    orders = Orders(HOST)
    with child() as process:
        members = {key("a"): [identity(process)]}
        orders.give(order("a"), host.instances, members)
        assert settled(orders, host, members) == [{"a": KillResult.TERMINATING}]
        assert process.wait(5) == -15
    assert "ConnectionError: refused" in messages(caplog.records, "kill_failed")[0]


def test_a_call_that_stalled_and_then_fails_signals_nobody_a_second_time(host: Host) -> None:
    host.hold()
    orders = Orders(HOST)
    orders.give(order("a", force=True), host.instances, {})
    host.now += KILL_TIMEOUT_SECONDS
    settled(orders, host)
    host.killer.fails = ConnectionError("refused")
    host.release()
    with child() as process:
        assert settled(orders, host, {key("a"): [identity(process)]}) == []
        assert process.poll() is None


def test_an_answer_that_comes_while_the_others_are_looked_at_is_not_lost(host: Host) -> None:
    host.hold()
    orders = Orders(HOST)
    orders.give(order("a"), host.instances, {})
    host.now += KILL_TIMEOUT_SECONDS
    found = []
    for _, outcome in orders.settle({}, host.now):
        found.append(outcome.answers["a"].result)
        host.release()  # as from the lane's thread, at the worst moment
    assert found == [KillResult.FAILED]
    assert settled(orders, host) == [{"a": KillResult.TERMINATING}]


def test_a_process_whose_pid_is_anothers_by_now_is_not_terminated(host: Host) -> None:
    host.killer.fails = ConnectionError("refused")
    orders = Orders(HOST)
    with child() as process:
        who = identity(process)
        members = {key("a"): [Process(who.pid, who.start_ticks - 1)], key("b"): [who]}
        orders.give(order("a", force=True), host.instances, members)
        ((_, outcome),) = orders.settle(members, host.now)
        assert outcome.answers["a"].result is KillResult.FAILED
        assert outcome.answers["a"].reason == "no process of it was seen"
        assert process.poll() is None


def test_processes_that_may_not_be_signalled_are_told(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("signal.pidfd_send_signal", refuse)
    host.killer.fails = ConnectionError("refused")
    orders = Orders(HOST)
    with child() as process:
        members = {key("a"): [identity(process)]}
        orders.give(order("a"), host.instances, members)
        ((_, outcome),) = orders.settle(members, host.now)
    assert outcome.answers["a"].reason == "this user may not signal its processes"


@pytest.mark.parametrize("route", [Route.CONTROLLER, Route.EVICTION])
def test_nobody_here_carries_out_what_only_others_could(host: Host, route: Route) -> None:
    orders = Orders(HOST)
    orders.give(order("a", route=route), host.instances, {})
    assert settled(orders, host) == [{"a": KillResult.NO_ACCESS}]
    assert host.killer.orders == []


def test_an_order_whose_plugin_is_not_built_yet_has_no_answer(host: Host) -> None:
    orders = Orders(HOST)
    orders.give(order("a"), {}, {})
    assert settled(orders, host) == []
