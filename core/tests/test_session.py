import logging
from pathlib import Path

import pytest
from core.tests.fake_framework import FLOOR, GIB, NODE, World, cluster_config, key, plugin_of, size

from fallow_core.model.policy import AccountPolicy, PublishingMode, PublishingPolicy
from fallow_core.plugins.instance import PluginInstance
from fallow_core.plugins.lanes import LaneState
from fallow_core.plugins.session import ClusterSession
from fallow_core.plugins.size_changes import SizeCause
from fallow_hookspecs import (
    Capabilities,
    CapacityReport,
    NodeState,
    Refusal,
    ResourceCapability,
    hookimpl,
)

IN_FLIGHT_SECONDS = PublishingPolicy().in_flight_seconds


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """One cluster with one node that is too large for the host."""
    return World(tmp_path, monkeypatch, a={"a1": size(12)})


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """One cluster with two nodes that are too large for the host."""
    return World(tmp_path, monkeypatch, a={"a1": size(8), "a2": size(6)})


def lines(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.getMessage().split()[0] == name]


# Sizes in flight


def test_a_size_is_believed_from_the_moment_it_is_sent_until_it_is_seen_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, monkeypatch, a={"a1": size(5)})
    world.frameworks["a"].delay_seconds = 30
    beliefs = []
    world.frameworks["a"].seen = lambda offers: beliefs.append(world.row("a", "a1").belief("cpu"))
    world.run(64)
    assert world.offers("a") == [{"a1": size(10)}]
    assert world.row("a", "a1").belief("cpu") == 10_000
    assert [sent.size for sent in world.row("a", "a1").in_flight] == [size(10)]
    world.run(45)
    assert world.row("a", "a1").in_flight == ()
    assert world.row("a", "a1").in_force == size(10)


def test_after_an_answer_the_framework_is_asked_at_once(world: World) -> None:
    world.run(2)
    assert world.offers("a") == [{"a1": size(10)}]
    before = world.frameworks["a"].reports
    world.run(1)
    assert world.frameworks["a"].reports == before + 1


@pytest.mark.parametrize("carries_out", [True, False])
def test_a_call_without_an_answer_keeps_its_size_believed_for_the_in_flight_time(
    world: World, carries_out: bool
) -> None:
    framework = world.frameworks["a"]
    framework.nodes["a1"].in_force = size(5)
    framework.carries_out = carries_out
    world.run(55)
    framework.fails = TimeoutError("no answer")
    world.run(10)
    framework.nodes["a1"].coming = []
    framework.fails = None
    world.used = size(8)
    world.run(3)
    assert world.row("a", "a1").belief("cpu") == 10_000
    assert world.controller.ledgers[NODE.name].cpu.exposure == 8_000
    world.run(IN_FLIGHT_SECONDS + 12)
    assert world.row("a", "a1").belief("cpu") == 2_000


def test_a_size_that_has_arrived_is_not_sent_again_while_an_older_one_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, monkeypatch, a={"a1": size(5)})
    world.run(55)
    world.frameworks["a"].fails = TimeoutError("no answer")
    world.run(8)
    world.frameworks["a"].fails = None
    world.used = size(8)
    world.run(30)
    assert world.offers("a") == [{"a1": size(10)}, {"a1": size(2)}]
    assert world.row("a", "a1").belief("cpu") == 10_000


def test_a_size_without_an_answer_is_sent_again(world: World) -> None:
    framework = world.frameworks["a"]
    framework.fails = ConnectionError("reset")
    world.run(20)
    assert len(world.offers("a")) >= 3
    assert world.sizes() == {"a1": size(12)}
    framework.fails = None
    world.run(10)
    assert world.sizes()["a1"].cpu_milli == 10_000
    count = len(world.offers("a"))
    world.run(30)
    assert len(world.offers("a")) == count


