import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from plugins.yarn.tests.lifecycle_fakes import FakeManager

from fallow_hookspecs import (
    CapacityReport,
    ClusterConfig,
    Node,
    NodeState,
    Offer,
    OfferAnswer,
    Refusal,
    ReportRow,
    Resources,
    Role,
)
from fallow_yarn.embedded.cluster import EmbeddedYarn
from fallow_yarn.embedded.settings import Settings
from fallow_yarn.lifecycle.list_file import ListFile
from fallow_yarn.lifecycle.lists import HostLists
from fallow_yarn.lifecycle.recommissioning import recommission
from fallow_yarn.lifecycle.when_empty import EMPTY_SECONDS, WhenEmpty
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.plugin import YarnInstance
from fallow_yarn.rm.nodes import State
from fallow_yarn.rm.readings import NodeReading
from fallow_yarn.settings.config import YarnSpec

HERE = Node(name="here", addresses=("localhost", "127.0.0.1"))
FLOOR = Size(128, 1)
MIB = 1 << 20
TEXT = "# ours\n"


class Later:
    """The time, and as much later as is said."""

    seconds = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.seconds


@pytest.fixture
def clock() -> Later:
    return Later()


@pytest.fixture
def exclude(tmp_path: Path) -> Path:
    path = tmp_path / "exclude"
    path.write_text(TEXT)
    return path


@pytest.fixture
def yarn(tmp_path: Path, exclude: Path) -> Iterator[EmbeddedYarn]:
    settings = Settings(
        heartbeat_seconds=0.05, starting_seconds=0, change_seconds=0, exclude_file=exclude, minimum=FLOOR
    )
    with EmbeddedYarn(tmp_path / "yarn", settings) as yarn:
        yield yarn


def instance_of(
    yarn: EmbeddedYarn, clock: Callable[[], float], when: str = "decommission", **more: object
) -> YarnInstance:
    addresses = {"client": yarn.rm.client_address, "admin": yarn.rm.admin_address, "web": yarn.rm.web_address}
    given = {"resourceManager": {"host": "127.0.0.1", **addresses}, "whenEmpty": when, **more}
    spec = YarnSpec.model_validate(given)
    return YarnInstance(ClusterConfig(name="etl", roles=frozenset(Role), spec=spec), clock)


def report(instance: YarnInstance) -> CapacityReport:
    return instance.report_capacity((HERE,), (), 10.0)


def row(instance: YarnInstance) -> ReportRow:
    """The node's row; for a moment after a change of its size nothing can be said of it."""
    rows: list[ReportRow] = []

    def seen() -> bool:
        rows[:] = report(instance).rows
        return bool(rows)

    until(seen)
    assert len(rows) == 1
    return rows[0]


def offer(instance: YarnInstance, yarn: EmbeddedYarn, size: Size) -> OfferAnswer:
    total = Resources(cpu_milli=size.vcores * 1000, memory_bytes=size.memory_mb * MIB)
    offered = Offer(node="here", framework_node=yarn.nodes["nm1"].node_id, total=total)
    (answer,) = instance.report_capacity((HERE,), (offered,), 10.0).answers
    return answer


