from collections.abc import Callable, Collection
from dataclasses import replace

import pluggy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plugins.yarn.tests.yarn_fakes import (
    ETL,
    GIB,
    HOST,
    NODE_ID,
    OFFERED,
    Clock,
    FakeManager,
    entry,
    facts,
    inactive,
    instance,
    offer,
    reading,
    spec,
)

from fallow_hookspecs import (
    PROJECT,
    CapacityReport,
    ClusterConfig,
    Daemon,
    Finding,
    Instance,
    KillOrder,
    KillOutcome,
    Node,
    NodeState,
    OfferAnswer,
    Pending,
    PluginError,
    Process,
    Refusal,
    ReportRow,
    Resources,
    Role,
    TaskList,
    TryLater,
    hooks,
)
from fallow_yarn import plugin
from fallow_yarn.errors import AccessDeniedError, DeadlineError, StandbyError, UnknownNodeError, UnreachableError
from fallow_yarn.model.size import Size
from fallow_yarn.plugin import YarnInstance
from fallow_yarn.rm.admin import FAR_TIMEOUT_MS, NodeUpdate
from fallow_yarn.rm.applications import Request
from fallow_yarn.rm.connect import Shared
from fallow_yarn.rm.facts import Calculator
from fallow_yarn.rm.nodes import CustomResource, State

SECOND = "worker-1:45455"


@pytest.fixture
def yarn(manager: FakeManager) -> YarnInstance:
    """An instance that has reported once."""
    yarn = instance(manager)
    report(yarn)
    return yarn


def report(yarn: YarnInstance, *nodes: Node) -> CapacityReport:
    return yarn.report_capacity(nodes or (HOST,), (), 10.0)


def publish(yarn: YarnInstance, *offers: object) -> tuple[OfferAnswer, ...]:
    return yarn.report_capacity((HOST,), offers, 10.0).answers  # type: ignore[arg-type]


def sizes(updates: tuple[NodeUpdate, ...]) -> list[tuple[str, Size]]:
    return [(update.node_id, update.size) for update in updates]


def test_memory_goes_out_in_mib_and_cpu_in_whole_vcores_both_rounded_down(
    manager: FakeManager, yarn: YarnInstance
) -> None:
    (answer,) = publish(yarn, offer(total=Resources(1001, 107374182400)))
    assert sizes(manager.sent[0]) == [(NODE_ID, Size(102400, 1))]
    assert answer.accepted == Resources(1000, 100 * GIB)


def test_the_way_back_gives_exactly_what_was_taken(manager: FakeManager, yarn: YarnInstance) -> None:
    publish(yarn, offer(total=Resources(1001, 107374182400)))
    taken = manager.sent[0][0].size
    manager.reading_now = reading(entry(capability=taken, in_force=taken, used=taken))
    (row,) = report(yarn).rows
    assert row.in_force == row.allocated == Resources(1000, 107374182400)


def test_a_vcore_stands_for_what_the_config_says(manager: FakeManager) -> None:
    yarn = instance(manager, vcoreMilli=100)
    (row,) = report(yarn).rows
    assert (row.allocated.cpu_milli, row.unit.cpu_milli) == (200, 100)
    publish(yarn, offer(total=Resources(1999, GIB)))
    assert sizes(manager.sent[0]) == [(NODE_ID, Size(1024, 19))]


@given(
    cpu_milli=st.integers(0, 10_000_000),
    memory_bytes=st.integers(0, 1 << 50),
    vcore_milli=st.integers(1, 1_000_000),
)
def test_what_is_taken_is_never_more_than_the_offer_and_less_than_one_unit_below_it(
    cpu_milli: int, memory_bytes: int, vcore_milli: int
) -> None:
    (answer,) = publish(
        instance(FakeManager(), vcoreMilli=vcore_milli), offer(total=Resources(cpu_milli, memory_bytes))
    )
    assert answer.accepted is not None
    assert 0 <= cpu_milli - answer.accepted.cpu_milli < vcore_milli
    assert 0 <= memory_bytes - answer.accepted.memory_bytes < 1 << 20


def test_every_update_has_the_far_timeout(manager: FakeManager, yarn: YarnInstance) -> None:
    for total in (Resources(0, 0), Resources(1000, GIB), Resources(8000, 8 * GIB), Resources(9000, 9 * GIB)):
        publish(yarn, offer(total=total))
    assert [update.over_commit_timeout_ms for call in manager.sent for update in call] == [FAR_TIMEOUT_MS] * 4


