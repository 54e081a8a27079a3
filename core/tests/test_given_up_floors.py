from pathlib import Path

import pytest
from core.tests.fake_agent import CLUSTER, Host, messages
from core.tests.fake_framework import FLOOR, NODE, World, key, size
from core.tests.qos_values import ETL, GIB, NOW, node_view, pressure, seen
from core.tests.test_render import explanation

from fallow_core.cli.render_explain import explanation_lines
from fallow_core.ledger.rows import RowKey
from fallow_core.model.qos_policy import TerminationPolicy
from fallow_core.model.task import ApplicationKey, TaskKey
from fallow_core.planner.observations import NodeObservation
from fallow_core.qos.given_up_floors import FLOOR_SECONDS, Floor, floor_of, given_up, recent
from fallow_core.qos.need import Need
from fallow_core.qos.termination import FloorLoss, Phase, Termination, Terminations
from fallow_core.qos.terminations import observed
from fallow_hookspecs import KillResult, NodeState, Resources

THE_FLOOR = Floor(ETL, "nm")
ROW = RowKey("n1", CLUSTER, "nm")
MEMORY = pressure(GIB)


def lost(*times: float, node: str = "nm") -> Terminations:
    return Terminations(floor_losses=tuple(FloorLoss(ETL, node, at) for at in times))


def termination(at: float, **more: object) -> Termination:
    """A task in a floor that was ordered to end then."""
    values: dict[str, object] = {"answered": True, "floor_of": "nm"}
    return Termination(
        key=TaskKey(ETL, f"c{at}"),
        application=ApplicationKey(ETL, "app"),
        reason="memory_evict: full",
        ordered_at=at,
        grace_seconds=30.0,
        **(values | more),  # type: ignore[arg-type]
    )


# Which task is in a floor


@pytest.mark.parametrize(
    ("allocated", "floor", "batch", "found"),
    [
        (1, 1, 0, "nm"),
        (1, 2, 0, "nm"),
        (2, 1, 0, ""),  # it is above the floor
        (1, 1, 50, ""),  # more can be lent than the floor
        (1, 0, 0, ""),
    ],
)
def test_a_task_is_in_the_floor_of_a_row_that_has_no_more(allocated: int, floor: int, batch: int, found: str) -> None:
    view = node_view(rows={ETL: (allocated * GIB, floor * GIB)}, memory_batch=batch * GIB)
    assert floor_of(seen("c1"), MEMORY, view.ledger) == found


def test_only_pressure_counts_and_only_the_tasks_own_row() -> None:
    ledger = node_view(rows={ETL: (GIB, GIB)}, memory_batch=0).ledger
    overdraft = Need(
        strategy="overdraft_evict", resource="memory", amount=1, counted_by="request", enforce=True, why="over"
    )
    assert floor_of(seen("c1"), overdraft, ledger) == ""
    assert floor_of(seen("c1", cluster="yarn/adhoc"), MEMORY, ledger) == ""


# When a floor is given up


@pytest.mark.parametrize(
    ("times", "until"),
    [
        ((), None),
        ((0,), None),
        ((0, 0), None),  # chosen together
        ((0, 3599), 3599 + FLOOR_SECONDS),
        ((0, 3600), None),
        ((0, 3600, 7000), 7000 + FLOOR_SECONDS),
        ((100, 50), 100 + FLOOR_SECONDS),
    ],
)
def test_two_losses_within_an_hour_give_a_floor_up_for_an_hour_from_the_second(
    times: tuple[float, ...], until: float | None
) -> None:
    assert given_up(lost(*times), max(times, default=0.0)) == ({} if until is None else {THE_FLOOR: until})


def test_it_is_offered_again_after_that_hour_and_each_floor_counts_alone() -> None:
    both = Terminations(floor_losses=(*lost(0, 100).floor_losses, *lost(50, node="nm2").floor_losses))
    assert given_up(both, 100 + FLOOR_SECONDS - 1) == {THE_FLOOR: 100 + FLOOR_SECONDS}
    assert given_up(both, 100 + FLOOR_SECONDS) == {}


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ({}, True),
        ({"answered": False}, False),  # nobody has taken the order yet
        ({"answered": False, "forced_at": 40.0, "phase": Phase.FORCED}, True),
        ({"phase": Phase.FAILED, "failed_at": 60.0}, False),
        ({"floor_of": ""}, False),
        ({"ours": False}, False),
    ],
)
def test_a_loss_counts_from_when_the_order_is_taken(more: dict[str, object], counts: bool) -> None:
    terminations = Terminations(active=(termination(10.0, **more),), floor_losses=lost(0).floor_losses)
    assert bool(given_up(terminations, 20.0)) is counts