def test_a_failed_row_of_a_call_is_said_and_sent_again(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.frameworks["a"].refuses = {"a1": Refusal.FAILED}
    world.run(4)
    assert (
        lines(caplog, "offer_failed")[0] == 'offer_failed cluster=alpha/a node=a1 reason="this node is refused: failed"'
    )
    world.frameworks["a"].refuses = {}
    world.run(4)
    assert world.sizes()["a1"].cpu_milli == 10_000


def test_a_refused_row_does_not_spoil_the_others_and_is_left_alone_for_a_while(
    pair: World, caplog: pytest.LogCaptureFixture
) -> None:
    framework = pair.frameworks["a"]
    framework.refuses = {"a1": Refusal.BAD_VALUE}
    pair.run(10)
    first = pair.offers("a")[0]
    assert pair.sizes()["a2"] == first["a2"] != size(6)
    assert pair.sizes()["a1"] == size(8)
    assert pair.row("a", "a1").refusal == "this node is refused: bad value"
    assert pair.row("a", "a1").in_flight == ()
    assert pair.cluster("a").counts.offers_refused == 1
    assert lines(caplog, "offer_refused") == [
        'offer_refused cluster=alpha/a node=a1 reason="this node is refused: bad value"'
    ]
    framework.refuses = {}
    pair.run(IN_FLIGHT_SECONDS + 5)
    assert pair.sizes()["a1"] != size(8)
    assert pair.row("a", "a1").refusal == ""


def test_a_node_that_was_unknown_is_asked_once_more_when_it_is_reported_as_running(pair: World) -> None:
    framework = pair.frameworks["a"]
    framework.refuses = {"a1": Refusal.UNKNOWN_NODE}
    pair.run(10)
    assert pair.cluster("a").counts.offers_refused == 2
    assert pair.sizes()["a1"] == size(8)


def test_a_refusal_without_a_reason_is_told_as_one(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.run(1)
    framework = world.frameworks["a"]
    monkeyed = framework._answer
    framework._answer = lambda offer: type(monkeyed(offer))(  # type: ignore[method-assign]
        node=offer.node, framework_node=offer.framework_node, accepted=None
    )
    world.run(2)
    assert world.row("a", "a1").refusal == "no reason was given"


def test_a_size_that_somebody_else_set_is_told_once_and_put_right(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.run(20)
    world.frameworks["a"].nodes["a1"].in_force = size(11)
    world.run(20)
    assert lines(caplog, "size_changed_by_others") == [
        f"size_changed_by_others cluster=alpha/a node=a1 cpu_milli=11000 memory_bytes={11 * GIB}"
    ]
    assert world.sizes()["a1"].cpu_milli == 10_000


def whys(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The reasons given for sizes in force that Fallow did not just send."""
    assert not lines(caplog, "size_changed_by_others")
    return [line.split('why="')[1].rstrip('"') for line in lines(caplog, "size_in_force")]


def test_the_size_of_a_daemon_that_was_started_anew_is_nobody_elses(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world.run(20)
    world.frameworks["a"].restart("a1", size(11))
    world.run(20)
    assert whys(caplog) == [SizeCause.REGISTERED]


def test_a_size_that_another_scheduler_has_is_nobody_elses_and_neither_is_the_one_that_is_sent_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world.run(20)
    node = world.frameworks["a"].nodes["a1"]
    sent, node.in_force = node.in_force, size(5)
    world.frameworks["a"].scheduler_start = "second"
    world.run(20)
    assert world.row("a", "a1").foreign_why == SizeCause.SCHEDULER
    node.in_force = sent
    world.run(20)
    assert whys(caplog) == [SizeCause.SCHEDULER, SizeCause.RESENT]
    assert world.row("a", "a1").foreign is None


def test_a_size_that_never_comes_into_force_is_said_to_be_that(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world.frameworks["a"].delay_seconds = 1e9
    world.run(IN_FLIGHT_SECONDS + 20)
    assert whys(caplog) == [SizeCause.LOST]


# Reports


def test_a_report_that_fails_changes_nothing_and_ages_grow(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.frameworks["a"].nodes["a1"].allocated = size(3)
    world.run(20)
    before = world.row("a", "a1")
    reported_at = world.cluster("a").reported_at
    world.frameworks["a"].reports_fail = ConnectionError("refused")
    world.run(100)
    after = world.row("a", "a1")
    assert after == before
    assert world.now - after.measured_at >= 100
    assert world.cluster("a").reported_at == reported_at
    assert "ConnectionError: refused" in lines(caplog, "report_failed")[0]
    assert world.cluster("a").counts.calls_failed > 3


def test_an_old_report_does_not_let_a_row_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = PublishingPolicy(mode=PublishingMode.ENFORCE, growth_delay_seconds=90)
    world = World(tmp_path, monkeypatch, policy=policy, a={"a1": size(5)})
    world.run(2)
    world.frameworks["a"].reports_fail = ConnectionError("refused")
    world.run(200, step=2)
    assert world.offers("a") == []


def test_a_row_missing_in_a_report_keeps_its_allocation(pair: World) -> None:
    pair.frameworks["a"].nodes["a2"].allocated = size(3)
    pair.run(20)
    pair.frameworks["a"].nodes["a2"].listed = False
    pair.run(100, step=2)
    assert pair.row("a", "a2").allocated == size(3)
    assert pair.now - pair.row("a", "a2").measured_at >= 90
    assert pair.controller.ledgers[NODE.name].cpu.allocated == 3000


def test_a_node_that_is_gone_is_forgotten_when_it_is_empty_and_no_longer_named(pair: World) -> None:
    pair.run(20)
    node = pair.frameworks["a"].nodes["a2"]
    node.state, node.allocated = NodeState.GONE, size(1)
    pair.run(20)
    node.listed = False
    pair.run(100, step=2)
    assert pair.row("a", "a2").state is NodeState.GONE  # its tasks may still run
    node.listed, node.allocated = True, size(0)
    pair.run(20)
    assert key("a", "a2") in pair.cluster("a").rows
    node.listed = False
    pair.run(20)
    assert key("a", "a2") not in pair.cluster("a").rows
    assert key("a", "a2") not in pair.journal_on_disk().refreshed
    assert key("a", "a2") in pair.journal_on_disk().originals
    assert pair.controller.awaited(NODE.name) == ()


def test_a_node_that_is_gone_is_not_forgotten_while_a_size_may_still_reach_it(pair: World) -> None:
    framework = pair.frameworks["a"]
    framework.fails = TimeoutError("no answer")
    pair.run(3)
    framework.nodes["a2"].state = NodeState.GONE
    pair.run(12)
    framework.nodes["a2"].listed = False
    pair.run(12)
    assert pair.row("a", "a2").in_flight != ()
    pair.run(IN_FLIGHT_SECONDS)
    assert key("a", "a2") not in pair.cluster("a").rows


def test_a_daemon_that_was_started_anew_is_read_back_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = PublishingPolicy(mode=PublishingMode.ENFORCE, report_interval_seconds=300)
    world = World(tmp_path, monkeypatch, policy=policy, a={"a1": size(12)})
    world.run(10)
    assert world.sizes() == {"a1": size(10)}
    world.frameworks["a"].restart("a1", size(11))
    world.run(6)
    assert world.sizes()["a1"].cpu_milli == 10_000


def test_the_daemons_of_the_newest_list_are_known_and_told_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world.run(20)
    assert [daemon.process.pid for daemon in world.cluster("a").daemons[NODE.name]] == [4711]
    assert world.cluster("a").observation(world.now).started(key("a", "a1")) == "4711@1"
    assert world.cluster("a").observation(world.now).started(key("a", "a2")) == ""
    assert lines(caplog, "daemons_seen") == ["daemons_seen cluster=alpha/a node=n1 pids=[4711]"]


def test_each_state_of_a_node_is_told_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world.run(20)
    world.frameworks["a"].nodes["a1"].state = NodeState.UNHEALTHY
    world.run(30)
    assert lines(caplog, "node_seen") == ["node_seen cluster=alpha/a node=a1 state=running"]
    assert lines(caplog, "node_state") == ["node_state cluster=alpha/a node=a1 state=unhealthy"]


def test_a_node_that_is_not_running_gets_no_size(world: World) -> None:
    world.frameworks["a"].nodes["a1"].state = NodeState.UNHEALTHY
    world.run(100, step=2)
    assert world.offers("a") == []
    world.frameworks["a"].nodes["a1"].state = NodeState.RUNNING
    world.run(12)
    assert world.sizes() == {"a1": size(10)}


# Lanes


def test_why_a_kind_of_call_fails_is_kept_until_one_of_that_kind_succeeds(world: World) -> None:
    framework = world.frameworks["a"]
    framework.fails, framework.reports_fail = TimeoutError("no answer"), None
    world.run(3)
    framework.reports_fail = ConnectionError("refused")
    reasons = {"offers": "TimeoutError: no answer", "report": "ConnectionError: refused"}
    world.run(20)
    for _ in range(10):  # in the meantime lists of tasks succeed
        world.run(1)
        assert world.cluster("a").failing == reasons
    framework.reports_fail = None
    world.run(20)
    assert world.cluster("a").failing.keys() == {"offers"}
    framework.fails = None
    world.run(40)
    assert world.cluster("a").failing == {}


def test_a_lane_that_does_not_come_back_is_told(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.run(2)
    world.hold("alpha/a reads")
    world.run(40)
    assert set(lines(caplog, "lane_stalled")) == {"lane_stalled cluster=alpha/a lane=reads"}
    world.release("alpha/a reads")
    caplog.clear()
    world.run(20)
    assert lines(caplog, "lane_stalled") == []


def test_after_failures_calls_with_offers_are_spaced(world: World) -> None:
    world.frameworks["a"].fails = ConnectionError("reset")
    world.run(60)
    assert 4 <= len(world.offers("a")) <= 7
    assert world.cluster("a").instance.health().acts.state is LaneState.BACKING_OFF


def test_a_plugin_that_lists_no_tasks_is_no_failing_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class OnlyReports:
        @hookimpl
        def report_capacity(self) -> CapacityReport:
            honoured = ResourceCapability(honoured=True)
            return CapacityReport(capabilities=Capabilities(cpu=honoured, memory=honoured), rows=())

        def diagnose(self, nodes: object, timeout_seconds: float) -> tuple[()]:
            return ()

        def close(self) -> None: ...

    world = World(tmp_path, monkeypatch)
    instance = PluginInstance(plugin_of(lambda _: OnlyReports()), cluster_config("bare"), clock=lambda: world.now)
    cluster = ClusterSession(instance, AccountPolicy(), world.policy)
    world.controller.add(cluster)
    world.run(20)
    assert cluster.reported_at is not None
    assert cluster.counts.calls_failed == 0
    assert caplog.records == []


def test_a_row_that_is_none_is_refused_and_changes_nothing(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.run(20)
    before = world.row("a", "a1")
    world.frameworks["a"]._row = lambda name, node: "a row"  # type: ignore[method-assign, assignment, return-value]
    world.run(20)
    assert world.row("a", "a1") == before
    assert "it is 'a row', not a ReportRow" in lines(caplog, "input_refused")[0]


def test_a_drained_node_keeps_its_floor(world: World) -> None:
    world.used = size(10)
    world.run(10)
    assert world.sizes() == {"a1": FLOOR}
