import logging
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_framework import FLOOR, GIB, NODE, Framework, World, key, size

from fallow_core.model.policy import AccountPolicy, ExitMode, Limit, PublishingMode, PublishingPolicy, SwitchState
from fallow_hookspecs import Broken, NodeState, Refusal, Resources, TryLater

OBSERVE = PublishingPolicy(mode=PublishingMode.OBSERVE)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two clusters with one node each, that together believe in more than the host has."""
    return World(tmp_path, monkeypatch, a={"a1": size(8)}, b={"b1": size(8)})


def lines(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.getMessage().split()[0] == name]


# Publishing


def test_in_observe_mode_nothing_is_sent_and_what_would_be_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world = World(tmp_path, monkeypatch, policy=OBSERVE, a={"a1": size(8)}, b={"b1": size(8)})
    world.run(200, step=2)
    assert world.offers("a") == world.offers("b") == []
    assert world.controller.state.due[key("a", "a1")].size == size(5)
    assert lines(caplog, "offer_not_sent") == [
        f"offer_not_sent mode=observe cluster=alpha/{name} node={name}1 cpu_milli=5000 memory_bytes={5 * GIB} "
        f'why="{world.controller.state.due[key("a", "a1")].why}"'
        for name in "ab"
    ]
    assert not (tmp_path / "published.jsonl").exists()


def test_in_observe_mode_a_change_beyond_the_band_is_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world = World(tmp_path, monkeypatch, policy=OBSERVE, a={"a1": size(10)})
    for used, told in ((5.0, 1), (5.1, 1), (7.0, 2), (5.0, 3)):
        world.used = size(used)
        world.run(5)
        assert len(lines(caplog, "offer_not_sent")) == told


def test_all_due_rows_of_a_cluster_go_in_one_call_the_largest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, monkeypatch, a={"a1": size(2), "a2": size(6), "a3": size(4)})
    for node in world.frameworks["a"].nodes.values():
        node.allocated = Resources(node.in_force.cpu_milli // 2, node.in_force.memory_bytes // 2)
    world.used = size(4)
    world.run(2)
    ((*sent,),) = world.frameworks["a"].calls
    assert [offer.framework_node for offer in sent] == ["a2", "a3", "a1"]
    assert [offer.total.memory_bytes for offer in sent] == [3 * GIB, 2 * GIB, GIB]
    assert not any(offer.take_back for offer in sent)


def test_what_is_urgent_is_sent_at_most_once_a_second(world: World) -> None:
    sent_at = []
    world.frameworks["a"].seen = lambda offers: sent_at.append(world.now)
    for step in range(100):
        world.used = size(step / 20)
        world.tick(0.1)
    pauses = [later - earlier for earlier, later in pairwise(sent_at)]
    assert len(pauses) >= 2, "the third fall goes ahead of the load"
    assert min(pauses) > 0.99
    assert min(pauses) < 1.2


def test_a_tick_that_is_hardly_early_does_not_make_what_is_urgent_wait_for_the_next(world: World) -> None:
    sent_at: list[float] = []
    world.frameworks["a"].seen = lambda offers: sent_at.append(world.now)
    for step in range(10):
        world.used = size(step / 2)
        world.tick(0.98)
    assert max(later - earlier for earlier, later in pairwise(sent_at)) == pytest.approx(0.98)


def test_what_is_not_urgent_waits_for_the_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = PublishingPolicy(mode=PublishingMode.ENFORCE, growth_delay_seconds=0, publish_interval_seconds=7)
    world = World(tmp_path, monkeypatch, policy=policy, a={"a1": size(5)})
    sent_at = []
    world.frameworks["a"].seen = lambda offers: sent_at.append(world.now)
    for step in range(300):
        world.used = size(5 - step / 60)
        world.tick(0.1)
    pauses = [later - earlier for earlier, later in pairwise(sent_at)]
    assert len(pauses) >= 2
    assert min(pauses) >= 7


def test_a_change_within_the_band_is_not_worth_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch, a={"a1": size(9.5)})
    world.run(200, step=2)
    assert world.offers("a") == []


def test_growth_comes_only_after_the_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch, a={"a1": size(5)})
    world.run(58)
    assert world.offers("a") == []
    world.run(10)
    assert world.offers("a") == [{"a1": size(10)}]


def test_growth_does_not_come_before_the_hold_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch, a={"a1": size(5)})
    for _ in range(5):
        world.run(50)
        world.start()
    assert world.offers("a") == []


@pytest.mark.parametrize("error", [TryLater("standby", 30.0), Broken("no such user"), ValueError("garbage")])
def test_a_failing_cluster_delays_no_other(world: World, error: Exception) -> None:
    world.frameworks["a"].fails = world.frameworks["a"].reports_fail = error
    world.run(20)
    world.used = size(8)
    world.run(4)
    assert world.frameworks["a"].calls == []
    assert world.sizes() == {"a1": size(8), "b1": size(2)}


@pytest.mark.parametrize("lane", ["alpha/a reads", "alpha/a acts"])
def test_a_cluster_that_does_not_answer_delays_no_other(world: World, lane: str) -> None:
    world.hold(lane)
    world.run(5)
    assert world.sizes()["b1"] in (size(8), size(5))
    world.used = size(8)
    world.run(5)
    assert world.sizes()["b1"].cpu_milli <= 2000
    assert world.sizes()["a1"] == size(8)


def test_a_call_that_hangs_is_not_made_twice(world: World) -> None:
    world.hold("alpha/a acts")
    world.run(100, step=2)
    assert world.held["alpha/a acts"] is not None
    assert len(world.held["alpha/a acts"]) == 1
    world.release("alpha/a acts")
    world.run(5)
    assert world.sizes()["a1"] == size(5)


def test_what_one_gives_up_the_other_gets_only_when_it_is_seen_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts = {"a": AccountPolicy(cpu_limit=Limit(percent=20), memory_limit=Limit(percent=20))}
    world = World(tmp_path, monkeypatch, accounts=accounts, a={"a1": size(8)}, b={"b1": size(2)})
    a1, b1 = world.frameworks["a"].nodes["a1"], world.frameworks["b"].nodes["b1"]
    world.frameworks["a"].delay_seconds = 90
    for _ in range(300):
        world.tick(1.0)
        assert a1.most.cpu_milli + b1.most.cpu_milli <= 10_000
    assert world.sizes() == {"a1": size(2), "b1": size(8)}


# Age


def test_a_stale_sample_grows_nothing_and_drains_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch, a={"a1": size(5)})
    world.run(1)
    world.measured_at = world.now
    world.run(800, step=5)
    assert world.offers("a") == []
    world.run(200, step=2)
    assert world.sizes() == {"a1": FLOOR}


def test_a_host_that_was_never_measured_gets_no_new_size(world: World) -> None:
    for _ in range(100):
        world.now += 1
        world.controller.tick({})
    assert world.offers("a") == world.offers("b") == []


def test_an_offer_that_runs_out_is_renewed_with_another_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch, a={"a1": size(12)})
    world.frameworks["a"].lasts_seconds = 1000
    world.run(700, step=5)
    world.start()
    world.run(700, step=5)
    first, second = (call["a1"] for call in world.offers("a"))
    assert first == size(10)
    assert second.cpu_milli == first.cpu_milli
    assert abs(second.memory_bytes - first.memory_bytes) == 2**20


# Switches


def test_a_switch_takes_effect_with_the_next_tick(world: World) -> None:
    world.run(100, step=2)
    world.controller.set_switch("alpha/a", SwitchState.DRAIN, "ada", "upgrade")
    world.run(7)
    assert world.sizes()["a1"] == FLOOR


def test_on_hold_nothing_grows_and_everything_may_shrink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch, a={"a1": size(5)})
    world.controller.set_switch("alpha/a", SwitchState.HOLD, "ada", "")
    world.run(200, step=2)
    assert world.offers("a") == []
    world.used = size(8)
    world.run(5)
    assert world.sizes() == {"a1": size(2)}


def test_switches_are_kept_over_restarts_with_who_when_and_why(world: World) -> None:
    world.controller.set_switch("alpha/a", SwitchState.DRAIN, "ada", "upgrade of the kernel")
    when = world.now + world.wall_offset
    world.now += 100
    world.start()
    switch = world.controller.switch("alpha/a")
    assert (switch.state, switch.who, switch.when, switch.why) == ("drain", "ada", when, "upgrade of the kernel")
    assert world.controller.switch("alpha/b").state is SwitchState.LEND
    world.run(10)
    assert world.sizes()["a1"] == FLOOR


# Leaving


def lent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **more: Any) -> World:
    """A host on which both clusters have other sizes than at first."""
    world = World(tmp_path, monkeypatch, **({"a": {"a1": size(8)}, "b": {"b1": size(8)}} | more))
    world.run(10)
    assert world.sizes() == {"a1": size(5), "b1": size(5)}
    return world


def leave(world: World, mode: ExitMode, seconds: int = 15) -> bool:
    """Leave until all has left, or the time is over; whether all has."""
    world.controller.leave(mode)
    for _ in range(seconds):
        world.tick(1.0)
        if world.left():
            return True
    return False


def test_the_floors_are_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = lent(tmp_path, monkeypatch)
    assert leave(world, ExitMode.FLOOR)
    world.now += 1
    assert world.sizes() == {"a1": FLOOR, "b1": FLOOR}


def test_a_size_below_the_floor_is_not_raised_on_leaving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch, policy=OBSERVE, a={"a1": size(0.1)})
    world.run(5)
    assert leave(world, ExitMode.FLOOR)
    assert world.offers("a") == []


def test_the_original_sizes_are_left_behind_without_waiting_for_growth_to_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = lent(tmp_path, monkeypatch)
    assert leave(world, ExitMode.ORIGINAL, 3)
    world.now += 1
    assert world.sizes() == {"a1": size(8), "b1": size(8)}


def test_leaving_tries_again_until_the_framework_took_the_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = lent(tmp_path, monkeypatch)
    framework = world.frameworks["a"]
    framework.fails = ConnectionError("reset")
    assert not leave(world, ExitMode.FLOOR, 5)
    assert world.sizes() == {"a1": size(5), "b1": FLOOR}
    framework.fails = None
    assert leave(world, ExitMode.FLOOR)
    world.now += 1
    assert world.sizes()["a1"] == FLOOR


def test_leaving_waits_for_the_call_under_way_and_for_a_node_that_was_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = lent(tmp_path, monkeypatch)
    world.hold("alpha/a acts")
    world.used = size(4)
    world.run(2)
    assert not leave(world, ExitMode.FLOOR, 5)
    world.release("alpha/a acts")
    leave(world, ExitMode.FLOOR)
    world.now += 1
    assert world.sizes() == {"a1": FLOOR, "b1": FLOOR}


def test_a_size_that_was_sent_and_not_answered_has_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = lent(tmp_path, monkeypatch)
    world.hold("alpha/a acts")
    assert not leave(world, ExitMode.FLOOR, 5)
    assert [sent.size for sent in world.row("a", "a1").in_flight] == [FLOOR]
    world.release("alpha/a acts")
    world.tick(1.0)
    assert world.left()


def test_a_refused_size_is_asked_for_once_on_leaving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = lent(tmp_path, monkeypatch)
    world.frameworks["a"].refuses = {"a1": Refusal.ACCESS_DENIED}
    before = len(world.frameworks["a"].calls)
    assert leave(world, ExitMode.FLOOR)
    assert len(world.frameworks["a"].calls) == before + 1
    assert world.sizes()["b1"] == FLOOR


def test_a_framework_that_always_fails_is_not_hammered_on_leaving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = lent(tmp_path, monkeypatch)
    world.frameworks["a"].refuses = {"a1": Refusal.FAILED}
    before = len(world.frameworks["a"].calls)
    world.controller.leave(ExitMode.FLOOR)
    for _ in range(100):
        world.tick(0.1)
    assert not world.left()
    assert len(world.frameworks["a"].calls) - before <= 11


def test_leaving_passes_over_a_cluster_that_never_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch, a={"a1": size(8)}, b={"b1": size(8)})
    world.frameworks["b"].reports_fail = ConnectionError("refused")
    world.run(5)
    assert leave(world, ExitMode.FLOOR, 5)


def test_leaving_keeps_the_sizes_of_a_restored_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = lent(tmp_path, monkeypatch)
    world.controller.restore("ada")
    world.run(5)
    assert leave(world, ExitMode.FLOOR)
    world.run(5)
    assert world.sizes() == {"a1": size(8), "b1": size(8)}


# Restoring


def test_after_restore_nothing_is_published_until_it_is_switched_to_lend_also_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = lent(tmp_path, monkeypatch)
    world.controller.restore("ada")
    world.run(5)
    assert world.left()
    assert world.sizes() == {"a1": size(8), "b1": size(8)}
    world.used = size(6)
    world.run(100, step=2)
    assert world.controller.state.due == {}
    world.start()
    world.run(100, step=2)
    assert world.sizes() == {"a1": size(8), "b1": size(8)}
    assert world.controller.switch("alpha/a").who == "ada"
    world.controller.set_switch("alpha/a", SwitchState.LEND, "ada", "")
    world.run(10)
    assert world.sizes()["a1"].cpu_milli < 4000
    assert world.sizes()["b1"] == size(8)


def test_restore_raises_an_original_below_the_floor_to_the_floor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, monkeypatch, a={"a1": size(0.1)})
    world.run(80)
    assert world.sizes() == {"a1": size(10)}
    world.controller.restore("ada")
    world.run(5)
    assert world.sizes() == {"a1": FLOOR}


def test_restore_holds_for_a_cluster_that_is_built_only_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = lent(tmp_path, monkeypatch)
    world.start("a")
    world.run(2)
    world.controller.restore("ada")
    world.run(5)
    assert not world.left()
    assert world.sizes() == {"a1": size(8), "b1": size(5)}
    world.build("b")
    world.run(5)
    assert world.left()
    assert world.sizes() == {"a1": size(8), "b1": size(8)}


def test_restore_waits_for_a_framework_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = lent(tmp_path, monkeypatch)
    world.start()
    world.frameworks["b"].reports_fail = ConnectionError("refused")
    world.controller.restore("ada")
    world.run(60)
    assert not world.left()
    world.frameworks["b"].reports_fail = None
    world.run(70)
    assert world.left()
    assert world.sizes() == {"a1": size(8), "b1": size(8)}


def test_restore_is_over_when_the_operator_switches_to_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = lent(tmp_path, monkeypatch)
    world.frameworks["a"].fails = ConnectionError("reset")
    world.controller.restore("ada")
    world.run(3)
    world.controller.set_switch("alpha/a", SwitchState.HOLD, "ada", "")
    assert world.left()
    world.frameworks["a"].fails = None
    world.run(70)
    assert world.sizes()["a1"].cpu_milli <= 5000


def test_a_restore_works_in_observe_mode_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = lent(tmp_path, monkeypatch)
    world.policy = OBSERVE
    world.start()
    world.run(5)
    world.controller.restore("ada")
    world.run(5)
    assert world.sizes() == {"a1": size(8), "b1": size(8)}


def test_what_was_never_changed_is_not_touched_by_restore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch, policy=OBSERVE, a={"a1": size(12)})
    world.run(5)
    world.controller.restore("ada")
    world.run(5)
    assert world.left()
    assert world.offers("a") == []


# Several nodes of a framework, and those that an earlier process knew


def test_nothing_grows_while_a_row_of_an_earlier_process_is_not_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = lent(tmp_path, monkeypatch)
    world.frameworks["b"].reports_fail = ConnectionError("refused")
    world.start()
    world.run(1000, step=5)
    assert world.controller.awaited(NODE.name) == (key("b", "b1"),)
    assert world.sizes() == {"a1": size(5), "b1": size(5)}


def test_a_row_whose_cluster_is_not_built_yet_is_awaited_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = lent(tmp_path, monkeypatch)
    world.start("a")
    world.run(1000, step=5)
    assert world.sizes()["a1"] == size(5)


def test_a_row_that_its_cluster_does_not_name_for_long_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = lent(tmp_path, monkeypatch)
    world.frameworks["b"].nodes["b1"].listed = False
    world.start()
    world.run(500, step=5)
    assert world.sizes()["a1"] == size(5)
    world.run(300, step=5)
    assert world.controller.awaited(NODE.name) == ()
    assert world.sizes()["a1"] == size(10)
    assert key("b", "b1") not in world.journal_on_disk().refreshed


def test_a_cluster_that_is_no_longer_configured_holds_nobody_up_and_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = lent(tmp_path, monkeypatch)
    gone = world.frameworks.pop("b")
    world.start()
    world.run(200, step=2)
    assert world.sizes() == {"a1": size(10)}
    assert key("b", "b1") in world.journal_on_disk().refreshed
    world.frameworks["b"] = gone
    world.start()
    world.run(200, step=2)
    assert world.controller.original(key("b", "b1")) is not None


def test_a_row_of_a_node_that_is_gone_gets_no_offer(world: World) -> None:
    world.frameworks["a"].nodes["a1"].state = NodeState.GONE
    world.run(500, step=2)
    assert world.offers("a") == []
    assert world.sizes()["b1"] == size(10)


def test_a_journal_that_was_cut_off_means_no_growth_before_all_in_flight_has_arrived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "published.jsonl").write_text('{"version": 1}\n{"in_fli')
    policy = PublishingPolicy(mode=PublishingMode.ENFORCE, growth_delay_seconds=5)
    world = World(tmp_path, monkeypatch, policy=policy, a={"a1": size(5)})
    world.run(55)
    assert world.offers("a") == []
    world.run(10)
    assert world.offers("a") == [{"a1": size(10)}]


def test_equal_histories_send_equal_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def history(folder: str) -> list[list[dict[str, Resources]]]:
        world = World(tmp_path / folder, monkeypatch, a={"a1": size(8)}, b={"b2": size(3), "b1": size(8)})
        for step in range(300):
            world.used = size(step * 7 % 9)
            world.tick(1.0)
        return [world.offers("a"), world.offers("b")]

    assert history("one") == history("two")


def test_a_framework_that_restarts_its_nodes_is_put_right(world: World) -> None:
    world.run(30)
    framework: Framework = world.frameworks["a"]
    framework.restart("a1", size(9))
    world.run(5)
    assert world.sizes()["a1"] == size(5)