def until(test: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not test():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_an_empty_node_leaves_and_comes_back_for_an_offer(yarn: EmbeddedYarn, exclude: Path, clock: Later) -> None:
    node_id = yarn.nodes["nm1"].node_id
    with closing(instance_of(yarn, clock, excludeFiles=[str(exclude)])) as instance:
        report(instance)
        assert offer(instance, yarn, FLOOR).accepted is not None
        floor = Resources(cpu_milli=1000, memory_bytes=128 * MIB)
        until(lambda: row(instance).in_force == floor)
        clock.seconds += EMPTY_SECONDS - 60
        assert row(instance).state is NodeState.RUNNING
        clock.seconds += 60
        until(lambda: row(instance).state is NodeState.RUNNING and "localhost" in exclude.read_text())
        removed = row(instance)
        assert (removed.framework_node, removed.in_force, removed.allocated) == (node_id, floor, Resources(0, 0))
        assert offer(instance, yarn, Size(0, 0)).accepted == Resources(0, 0)
        assert row(instance).in_force == Resources(0, 0)
        assert offer(instance, yarn, FLOOR).accepted == floor
        assert row(instance).in_force == floor
        assert exclude.read_text() == TEXT + "localhost\n"

    with closing(
        instance_of(yarn, clock, excludeFiles=[str(exclude)])
    ) as instance:  # after a restart of Fallow it knows whose they are
        assert row(instance).in_force == floor
        answer = offer(instance, yarn, Size(2048, 2))
        assert (answer.accepted, answer.refusal) == (None, Refusal.UNKNOWN_NODE)
        assert "its NodeManager has to be started" in answer.reason
        assert exclude.read_text() == TEXT
        assert row(instance).state is NodeState.GONE
        yarn.nodes["nm1"].end()
        yarn.nodes["nm1"].start()
        yarn.wait_ready()
        back = row(instance)
        assert (back.state, back.in_force) == (NodeState.RUNNING, Resources(cpu_milli=4000, memory_bytes=4096 * MIB))


def test_with_zero_a_node_has_no_floor(tmp_path: Path, clock: Later) -> None:
    settings = Settings(heartbeat_seconds=0.05, starting_seconds=0, change_seconds=0, minimum=FLOOR)
    with EmbeddedYarn(tmp_path / "yarn", settings) as yarn, closing(instance_of(yarn, clock, "zero")) as instance:
        assert row(instance).floor == Resources(0, 0)
        assert offer(instance, yarn, Size(0, 0)).accepted == Resources(0, 0)
        until(lambda: row(instance).in_force == Resources(0, 0))


def test_without_an_exclude_file_the_report_says_why_an_empty_node_stays(tmp_path: Path, clock: Later) -> None:
    settings = Settings(heartbeat_seconds=0.05, starting_seconds=0, change_seconds=0, minimum=FLOOR)
    with EmbeddedYarn(tmp_path / "yarn", settings) as yarn, closing(instance_of(yarn, clock)) as instance:
        told = report(instance)
    assert "; empty nodes are not removed: " in told.detail
    assert "set spec.excludeFiles" in told.detail
    assert [row.state for row in told.rows] == [NodeState.RUNNING]


@pytest.fixture
def manager(exclude: Path) -> FakeManager:
    return FakeManager(ListFile(exclude), n1=State.RUNNING, n2=State.RUNNING)


class Ticks:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def when_empty(manager: FakeManager, exclude: Path, ticks: Ticks) -> WhenEmpty:
    """Both nodes have had an offer."""
    given = {"resourceManager": {"host": "rm"}, "excludeFiles": [str(exclude)], "whenEmpty": "decommission"}
    made = WhenEmpty(YarnSpec.model_validate(given), ticks)
    made.take(manager, [offered("n1:1", FLOOR), offered("n2:1", FLOOR)])
    return made


def offered(node_id: str, size: Size) -> Offer:
    total = Resources(cpu_milli=size.vcores * 1000, memory_bytes=size.memory_mb * MIB)
    return Offer(node="here", framework_node=node_id, total=total)


def look(when_empty: WhenEmpty, manager: FakeManager, **used: Size) -> None:
    """A look at nodes at their floor, which have nothing allocated unless it is said."""
    nodes = {
        node.node_id: NodeReading(node=node, in_force=FLOOR, used=used.get(node.host, Size(0, 0)))
        for node in manager.nodes(Deadline.after(1))
    }
    when_empty.poll(manager, nodes, FLOOR)


def pass_time(when_empty: WhenEmpty, manager: FakeManager, ticks: Ticks, **used: Size) -> None:
    look(when_empty, manager, **used)
    ticks.now += EMPTY_SECONDS
    look(when_empty, manager, **used)


def test_a_node_with_a_task_stays(when_empty: WhenEmpty, manager: FakeManager, ticks: Ticks) -> None:
    pass_time(when_empty, manager, ticks, n1=FLOOR)
    assert manager.hosts == {"n1": State.RUNNING, "n2": State.DECOMMISSIONING}


def test_a_task_in_between_begins_the_time_anew(when_empty: WhenEmpty, manager: FakeManager, ticks: Ticks) -> None:
    look(when_empty, manager)
    ticks.now += EMPTY_SECONDS / 2
    look(when_empty, manager, n1=FLOOR)
    ticks.now += EMPTY_SECONDS / 2
    look(when_empty, manager)
    assert manager.hosts == {"n1": State.RUNNING, "n2": State.DECOMMISSIONING}


def test_a_node_without_an_offer_stays(manager: FakeManager, exclude: Path, ticks: Ticks) -> None:
    given = {"resourceManager": {"host": "rm"}, "excludeFiles": [str(exclude)], "whenEmpty": "decommission"}
    pass_time(WhenEmpty(YarnSpec.model_validate(given), ticks), manager, ticks)
    assert set(manager.hosts.values()) == {State.RUNNING}


def test_a_node_that_is_out_stays_out_for_an_offer_below_the_floor_and_is_told_at_that(
    when_empty: WhenEmpty, manager: FakeManager, exclude: Path, ticks: Ticks
) -> None:
    pass_time(when_empty, manager, ticks)
    manager.hosts.update(dict.fromkeys(manager.hosts, State.DECOMMISSIONED))
    look(when_empty, manager)
    for size in (Size(0, 0), FLOOR):
        inside, (answer,) = when_empty.take(manager, [offered("n1:1", size)])
        assert (inside, answer.accepted) == ([], offered("n1:1", size).total)
        assert when_empty.offered == {"n1:1": answer.accepted}
    recommission(manager, HostLists((ListFile(exclude),)), ["n1"])
    look(when_empty, manager)
    when_empty.take(manager, [])
    assert when_empty.removed == {"n2:1"}
    assert when_empty.offered == {}


def test_a_node_that_somebody_took_out_by_hand_is_not_taken_in(
    when_empty: WhenEmpty, manager: FakeManager, exclude: Path
) -> None:
    manager.hosts["n1"] = State.DECOMMISSIONED
    exclude.write_text(TEXT + "n1\n")
    look(when_empty, manager)
    assert when_empty.removed == frozenset()
    assert exclude.read_text() == TEXT + "n1\n"


def test_a_node_that_somebody_took_in_by_hand_is_one_like_any_other(
    when_empty: WhenEmpty, manager: FakeManager, exclude: Path, ticks: Ticks
) -> None:
    pass_time(when_empty, manager, ticks)
    manager.hosts.update(dict.fromkeys(manager.hosts, State.DECOMMISSIONED))
    look(when_empty, manager)
    assert when_empty.removed == {"n1:1", "n2:1"}
    recommission(manager, HostLists((ListFile(exclude),)), ["n1"])
    look(when_empty, manager)
    assert when_empty.removed == {"n2:1"}
    manager.hosts["n2"] = State.RUNNING
    look(when_empty, manager)
    assert when_empty.removed == frozenset()


def test_of_a_host_all_node_managers_leave_or_none(when_empty: WhenEmpty, manager: FakeManager, ticks: Ticks) -> None:
    busy = replace(manager.nodes(Deadline.after(1))[0], node_id="n1:2")

    def look_with(busy_state: State) -> None:
        nodes = {
            node.node_id: NodeReading(node=node, in_force=FLOOR, used=Size(0, 0))
            for node in (*manager.nodes(Deadline.after(1)), replace(busy, state=busy_state))
        }
        when_empty.poll(manager, nodes, FLOOR)

    look_with(State.RUNNING)
    ticks.now += EMPTY_SECONDS
    look_with(State.RUNNING)
    assert manager.hosts == {"n1": State.RUNNING, "n2": State.DECOMMISSIONING}


def test_nodes_on_their_way_that_somebody_takes_in_stay_in(
    when_empty: WhenEmpty, manager: FakeManager, exclude: Path, ticks: Ticks
) -> None:
    pass_time(when_empty, manager, ticks)
    assert set(manager.hosts.values()) == {State.DECOMMISSIONING}
    recommission(manager, HostLists((ListFile(exclude),)), ["n1", "n2"])
    ticks.now += 1
    look(when_empty, manager, n1=FLOOR, n2=FLOOR)
    look(when_empty, manager, n1=FLOOR, n2=FLOOR)
    assert set(manager.hosts.values()) == {State.RUNNING}


def test_nodes_on_their_way_are_told_to_one_that_became_active(
    when_empty: WhenEmpty, manager: FakeManager, exclude: Path, ticks: Ticks
) -> None:
    pass_time(when_empty, manager, ticks)
    manager.hosts.update(dict.fromkeys(manager.hosts, State.RUNNING))
    look(when_empty, manager)
    assert set(manager.hosts.values()) == {State.DECOMMISSIONING}
    manager.hosts.update(dict.fromkeys(manager.hosts, State.DECOMMISSIONED))
    look(when_empty, manager)
    assert when_empty.removed == {"n1:1", "n2:1"}
    assert exclude.read_text() == TEXT + "n1\nn2\n"
