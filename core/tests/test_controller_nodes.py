"""The nodes in the controller: policies by pool, label and time, switches by scope, and bad samples."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from core.tests.fake_framework import NODE, WHOLE_NODE, World, key, size

from fallow_core.model.node_policies import Layer, NodeChange, NodePolicies, Pool, ResourceChange, Schedule, Window
from fallow_core.model.policy import PublishingMode, PublishingPolicy, SwitchState
from fallow_core.model.take_back_policy import TakeBackPolicy

ENFORCE = PublishingPolicy(mode=PublishingMode.ENFORCE)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two clusters with one node each, that fit."""
    return World(tmp_path, monkeypatch, a={"a1": size(4)}, b={"b1": size(4)})


def change(percent: int) -> NodeChange:
    return NodeChange(cpu=ResourceChange(watermark_percent=percent), memory=ResourceChange(watermark_percent=percent))


def batch(world: World) -> int:
    capacity = world.controller.ledgers[NODE.name].cpu.capacity
    assert capacity is not None
    return capacity.batch


def configure(world: World, policies: NodePolicies) -> None:
    world.controller.configure(policies, ENFORCE, TakeBackPolicy())


def test_a_node_has_the_policy_of_its_pool(world: World) -> None:
    configure(
        world,
        NodePolicies(
            default=WHOLE_NODE, pools=(Pool(name="p", node_selector={"use": "batch"}, layer=Layer(change=change(50))),)
        ),
    )
    world.tick(1)
    assert (batch(world), world.controller.state.pool(NODE.name)) == (10_000, "")
    world.controller.set_nodes((replace(NODE, labels={"use": "batch"}),))
    world.tick(1)
    assert (batch(world), world.controller.state.pool(NODE.name)) == (5_000, "p")


def test_what_may_be_lent_follows_the_clock_on_the_wall_and_then_nothing_is_taken_back_for_a_while(
    world: World,
) -> None:
    day = datetime(2026, 11, 30, tzinfo=UTC)
    window = Window(days=frozenset(range(7)), from_minute=60, to_minute=120, change=change(50))
    configure(world, NodePolicies(default=WHOLE_NODE, schedule=Schedule(time_zone="UTC", windows=(window,))))
    world.wall_offset = day.timestamp() + 3600 - 20 - world.now
    world.run(10)
    assert batch(world) == 10_000
    settled = world.controller.state.settles_until
    world.run(20)
    assert batch(world) == 5_000
    assert settled < world.now < world.controller.state.settles_until
    settled = world.controller.state.settles_until
    world.wall_offset += 3600
    world.tick(1)
    assert batch(world) == 10_000
    assert world.controller.state.settles_until == settled


def test_a_bad_label_is_named_and_the_node_goes_on(world: World, caplog: pytest.LogCaptureFixture) -> None:
    label = "node.koordinator.sh/cpu-reclaim-ratio"
    world.controller.set_nodes((replace(NODE, labels={label: "much"}),))
    world.run(3)
    assert batch(world) == 10_000
    (line,) = world.controller.state.refused.lines()
    assert line.startswith(f"nodes: labels of {NODE.name} is refused: label {label}: found 'much'; expected a share")
    assert sum(record.getMessage().startswith("input_refused") for record in caplog.records) == 1


def test_a_bad_sample_is_refused_and_the_last_good_one_grows_old(world: World) -> None:
    world.run(100)
    before = world.controller.state.nodes[NODE.name].sample
    world.used = size(-1)
    world.run(70, step=2)
    assert world.controller.state.nodes[NODE.name].sample == before
    assert [why for _, why in world.controller.state.refused.now.items()] == ["used is negative"] * 2
    reasons = world.controller.ledgers[NODE.name].cpu.rows[0].reasons
    assert any("the node's sample is" in reason for reason in reasons)
    world.used = size(1)
    world.tick(1)
    assert world.controller.state.refused.now == {}
    assert batch(world) == 9_000


def test_a_node_that_is_never_measured_drains_after_a_while_also_after_a_restart(world: World) -> None:
    world.used = size(-1)
    for _ in range(2):
        world.run(ENFORCE.withdraw_after_seconds - 20, step=20)
        assert world.sizes()["a1"].cpu_milli == 4_000
        world.start()
    world.run(ENFORCE.withdraw_after_seconds + 60, step=20)
    assert world.sizes()["a1"].cpu_milli < 4_000


@pytest.mark.parametrize("scope", ["alpha/a", "framework:alpha", f"node:{NODE.name}", "pool:p", "all"])
def test_a_switch_of_any_scope_takes_effect_with_the_next_tick_and_is_kept(world: World, scope: str) -> None:
    configure(world, NodePolicies(default=WHOLE_NODE, pools=(Pool(name="p", node_selector={}),)))
    world.run(3)
    assert scope in world.controller.scopes
    world.controller.set_switch(scope, SwitchState.DRAIN, "ada", "upgrade")
    world.tick(0.1)
    sizes = {e.key: e.size for e in world.controller.ledgers[NODE.name].cpu.rows}
    assert sizes[key("a", "a1")] < 4_000
    assert (sizes[key("b", "b1")] < 4_000) is (scope != "alpha/a")
    world.start()
    configure(world, NodePolicies(default=WHOLE_NODE, pools=(Pool(name="p", node_selector={}),)))
    world.run(3)
    switch = world.controller.switch(scope)
    assert (switch.state, switch.who, switch.why) == ("drain", "ada", "upgrade")
    assert world.controller.state.switch_at("alpha/a", NODE.name) == (scope, switch)


def test_the_strictest_switch_counts_and_lending_the_wider_one_leaves_the_narrower(world: World) -> None:
    world.run(3)
    world.controller.set_switch("all", SwitchState.HOLD, "ada", "")
    world.controller.set_switch("alpha/a", SwitchState.DRAIN, "ada", "")
    assert [world.controller.state.switch_at(f"alpha/{n}", NODE.name)[1].state for n in "ab"] == ["drain", "hold"]
    world.controller.set_switch("all", SwitchState.LEND, "ada", "")
    assert [world.controller.state.switch_at(f"alpha/{n}", NODE.name)[1].state for n in "ab"] == ["drain", "lend"]


def test_a_scope_that_is_gone_can_still_be_switched(world: World) -> None:
    configure(world, NodePolicies(default=WHOLE_NODE, pools=(Pool(name="p", node_selector={}),)))
    world.controller.set_switch("pool:p", SwitchState.STOP, "ada", "")
    configure(world, NodePolicies(default=WHOLE_NODE))
    world.tick(1)
    assert "pool:p" in world.controller.scopes
    assert world.controller.state.stopped(NODE.name) == frozenset()


def test_stop_drains_at_once_and_names_what_may_be_ended(world: World) -> None:
    world.run(3)
    assert world.controller.state.stopped(NODE.name) == frozenset()
    world.controller.set_switch(f"node:{NODE.name}", SwitchState.STOP, "ada", "")
    world.run(10)
    assert world.controller.state.stopped(NODE.name) == {"alpha/a", "alpha/b"}
    assert max(each.cpu_milli for each in world.sizes().values()) < 4_000