def test_custom_resources_are_sent_back_as_they_were_read(manager: FakeManager, yarn: YarnInstance) -> None:
    gpus = (CustomResource(name="yarn.io/gpu", value=4, message=b"as read"),)
    manager.reading_now = reading(entry(custom=gpus), entry(SECOND))
    report(yarn)
    publish(yarn, offer(), offer(SECOND))
    assert [update.custom for update in manager.sent[0]] == [gpus, ()]


@pytest.mark.parametrize(("count", "calls"), [(3, [3]), (450, [200, 200, 50])])
def test_offers_go_in_calls_of_200_in_the_order_of_their_ids(
    manager: FakeManager, yarn: YarnInstance, count: int, calls: list[int]
) -> None:
    ids = [f"worker-1:{port}" for port in range(10001, 10001 + count)]
    manager.reading_now = reading(*(entry(node_id) for node_id in ids))
    report(yarn)
    answers = publish(yarn, *(offer(node_id) for node_id in reversed(ids)))
    assert [len(call) for call in manager.sent] == calls
    assert [update.node_id for call in manager.sent for update in call] == ids
    assert {answer.framework_node for answer in answers if answer.accepted == OFFERED} == set(ids)


def test_an_unknown_node_is_refused_and_spoils_no_other(manager: FakeManager, yarn: YarnInstance) -> None:
    answers = {a.framework_node: a for a in publish(yarn, offer("hadoop-yarn-nm-2:8041"), offer())}
    assert answers["hadoop-yarn-nm-2:8041"].refusal is Refusal.UNKNOWN_NODE
    assert "does not list" in answers["hadoop-yarn-nm-2:8041"].reason
    assert answers[NODE_ID].accepted == OFFERED
    assert sizes(manager.sent[0]) == [(NODE_ID, Size(4096, 4))]


def test_a_node_that_is_new_since_the_last_report_is_not_unknown(manager: FakeManager, yarn: YarnInstance) -> None:
    gpus = (CustomResource(name="yarn.io/gpu", value=4, message=b"as read"),)
    manager.reading_now = reading(entry(), entry(SECOND, custom=gpus))
    (answer,) = publish(yarn, offer(SECOND))
    assert answer.accepted == OFFERED
    assert manager.sent[0][0].custom == gpus


def test_offers_before_the_first_report_are_carried_out(manager: FakeManager) -> None:
    (answer,) = publish(instance(manager), offer())
    assert answer.accepted == OFFERED


def test_only_unknown_nodes_make_no_call(manager: FakeManager, yarn: YarnInstance) -> None:
    assert [a.refusal for a in publish(yarn, offer("a:1"), offer("b:1"))] == [Refusal.UNKNOWN_NODE] * 2
    assert manager.sent == []


@pytest.mark.parametrize("total", [Resources(-1, GIB), Resources(1000, -1), Resources((1 << 31) * 1000, GIB)])
def test_a_total_that_cannot_be_a_size_is_refused_and_spoils_no_other(
    manager: FakeManager, yarn: YarnInstance, total: Resources
) -> None:
    manager.reading_now = reading(entry(), entry(SECOND))
    report(yarn)
    answers = {a.framework_node: a for a in publish(yarn, offer(total=total), offer(SECOND))}
    assert answers[NODE_ID].refusal is Refusal.BAD_VALUE
    assert "cannot be a node's size" in answers[NODE_ID].reason
    assert answers[SECOND].accepted == OFFERED


def test_of_two_offers_for_one_node_the_second_is_refused(manager: FakeManager, yarn: YarnInstance) -> None:
    answers = publish(yarn, offer(), offer(total=Resources(0, 0)))
    assert sorted((a.accepted, a.refusal) for a in answers if a.accepted is None) == [(None, Refusal.BAD_VALUE)]
    assert [a.accepted for a in answers if a.accepted is not None] == [OFFERED]
    assert sizes(manager.sent[0]) == [(NODE_ID, Size(4096, 4))]


