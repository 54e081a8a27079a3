"""State that cannot be read: a whole Fallow, from the start that finds it to the person who gives it up."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_agent_process import QOS, Started, Tasks
from core.tests.fake_framework import FLOOR, Framework, World, key, size
from core.tests.fake_standalone import FakeHost, config, standalone, until

from fallow_core.api.control_socket import Peer
from fallow_core.api.encoding import from_json
from fallow_core.api.explain import Explanation
from fallow_core.api.operations import LostStateAccepted
from fallow_core.api.status import Status
from fallow_core.cli import render_operations
from fallow_core.cli.render_explain import explanation_lines
from fallow_core.cli.render_status import status_lines
from fallow_core.config.settings import Config
from fallow_core.errors import ControlError
from fallow_core.model.policy import ExitMode, PublishingMode, PublishingPolicy, SwitchState
from fallow_core.planner.memory import Original
from fallow_core.runtime import restore
from fallow_core.runtime.node_process import NodeProcess
from fallow_core.runtime.standalone import Standalone

ROOT = Peer(uid=0, name="root")
GUEST = Peer(uid=4_000_000_000, name="guest")
POLICY = PublishingPolicy(
    mode=PublishingMode.ENFORCE, growth_delay_seconds=0.2, in_flight_seconds=0.2, urgent_interval_seconds=0.05
)
GIVE_UP: dict[str, Any] = {"request": "accept-lost-state", "why": "the disk broke"}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A hold is set and a size was changed; then the journal is cut off in its middle, and Fallow starts anew."""
    world = World(tmp_path, monkeypatch, a={"a1": size(8)})
    world.used = size(4)
    world.run(10)
    world.controller.set_switch("alpha/a", SwitchState.HOLD, "ada", "maintenance")
    world.run(120)
    assert world.sizes() == {"a1": size(6)}
    file = tmp_path / "published.jsonl"
    file.write_bytes(file.read_bytes()[:100])
    world.start()
    return world


def accept(world: World) -> None:
    world.controller.accept_lost_state(world.controller.journal.lost, "ada", "the disk broke")


@pytest.mark.parametrize("starts", [0, 2])
def test_a_lost_hold_does_not_become_lend_however_often_fallow_starts(world: World, starts: int) -> None:
    for _ in range(starts):
        world.run(30)
        world.start()
    calls = len(world.frameworks["a"].calls)
    world.used = size(0)
    world.run(1000, step=2)
    assert len(world.frameworks["a"].calls) == calls
    assert world.sizes() == {"a1": size(6)}


def test_an_unknown_size_below_the_floor_stays_there(world: World) -> None:
    world.frameworks["a"].nodes["a1"].in_force = size(0.1)
    world.used = size(0)
    world.run(1000, step=2)
    assert world.sizes() == {"a1": size(0.1)}


def test_sizes_go_on_shrinking_while_the_state_is_unknown(world: World) -> None:
    world.used = size(7)
    world.run(60)
    assert world.sizes() == {"a1": size(3)}


@pytest.mark.parametrize("state", [SwitchState.DRAIN, SwitchState.STOP])
def test_a_switch_that_is_set_while_the_state_is_unknown_holds_over_a_restart(world: World, state: SwitchState) -> None:
    world.controller.set_switch("alpha/a", state, "ada", "")
    world.start()
    world.run(60)
    assert world.controller.switch("alpha/a").state is state
    assert world.sizes() == {"a1": FLOOR}
    assert world.controller.journal.lost


def test_once_given_up_sizes_grow_again_also_after_a_restart(world: World) -> None:
    world.run(10)
    accept(world)
    world.start()
    world.used = size(0)
    world.run(1000, step=2)
    assert world.sizes() == {"a1": size(10)}


def test_the_size_that_was_found_after_the_loss_is_the_original_one_once_that_is_given_up(world: World) -> None:
    world.used = size(7)
    world.run(60)
    assert world.controller.original(key("a", "a1")) is None
    world.controller.leave(ExitMode.ORIGINAL)
    world.run(10)
    assert world.left()
    assert world.sizes() == {"a1": size(3)}
    accept(world)
    assert world.controller.original(key("a", "a1")) == Original(size=size(6), started="4711@1")


def test_a_restore_sends_nothing_and_keeps_its_hands_off_while_sizes_are_unknown(world: World) -> None:
    calls = len(world.frameworks["a"].calls)
    world.controller.restore("ada")
    world.used = size(9)
    world.run(60)
    assert len(world.frameworks["a"].calls) == calls


# A whole process


@pytest.fixture
def framework() -> Framework:
    framework = Framework(time.monotonic, a1=size(2))
    framework.delay_seconds = 0.02
    return framework


@pytest.fixture
def settings(tmp_path_factory: pytest.TempPathFactory, framework: Framework) -> Config:
    found = config(tmp_path_factory.mktemp("f"), {"etl": framework}, publishing=POLICY)
    found.state_dir.mkdir()
    return found


def lose(settings: Config, *names: str, content: str = "") -> None:
    for name in names:
        (settings.state_dir / name).write_text(content)


@contextmanager
def started(settings: Config) -> Iterator[Standalone]:
    fallow = standalone(settings, FakeHost())
    fallow.inbox.ask = lambda function: function()  # type: ignore[method-assign]
    try:
        until(fallow, lambda: fallow.controller.rows)
        yield fallow
    finally:
        fallow.close()