def test_a_loss_is_remembered_when_the_task_is_gone_and_forgotten_when_it_cannot_count_any_more() -> None:
    def look(terminations: Terminations, now: float) -> Terminations:
        return observed(terminations, (), frozenset({ETL}), frozenset(), TerminationPolicy(), now).terminations

    after = look(Terminations(active=(termination(0.0), termination(10.0))), 60.0)
    assert (after.active, after.floor_losses) == ((), lost(0.0, 10.0).floor_losses)
    assert given_up(after, 60.0) == {THE_FLOOR: 10 + FLOOR_SECONDS}
    assert look(after, 2 * FLOOR_SECONDS).floor_losses == lost(10.0).floor_losses
    assert recent(lost(0, 0, 1).floor_losses, 1.0) == lost(0, 1).floor_losses


# From the pressure to the size


def test_pressure_takes_two_tasks_in_a_floor_and_the_next_process_knows_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path, monkeypatch)
    host.rows = {CLUSTER: (GIB, GIB)}
    for name in ("first", "second"):
        assert host.evictor.floors_given_up(host.now) == {}
        host.add(name, gib=8)
        host.fill(100)
        host.tick(60)
        host.remove(name)
        host.tick(60)
    until = NOW + 180 + FLOOR_SECONDS
    assert host.evictor.floors_given_up(host.now) == {ROW: until}
    assert host.start().floors_given_up(host.now) == {ROW: until}
    assert host.evictor.floors_given_up(until) == {}


def test_orders_that_nobody_takes_cost_no_floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(tmp_path, monkeypatch)
    host.rows, host.killer.result = {CLUSTER: (GIB, GIB)}, KillResult.SPARED
    host.add("only", gib=8)
    host.fill(100)
    host.run(600)
    assert len(host.killer.orders) > 1
    assert host.evictor.floors_given_up(host.now) == {}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch, a={"a1": size(8)}, b={"b1": size(8)})


def test_a_floor_that_is_given_up_is_not_offered_and_comes_back(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "fallow.controller")
    world.used = size(10)
    world.run(60)
    assert world.sizes() == {"a1": FLOOR, "b1": FLOOR}
    until = world.now + 3000
    world.observed = NodeObservation(floors_given_up={key("a", "a1"): until})
    world.run(60)
    assert world.sizes() == {"a1": size(0), "b1": FLOOR}
    assert world.row("a", "a1").floor == FLOOR
    text = " ".join("\n".join(explanation_lines(explanation(world))).split())
    assert "given up for another 49 min: the floor of alpha/a a1; pressure terminated a task in it twice within" in text
    world.observed = NodeObservation()
    world.run(60)
    assert world.sizes() == {"a1": FLOOR, "b1": FLOOR}
    assert messages(caplog.records, "floor_given_up") == ["floor_given_up cluster=alpha/a node=a1"]
    assert len(messages(caplog.records, "floor_offered_again")) == 1


def test_where_there_is_something_to_lend_a_floor_that_is_given_up_changes_nothing(world: World) -> None:
    world.used = size(4)
    world.run(100)
    before = world.sizes()
    world.observed = NodeObservation(floors_given_up={key("a", "a1"): world.now + 3000})
    world.run(100)
    assert world.sizes() == before


def test_of_a_node_without_a_floor_none_is_given_up(world: World) -> None:
    world.frameworks["a"].nodes["a1"].state = NodeState.GONE
    world.observed = NodeObservation(floors_given_up={key("a", "a1"): world.now + 3000})
    world.run(5)
    assert world.controller.state.nodes[NODE.name].floors_given_up == {}
    assert world.row("a", "a1").floor == Resources(0, 0)