def test_each_offer_gets_the_answer_to_its_own_update(manager: FakeManager, yarn: YarnInstance) -> None:
    ids = [f"worker-1:{port}" for port in range(1, 5)]
    manager.reading_now = reading(*(entry(node_id) for node_id in ids))
    report(yarn)
    manager.refusals = {
        ids[1]: UnknownNodeError("it has gone", node=ids[1]),
        ids[2]: DeadlineError("no answer in time", maybe_sent=True),
        ids[3]: AccessDeniedError("no right"),
    }
    answers = publish(yarn, *(offer(node_id, Resources(1000 * n, GIB)) for n, node_id in enumerate(ids, 1)))
    assert [(a.framework_node, a.accepted, a.refusal, a.reason) for a in answers] == [
        (ids[0], Resources(1000, GIB), None, ""),
        (ids[1], None, Refusal.UNKNOWN_NODE, "it has gone"),
        (ids[2], None, Refusal.FAILED, "no answer in time"),
        (ids[3], None, Refusal.ACCESS_DENIED, "no right"),
    ]


def test_repeating_an_offer_sends_the_same_again(manager: FakeManager, yarn: YarnInstance) -> None:
    assert publish(yarn, offer()) == publish(yarn, offer())
    assert manager.sent[0] == manager.sent[1]


def test_publishing_asks_no_web_page_once_the_capabilities_are_known(manager: FakeManager, yarn: YarnInstance) -> None:
    def fail() -> None:
        raise AssertionError("the settings were read")

    manager.during_facts = manager.during_read = fail
    assert yarn.report_capacity((HOST,), (offer(),), 10.0).capabilities.cpu.honoured


def test_an_answer_to_offers_has_no_rows_that_could_be_taken_for_a_confirmation(yarn: YarnInstance) -> None:
    assert yarn.report_capacity((HOST,), (offer(),), 10.0).rows == ()


def test_a_report_has_the_rows_of_this_host_alone(manager: FakeManager, yarn: YarnInstance) -> None:
    manager.reading_now = reading(entry("worker-2:45454"), entry(), entry("localhost:45454"), entry("192.0.2.1:45454"))
    assert [row.framework_node for row in report(yarn).rows] == ["192.0.2.1:45454", NODE_ID]


def test_loopback_names_are_ours_where_the_resource_manager_is_local(manager: FakeManager) -> None:
    manager.reading_now = reading(entry("localhost:45454"))
    host = Node(name="n1", addresses=("localhost", "worker-1"))
    assert report(instance(manager), host).rows == ()
    local = instance(manager, resourceManager={"host": "localhost"})
    assert [row.framework_node for row in report(local, host).rows] == ["localhost:45454"]


def test_listed_node_managers_are_ours_whatever_their_address(manager: FakeManager) -> None:
    manager.reading_now = reading(entry(), entry("10.1.1.1:45454"))
    yarn = instance(manager, nodeManagers=["10.1.1.1:45454", "nowhere:1"])
    assert [row.framework_node for row in report(yarn).rows] == ["10.1.1.1:45454"]


def test_two_node_managers_of_one_host_are_two_rows(manager: FakeManager, yarn: YarnInstance) -> None:
    manager.reading_now = reading(entry(used=Size(1024, 1)), entry(SECOND, used=Size(3072, 3)))
    rows = report(yarn).rows
    assert [(row.node, row.framework_node, row.allocated.cpu_milli) for row in rows] == [
        ("n1", NODE_ID, 1000),
        ("n1", SECOND, 3000),
    ]


def test_each_node_has_its_own_rows(manager: FakeManager, yarn: YarnInstance) -> None:
    manager.reading_now = reading(entry(), entry("worker-2:45454"))
    rows = report(yarn, HOST, Node(name="n2", addresses=("worker-2",))).rows
    assert [(row.node, row.framework_node) for row in rows] == [("n1", NODE_ID), ("n2", "worker-2:45454")]


def test_an_unhealthy_node_keeps_its_last_allocation_until_it_is_gone(manager: FakeManager, yarn: YarnInstance) -> None:
    manager.reading_now = reading(entry(used=Size(4096, 8)))
    report(yarn)
    unhealthy = reading(entry(state=State.UNHEALTHY, in_force=None, used=None))
    manager.reading_now = unhealthy
    (row,) = report(yarn).rows
    assert (row.state, row.allocated.cpu_milli) == (NodeState.UNHEALTHY, 8000)
    manager.reading_now = reading(entry(state=State.LOST, in_force=None, used=None))
    (row,) = report(yarn).rows
    assert (row.state, row.allocated.cpu_milli) == (NodeState.GONE, 0)
    manager.reading_now = unhealthy
    (row,) = report(yarn).rows
    assert row.allocated.cpu_milli == 0