def text(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def value(process: NodeProcess, name: str) -> float:
    return next(family.samples[0].value for family in process.metrics() if family.name == name)


def test_status_explain_and_metrics_say_what_is_unknown_and_what_to_do(settings: Config) -> None:
    lose(settings, "published.jsonl", "original-values.json")
    with started(settings) as fallow:
        status = from_json(Status, fallow.requests.answer(GUEST, {"request": "status"}))
        explained = from_json(Explanation, fallow.requests.answer(GUEST, {"request": "explain"}))
        for shown in (text(status_lines(status)), text(explanation_lines(explained))):
            assert f"! {settings.state_dir}/published.jsonl is empty: the switches, the sizes found first" in shown
            assert f"! {settings.state_dir}/original-values.json is empty: the original values of control" in shown
            assert "or give the file up: fallow accept-lost-state --why REASON" in shown
        assert "cannot be read: no growth" in text(explanation_lines(explained))
        assert status.sizes_unknown
        assert value(fallow, "fallow_state_files_unreadable") == 2


def test_accepting_lets_sizes_grow_and_control_groups_change_and_is_recorded(
    settings: Config, framework: Framework
) -> None:
    lose(settings, "published.jsonl", "original-values.json")
    with started(settings) as fallow:
        answer = from_json(LostStateAccepted, fallow.requests.answer(ROOT, GIVE_UP))
        assert [Path(each.file).name for each in answer.files] == ["published.jsonl", "original-values.json"]
        assert all(Path(each.kept_as).read_text() == "" for each in answer.files)
        assert "given up, and kept as" in text(render_operations.lost_state_accepted(answer))
        until(fallow, lambda: framework.sizes() == {"a1": size(10)})
        assert fallow.throttling.lost == []
        assert value(fallow, "fallow_state_files_unreadable") == 0
    with started(settings) as fallow:
        status = from_json(Status, fallow.requests.answer(GUEST, {"request": "status"}))
        assert (status.lost_state, status.sizes_unknown) == ((), False)
        assert {(it.who, it.why) for it in status.accepted_losses} == {("root", "the disk broke")}
        assert {it.kept_as for it in status.accepted_losses} == {Path(each.kept_as).name for each in answer.files}


@pytest.mark.parametrize(
    ("peer", "request_", "why"),
    [
        (GUEST, GIVE_UP, "user guest may not change anything"),
        (ROOT, {"request": "accept-lost-state"}, "say why the state is given up"),
        (ROOT, GIVE_UP | {"why": "  "}, "say why the state is given up"),
        (ROOT, GIVE_UP | {"why": 7}, "say why the state is given up"),
    ],
)
def test_only_the_owner_and_root_give_state_up_and_with_a_reason(
    settings: Config, peer: Peer, request_: dict[str, Any], why: str
) -> None:
    lose(settings, "published.jsonl")
    with started(settings) as fallow:
        with pytest.raises(ControlError, match=why):
            fallow.requests.answer(peer, request_)
        assert fallow.controller.state.memory_unknown


def test_where_nothing_is_lost_there_is_nothing_to_accept(settings: Config) -> None:
    with started(settings) as fallow, pytest.raises(ControlError, match="there is nothing to accept"):
        fallow.requests.answer(ROOT, GIVE_UP)


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("published.jsonl", "NOT restored: the size found first is unknown"),
        ("original-values.json", "never changed by Fallow"),
    ],
)
def test_a_restore_with_lost_state_is_not_done_and_says_why(
    settings: Config, framework: Framework, monkeypatch: pytest.MonkeyPatch, name: str, detail: str
) -> None:
    monkeypatch.setattr(restore, "LONGEST_SECONDS", 3.0)
    lose(settings, name, content="\0" * 10)
    for _ in range(2):  # the first one does not make the second one succeed
        answer = restore.restore(settings, "ada")
        assert not answer.done
        assert [row.detail for row in answer.rows] == [detail]
        assert answer.problems[0].startswith(f"{settings.state_dir}/{name} contains NUL bytes")
    assert framework.calls == []


@pytest.mark.parametrize("name", ["published.jsonl", "original-values.json"])
@pytest.mark.parametrize("how", [Path.mkdir, Path.touch])
def test_an_agent_says_what_is_unknown_and_protects_its_host_meanwhile(
    agent_folder: Path, name: str, how: Callable[[Path], None]
) -> None:
    state = agent_folder / "state"
    state.mkdir()
    how(state / name)
    tasks = Tasks()
    agent = Started(agent_folder, {"etl": tasks}, qos=QOS)
    agent.host.used = size(1, 9.5)
    agent.until(lambda: tasks.ended)
    status = from_json(Status, agent.ask(GUEST, request="status"))
    assert [it.file for it in status.lost_state] == [str(state / name)]
    assert name in text(explanation_lines(from_json(Explanation, agent.ask(GUEST, request="explain"))))
    assert value(agent.agent, "fallow_state_files_unreadable") == 1
    with pytest.raises(ControlError, match="may not change anything"):
        agent.ask(GUEST, **GIVE_UP)
    agent.ask(ROOT, **GIVE_UP)
    agent.agent.close()
    again = Started(agent_folder, {"etl": tasks}, qos=QOS)
    again.steps(2)
    status = from_json(Status, again.ask(GUEST, request="status"))
    assert status.lost_state == ()
    assert [it.who for it in status.accepted_losses] == ["root"]
    again.agent.close()


def test_a_journal_of_an_older_fallow_without_what_came_later_is_read(settings: Config) -> None:
    row = '["n1", "alpha/etl", "a1"]'
    line = f'{{"version": 1, "originals": [[{row}, {{"size": {{"cpu_milli": 3, "memory_bytes": 4}}, "started": ""}}]]}}'
    lose(settings, "published.jsonl", content=line + "\n")
    with started(settings) as fallow:
        assert fallow.controller.journal.lost == ()
        original = fallow.controller.original(fallow.controller.rows[0].key)
        assert original is not None
        assert original.size.cpu_milli == 3
