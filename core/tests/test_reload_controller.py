import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from core.tests import fake_framework
from core.tests.fake_framework import FLOOR, NOTHING, WHOLE_NODE, World, key, size

from fallow_core.ledger.rows import RowKey
from fallow_core.ledger.take_back import Decision
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.policy import ExitMode, PublishingMode, PublishingPolicy
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_core.planner.state import SETTLE_SECONDS
from fallow_core.plugins.session import PUBLISH_TIMEOUT_SECONDS
from fallow_hookspecs import NodeState, Process, ResourceCapability, ResourceName, Resources

FAST = PublishingPolicy(mode=PublishingMode.ENFORCE, growth_delay_seconds=0)
TAKES_BACK = ResourceCapability(honoured=True, takes_back=True, take_back_charged=False)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two clusters that are lent half of the host each."""
    world = World(tmp_path, monkeypatch, policy=FAST, a={"a1": size(8)}, b={"b1": size(8)})
    world.frameworks["b"].nodes["b1"].process = Process(4712, 1)
    world.run(15)
    assert world.sizes() == {"a1": size(5), "b1": size(5)}
    return world


def departing(world: World) -> dict[str, str]:
    return world.controller.state.removal_reasons


def remove(world: World, name: str, mode: ExitMode = ExitMode.FLOOR) -> None:
    world.controller.remove(f"alpha/{name}", mode)


# Another instance


def test_a_new_instance_keeps_rows_beliefs_and_what_is_known_of_tasks(world: World) -> None:
    old = world.cluster("a")
    world.build("a")
    new = world.cluster("a")
    assert new is not old
    assert (new.rows, new.lists, new.daemons, new.counts) == (old.rows, old.lists, old.daemons, old.counts)
    world.used = size(6)
    world.run(5)
    assert world.sizes() == {"a1": size(2), "b1": size(2)}


def test_a_size_whose_call_is_under_way_stays_believed_and_the_call_is_waited_for_until_its_time_is_over(
    world: World,
) -> None:
    world.hold("alpha/a acts")
    world.used = size(6)
    world.run(3)
    assert not world.controller.clusters["alpha/a"].may_be_succeeded(world.now)
    world.run(PUBLISH_TIMEOUT_SECONDS)
    assert world.controller.clusters["alpha/a"].may_be_succeeded(world.now)
    before = world.row("a", "a1")
    world.build("a")
    row = world.row("a", "a1")
    assert [sent.size for sent in row.in_flight] == [sent.size for sent in before.in_flight] != []
    assert all(sent.ended_at == world.now for sent in row.in_flight)
    assert row.belief("cpu") == 5000


def test_a_new_instance_sends_nothing_before_it_has_reported(world: World) -> None:
    world.frameworks["a"].reports_fail = ConnectionError("refused")
    world.build("a")
    calls = len(world.frameworks["a"].calls)
    world.used = size(8)
    world.run(20)
    assert len(world.frameworks["a"].calls) == calls
    assert world.row("a", "a1").belief("cpu") == 5000  # and nobody else gets what it may promise
    assert world.sizes()["b1"].cpu_milli <= 2000
    world.frameworks["a"].reports_fail = None
    world.run(60)
    assert world.sizes()["a1"].cpu_milli <= 2000


def test_a_row_that_the_new_instance_does_not_name_is_forgotten_after_a_while(world: World) -> None:
    world.frameworks["a"].nodes["a1"].listed = False
    world.build("a")
    world.run(300, step=5)
    assert world.row("a", "a1").belief("cpu") == 5000
    world.run(400, step=5)
    assert world.cluster("a").rows == {}


def test_a_row_that_an_old_instance_does_not_name_any_more_is_not_forgotten(world: World) -> None:
    world.frameworks["a"].nodes["a1"].listed = False
    world.run(900, step=5)
    assert world.row("a", "a1").belief("cpu") == 5000


# Removed


def test_a_removed_cluster_goes_to_its_floor_and_is_forgotten(world: World) -> None:
    remove(world, "a")
    world.run(3)
    assert world.sizes()["a1"] == FLOOR
    world.run(30)
    assert "alpha/a" not in world.controller.clusters
    assert world.sizes()["b1"].cpu_milli >= 9800
    assert world.controller.original(key("a", "a1")) is not None  # for when it comes back


def test_a_removed_cluster_with_tasks_stays_in_the_ledger_and_none_is_ended(world: World) -> None:
    world.frameworks["a"].nodes["a1"].allocated = size(3)
    world.run(15)
    remove(world, "a")
    world.run(60)
    assert departing(world) == {"alpha/a": "tasks run on a1"}
    assert world.controller.ledgers["n1"].cpu.allocated == 3000
    assert taken_back(world) == []
    assert world.sizes()["b1"].cpu_milli <= 7000


@pytest.mark.parametrize("mode", [ExitMode.ORIGINAL, ExitMode.KEEP])
def test_what_a_removed_cluster_keeps_is_lent_to_nobody_while_its_node_is_there(world: World, mode: ExitMode) -> None:
    remove(world, "a", mode)
    world.run(700, step=2)
    assert world.sizes() == {"a1": size(5), "b1": size(5)}
    world.frameworks["a"].nodes["a1"].state = NodeState.GONE
    world.run(60)
    assert "alpha/a" not in world.controller.clusters
    assert world.sizes()["b1"] == size(10)


def test_the_original_size_comes_back_as_far_as_nobody_else_may_have_it(world: World) -> None:
    world.used = size(4)
    world.run(15)
    assert world.sizes() == {"a1": size(3), "b1": size(3)}
    world.frameworks["b"].nodes["b1"].state = NodeState.GONE
    remove(world, "a", ExitMode.ORIGINAL)
    world.run(30)
    assert world.sizes()["a1"] == size(6)


def test_a_removed_cluster_is_dropped_at_once_where_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    observe = PublishingPolicy(mode=PublishingMode.OBSERVE)
    world = World(tmp_path, monkeypatch, policy=observe, a={"a1": size(8)}, b={"b1": size(8)})
    world.run(5)
    remove(world, "a")
    world.run(2)
    assert list(world.controller.clusters) == ["alpha/b"]
    assert world.frameworks["a"].calls == []


def test_a_removed_cluster_that_is_dead_holds_nobody_up_for_ever(world: World) -> None:
    framework = world.frameworks["a"]
    framework.reports_fail, framework.nodes["a1"].process_is_seen = ConnectionError("refused"), False
    remove(world, "a")
    world.run(300, step=2)
    assert "alpha/a" in world.controller.clusters
    world.run(400, step=2)
    assert "alpha/a" not in world.controller.clusters


def test_a_removed_cluster_can_be_forgotten_at_once(world: World) -> None:
    world.run(10)
    world.frameworks["a"].fails = world.frameworks["a"].reports_fail = TimeoutError("gone")
    remove(world, "a", ExitMode.KEEP)
    world.run(60)
    assert "alpha/a" in world.controller.state.removal_reasons
    assert [key.framework_node for key in world.controller.forget("alpha/a")] == ["a1"]
    assert (set(world.controller.clusters), dict(world.controller.state.removed)) == ({"alpha/b"}, {})
    world.run(80)
    assert world.sizes()["b1"] == size(10)


def test_nodes_that_nobody_reports_after_a_restart_can_be_forgotten_and_hold_nobody_up(world: World) -> None:
    world.run(10)
    world.start("b")
    world.run(80)
    assert world.sizes()["b1"] == size(5)
    assert [key.framework_node for key in world.controller.forget("alpha/a")] == ["a1"]
    world.run(80)
    assert world.sizes()["b1"] == size(10)
    assert key("a", "a1") not in world.journal_on_disk().known


def test_a_cluster_that_only_got_another_name_hands_its_node_over(world: World) -> None:
    world.frameworks["c"] = world.frameworks["a"]
    world.controller.add_name("alpha/c")
    world.build("c")
    remove(world, "a")
    world.run(60)
    assert sorted(world.controller.clusters) == ["alpha/b", "alpha/c"]
    assert all(4500 <= found.cpu_milli <= 5000 for found in world.sizes().values())


def test_a_cluster_that_was_restored_keeps_its_sizes_when_it_is_removed(world: World) -> None:
    world.controller.restore("ada")
    world.run(15)
    assert world.sizes() == {"a1": size(8), "b1": size(8)}
    remove(world, "a")
    world.run(15)
    assert world.sizes()["a1"] == size(8)


def test_a_restore_is_for_clusters_that_depart_too(world: World) -> None:
    world.frameworks["a"].nodes["a1"].allocated = size(1)
    world.run(15)
    remove(world, "a")
    world.run(15)
    assert world.sizes()["a1"] == FLOOR
    world.controller.restore("ada")
    world.run(15)
    assert (world.sizes()["a1"], world.left()) == (size(8), True)
    world.run(15)
    assert world.sizes()["a1"] == size(8)


def test_a_cluster_that_was_never_built_is_removed_with_what_was_awaited_of_it(world: World) -> None:
    world.start("b")
    world.run(5)
    assert world.controller.awaited("n1") == (key("a", "a1"),)
    remove(world, "a")
    assert world.controller.awaited("n1") == ()
    assert departing(world) == {}
    world.controller.add_name("alpha/a")
    assert world.controller.awaited("n1") == (key("a", "a1"),)


# Never twice


@pytest.mark.parametrize("seed", range(6))
def test_through_any_reloads_nothing_is_promised_twice_and_nothing_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    world = World(tmp_path, monkeypatch, policy=FAST, a={"a1": size(3)}, b={"b1": size(3)}, c={"c1": size(3)})
    for pid, each in enumerate(world.frameworks.values(), start=5000):
        next(iter(each.nodes.values())).process = Process(pid, 1)
        each.delay_seconds = chance.choice([0.5, 3.0, 12.0])
    for _ in range(100):
        reload(world, chance)
        allocate(world, chance)
        for _ in range(chance.randint(1, 6)):
            world.tick(1.0)
            check(world)


def reload(world: World, chance: random.Random) -> None:
    name = chance.choice("abc")
    full = f"alpha/{name}"
    if chance.random() < 0.6:
        return
    if full not in world.controller.names:
        world.controller.add_name(full)
        if full not in world.controller.clusters:
            world.build(name)
    elif chance.random() < 0.5 and world.controller.clusters[full].may_be_succeeded(world.now):
        world.build(name)
    else:
        remove(world, name, chance.choice(list(ExitMode)))


def allocate(world: World, chance: random.Random) -> None:
    """A scheduler starts tasks up to the size it works with; tasks end when they like."""
    for name, framework in world.frameworks.items():
        in_force = framework.sizes()[f"{name}1"]
        node = framework.nodes[f"{name}1"]
        if chance.random() < 0.3:
            node.allocated = NOTHING
        elif chance.random() < 0.5 and node.allocated.cpu_milli < in_force.cpu_milli:
            share = chance.randint(1, 10)
            node.allocated = Resources(in_force.cpu_milli * share // 10, in_force.memory_bytes * share // 10)


def check(world: World) -> None:
    nodes = [node for framework in world.frameworks.values() for node in framework.nodes.values()]
    for framework in world.frameworks.values():
        framework.sizes()
        assert not any(offer.take_back for call in framework.calls for offer in call)
    floors = 2  # what a cluster keeps that left the ledger, the one exception
    assert sum(node.most.cpu_milli for node in nodes) <= 10_000 + floors * FLOOR.cpu_milli
    assert sum(node.most.memory_bytes for node in nodes) <= size(10).memory_bytes + floors * FLOOR.memory_bytes


# Taking back


@pytest.fixture
def taking_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """One cluster with a take-back under way."""
    monkeypatch.setattr(fake_framework, "HONOURED", TAKES_BACK)
    world = World(tmp_path, monkeypatch, policy=FAST, a={"a1": size(8)})
    configure(world, take_back=PublishingMode.ENFORCE)
    world.run(5)
    world.frameworks["a"].nodes["a1"].allocated = size(4)
    world.run(15)
    world.used = size(8)
    world.run(75)
    assert decision(world).state.active is not None
    return world


def decision(world: World) -> Decision:
    return world.controller.state.nodes["n1"].decisions[RowKey("n1", "alpha/a", "a1"), "memory"]


def taken_back(world: World) -> list[Mapping[ResourceName, int]]:
    """Down to what the framework was told to terminate tasks."""
    return [offer.take_back for call in world.frameworks["a"].calls for offer in call if offer.take_back]


def test_a_take_back_ends_in_one_offer_that_says_down_to_what_tasks_are_terminated(taking_back: World) -> None:
    taking_back.run(70)
    assert taken_back(taking_back)[0] == {"memory": size(2).memory_bytes}


def configure(world: World, *, take_back: PublishingMode, publishing: PublishingMode = PublishingMode.ENFORCE) -> None:
    policy = TakeBackPolicy(mode=take_back, blast_percent=100)
    world.controller.configure(NodePolicies(default=WHOLE_NODE), replace(FAST, mode=publishing), policy)


@pytest.mark.parametrize(
    ("take_back", "publishing"),
    [
        (PublishingMode.OBSERVE, PublishingMode.ENFORCE),
        (PublishingMode.ENFORCE, PublishingMode.OBSERVE),
        (PublishingMode.OBSERVE, PublishingMode.OBSERVE),
    ],
)
def test_a_take_back_is_cancelled_when_the_file_forbids_it(
    taking_back: World, take_back: PublishingMode, publishing: PublishingMode
) -> None:
    configure(taking_back, take_back=take_back, publishing=publishing)
    taking_back.run(150)
    assert taken_back(taking_back) == []


def test_a_take_back_is_cancelled_when_its_cluster_is_removed(taking_back: World) -> None:
    remove(taking_back, "a")
    taking_back.run(150)
    assert taken_back(taking_back) == []


def test_after_a_changed_policy_what_is_over_only_drains_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_framework, "HONOURED", TAKES_BACK)
    world = World(tmp_path, monkeypatch, policy=FAST, a={"a1": size(8)})
    configure(world, take_back=PublishingMode.ENFORCE)
    world.run(5)
    world.frameworks["a"].nodes["a1"].allocated = size(4)
    world.run(15)
    world.controller.policy_changed()
    world.used = size(8)
    world.run(SETTLE_SECONDS - 10, step=2)
    assert decision(world).why == "the policy was changed a short time ago: it drains"
    assert world.controller.budgets("n1") == {}
    assert taken_back(world) == []
    world.run(90)
    assert taken_back(world)[0] == {"memory": size(2).memory_bytes}