def test_a_node_that_the_resource_manager_does_not_list_yet_is_left_out(
    manager: FakeManager, yarn: YarnInstance
) -> None:
    manager.reading_now = reading()
    assert report(yarn).rows == ()


def test_a_node_manager_that_comes_back_with_its_own_size_shows_in_the_next_report(
    manager: FakeManager, yarn: YarnInstance
) -> None:
    publish(yarn, offer(total=Resources(20000, 40 * GIB)))
    manager.reading_now = reading(entry(capability=Size(1024, 1), in_force=Size(1024, 1), used=Size(0, 0)))
    (row,) = report(yarn).rows
    assert row.in_force == Resources(1000, GIB)
    publish(yarn, offer(total=Resources(20000, 40 * GIB)))
    assert sizes(manager.sent[1]) == [(NODE_ID, Size(40960, 20))]


def test_ages_count_from_when_the_reading_began(manager: FakeManager) -> None:
    clock = Clock()
    manager.during_facts, manager.during_read = clock.wait(4.0), clock.wait(1.5)
    (row,) = report(instance(manager, clock)).rows
    assert row.age_seconds == 1.5


def test_every_call_of_a_hook_ends_when_its_own_time_does(manager: FakeManager) -> None:
    clock = Clock()
    manager.during_facts = clock.wait(4.0)
    yarn = instance(manager, clock)
    yarn.report_capacity((HOST,), (), 10.0)
    yarn.report_capacity((HOST,), (offer(),), 3.0)
    yarn.diagnose((HOST,), 5.0)
    assert {deadline.at for deadline in manager.deadlines} == {1010.0, 1004.0 + 3.0, 1004.0 + 5.0}


def test_pending_is_known_or_not(manager: FakeManager, yarn: YarnInstance) -> None:
    assert report(yarn).pending is None
    manager.reading_now = reading(entry(), pending=Size(2048, 3))
    assert report(yarn).pending == Pending(total=Resources(3000, 2 * GIB))


def test_what_applications_wait_for_is_read_with_them_once_in_a_while(manager: FakeManager) -> None:
    clock = Clock()
    yarn = instance(manager, clock)
    manager.reading_now = reading(entry(), pending=Size(1024, 2), pending_containers=2)
    request = Request(size=Size(512, 1), containers=2)
    manager.applications_now = (replace(ETL, requests=(request,)), replace(ETL, id="x", has_containers=False))
    first = report(yarn)
    assert first.pending == Pending(
        total=Resources(2000, GIB),
        smallest=Resources(1000, GIB // 2),
        largest=Resources(1000, GIB // 2),
        detail="2 containers of al in root.batch",
    )
    assert [application.id for application in first.applications] == [ETL.id]
    manager.applications_now = ()
    for seconds, asked in ((10, False), (19, False), (1, True), (1, False)):
        clock.now += seconds
        report(yarn)
        assert manager.asked_for_requests[-1] is asked


def test_where_nothing_waits_no_requests_are_read(manager: FakeManager, yarn: YarnInstance) -> None:
    manager.reading_now = reading(entry(), pending=Size(0, 0), pending_containers=0)
    manager.asked_for_requests.clear()
    assert report(yarn).pending == Pending(total=Resources(0, 0))
    assert manager.asked_for_requests == [False]


def test_of_very_many_applications_the_requests_are_not_read(manager: FakeManager, yarn: YarnInstance) -> None:
    manager.applications_now = tuple(replace(ETL, id=f"application_1_{i:04}") for i in range(501))
    manager.reading_now = reading(entry(), pending=Size(1024, 2), pending_containers=2)
    report(yarn)
    manager.asked_for_requests.clear()
    report(yarn)
    assert manager.asked_for_requests == [False]


def test_the_largest_node_that_is_not_lent_from_here_is_told(manager: FakeManager, yarn: YarnInstance) -> None:
    assert report(yarn).largest_elsewhere is None
    manager.reading_now = reading(entry(), entry("elsewhere:1", in_force=Size(4096, 16)))
    assert report(yarn).largest_elsewhere == Resources(16000, 4 * GIB)


def test_capabilities_and_floors_follow_the_resource_manager_when_it_changes(
    manager: FakeManager, yarn: YarnInstance
) -> None:
    before = report(yarn)
    manager.facts_now = facts("3.2.4", calculator=Calculator.DEFAULT)
    after = report(yarn)
    assert (before.capabilities.cpu.honoured, after.capabilities.cpu.honoured) == (True, False)
    assert (before.rows[0].floor, after.rows[0].floor) == (Resources(1000, 256 << 20), Resources(0, 0))


def test_a_report_says_which_start_of_which_resource_manager_made_it(manager: FakeManager, yarn: YarnInstance) -> None:
    first = report(yarn).scheduler_start
    assert first == report(yarn).scheduler_start
    identity = manager.facts_now.identity
    manager.facts_now = replace(
        manager.facts_now, identity=replace(identity, started_on=(identity.started_on or 0) + 1)
    )
    assert report(yarn).scheduler_start not in ("", first)
    manager.facts_now = replace(manager.facts_now, identity=replace(identity, started_on=None))
    assert report(yarn).scheduler_start == ""


def test_the_detail_says_who_answered(yarn: YarnInstance) -> None:
    assert report(yarn).detail == "ResourceManager 3.5.0 at rm:8033; containers of at most 8192 MB and 8 vcores"


@pytest.mark.parametrize("call", [report, lambda yarn: publish(yarn, offer())], ids=["report", "publish"])
def test_a_resource_manager_that_cannot_be_reached_is_a_clear_error(
    manager: FakeManager, yarn: YarnInstance, call: Callable[[YarnInstance], object]
) -> None:
    manager.failure = UnreachableError("rm:8032 (spec.resourceManager.client): connection refused")
    with pytest.raises(PluginError, match=r"^rm:8032 \(spec.resourceManager.client\): connection refused$") as caught:
        call(yarn)
    assert not isinstance(caught.value, TryLater)


@pytest.mark.parametrize("call", [report, lambda yarn: publish(yarn, offer())], ids=["report", "publish"])
def test_a_standby_is_asked_again_later(
    manager: FakeManager, yarn: YarnInstance, call: Callable[[YarnInstance], object]
) -> None:
    manager.failure = StandbyError("rm:8033: it is a standby")
    with pytest.raises(TryLater, match=r"^rm:8033: it is a standby$") as caught:
        call(yarn)
    assert 0 < caught.value.after_seconds <= 5


def test_a_resource_manager_that_still_starts_has_no_nodes_to_report(manager: FakeManager, yarn: YarnInstance) -> None:
    manager.facts_now, manager.reading_now = inactive(), reading()
    with pytest.raises(TryLater, match=r"rm:8033.*not active: INITIALIZING"):
        report(yarn)


def test_an_instance_works_again_after_a_failure(manager: FakeManager, yarn: YarnInstance) -> None:
    manager.failure = UnreachableError("down")
    with pytest.raises(PluginError):
        report(yarn)
    manager.failure = None
    assert len(report(yarn).rows) == 1


def test_one_cluster_that_is_down_holds_up_no_other() -> None:
    down, up = FakeManager(), FakeManager()
    down.failure = UnreachableError("down")
    first, second = instance(down), instance(up)
    with pytest.raises(PluginError):
        report(first)
    assert len(report(second).rows) == 1
    assert publish(second, offer())[0].accepted == OFFERED


def test_two_clusters_on_one_host_talk_to_their_own_resource_managers() -> None:
    managers = FakeManager(), FakeManager()
    managers[1].reading_now = reading(entry(SECOND))
    yarns = [instance(manager) for manager in managers]
    assert [[row.framework_node for row in report(yarn).rows] for yarn in yarns] == [[NODE_ID], [SECOND]]
    publish(yarns[0], offer())
    publish(yarns[1], offer(SECOND))
    assert [[update.node_id for call in m.sent for update in call] for m in managers] == [[NODE_ID], [SECOND]]


def test_the_lanes_have_a_resource_manager_each_and_share_what_they_know() -> None:
    built: list[tuple[FakeManager, Shared]] = []

    def build(_places: object, shared: Shared) -> FakeManager:
        built.append((FakeManager(), shared))
        return built[-1][0]

    yarn = YarnInstance(ClusterConfig(name="etl", roles=frozenset(Role), spec=spec()), manager=build)
    report(yarn)
    publish(yarn, offer())
    (reads, shared), (acts, also_shared) = built
    assert shared is also_shared
    assert (reads.sent, len(acts.sent)) == ([], 1)
    yarn.close()
    assert (reads.closed, acts.closed) == (1, 1)


def test_without_a_fake_the_addresses_of_the_spec_are_used() -> None:
    yarn = YarnInstance(ClusterConfig(name="etl", roles=frozenset(Role), spec=spec(resourceManager={"host": "::1"})))
    yarn.close()


def test_daemons_are_asked_for_by_the_ids_that_are_ours_and_not_gone(
    manager: FakeManager, yarn: YarnInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[list[str], tuple[Daemon, ...]]] = []
    daemon = Daemon(process=Process(7, 42), framework_node=NODE_ID)

    def node_managers(ids: Collection[str], before: tuple[Daemon, ...], *_: object) -> tuple[Daemon, ...]:
        asked.append((list(ids), before))
        return (daemon,)

    monkeypatch.setattr(plugin, "node_managers", node_managers)
    manager.reading_now = reading(entry(), entry("worker-1:40000", state=State.LOST), entry("worker-2:45454"))
    report(yarn)
    tasks = yarn.list_tasks(HOST, 5.0)
    yarn.list_tasks(HOST, 5.0)
    assert asked == [([NODE_ID], ()), ([NODE_ID], (daemon,))]
    assert tasks.daemons == (daemon,)


def through_pluggy(yarn: YarnInstance) -> pluggy.PluginManager:
    pm = pluggy.PluginManager(PROJECT)
    pm.add_hookspecs(hooks)
    assert pm.register(yarn) is not None
    pm.check_pending()
    return pm


def test_the_hooks_answer_through_a_plugin_manager(yarn: YarnInstance) -> None:
    hook = through_pluggy(yarn).hook
    assert hook.report_capacity(nodes=(HOST,), offers=(), timeout_seconds=10.0) == report(yarn)
    answered = hook.report_capacity(nodes=(HOST,), offers=(offer(),), timeout_seconds=10.0)
    assert answered.answers == publish(yarn, offer())
    assert hook.list_tasks(node=HOST, timeout_seconds=10.0).complete is False
    order = KillOrder(task_ids=(), reason="memory is short")
    assert hook.kill_tasks(node=HOST, order=order, timeout_seconds=10.0) == KillOutcome()
    assert hook.set_cgroup_parent(node=HOST, parent="batch", timeout_seconds=10.0).tasks == ()


def test_errors_come_through_a_plugin_manager_as_they_are(manager: FakeManager, yarn: YarnInstance) -> None:
    manager.failure = StandbyError("a standby")
    with pytest.raises(TryLater):
        through_pluggy(yarn).hook.report_capacity(nodes=(HOST,), offers=(), timeout_seconds=10.0)


READINGS = {
    "running": reading(entry(), entry(SECOND)),
    "nothing known": reading(entry(in_force=None, used=None)),
    "gone": reading(entry(state=State.LOST, in_force=None, used=None)),
    "empty": reading(),
    "pending": reading(entry(), pending=Size(1, 1)),
}


@pytest.mark.parametrize("now", READINGS.values(), ids=READINGS)
def test_every_answer_is_made_of_the_contracts_types(manager: FakeManager, now: object) -> None:
    manager.reading_now = now  # type: ignore[assignment]
    yarn = instance(manager)
    assert isinstance(yarn, Instance)
    found = report(yarn)
    assert isinstance(found, CapacityReport)
    assert isinstance(found.pending, Pending | None)
    for row in found.rows:
        assert isinstance(row, ReportRow)
        assert isinstance(row.state, NodeState)
        assert isinstance(row.age_seconds, float)
        amounts = [row.allocated, row.unit, row.floor, *([row.in_force] if row.in_force else [])]
        assert all(type(value) is int and value >= 0 for a in amounts for value in (a.cpu_milli, a.memory_bytes))
    answers = publish(yarn, offer(), offer("nowhere:1"), offer(SECOND, memory=60))
    assert len(answers) == 3
    for answer in answers:
        assert isinstance(answer, OfferAnswer)
        assert (answer.accepted is None) == isinstance(answer.refusal, Refusal)
        assert answer.accepted is not None or answer.reason
    assert isinstance(yarn.list_tasks(HOST, 5.0), TaskList)
    findings = yarn.diagnose((HOST,), 5.0)
    assert findings
    assert all(isinstance(finding, Finding) for finding in findings)
