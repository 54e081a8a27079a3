import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_framework import FLOOR, World, key, size

from fallow_core.errors import StateError
from fallow_core.ledger.rows import RowKey
from fallow_core.model.policy import AccountPolicy, ExitMode, Limit, PublishingMode, PublishingPolicy, SwitchState
from fallow_core.planner.memory import Acceptance, Change, Memory, Original
from fallow_core.planner.switches import Switch
from fallow_core.state import directory, lost_files, publish_journal
from fallow_hookspecs import Offer, Resources

ROW = RowKey("n1", "yarn/etl", "n1:8041")
OTHER_ROW = RowKey("n1", "yarn/etl", "n1:8042")
ADA = Acceptance(who="ada", when=1.7e9, why="the disk broke")
CONTENT: dict[str, Any] = {
    "known": {ROW: True},
    "in_flight": {ROW: (Resources(1000, 2**30), Resources(2000, 2**31))},
    "originals": {ROW: Original(size=Resources(8000, 2**33), started="4711@12")},
    "refreshed": {ROW: 1.7e9},
    "switches": {"yarn/etl": Switch(state=SwitchState.HOLD, who="ada", when=1.7e9, why='a "look"\nat it')},
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch, a={"a1": size(8)}, b={"b1": size(8)})


class BrokenDisk:
    """What fails while it is broken. A read-only directory does not stop root."""

    def __init__(self) -> None:
        self.broken = True
        self._real = {name: getattr(os, name) for name in ("open", "write", "fsync", "fdatasync")}
        self._rename = Path.rename

    def _fail(self, code: int) -> None:
        if self.broken:
            raise OSError(code, os.strerror(code))

    def open(self, path: Any, flags: int, *arguments: Any, **more: Any) -> Any:
        if flags & os.O_WRONLY:
            self._fail(errno.EROFS)
        return self._real["open"](path, flags, *arguments, **more)

    def rename(self, path: Path, target: Path) -> Path:
        self._fail(errno.EACCES)
        return self._rename(path, target)

    def fsync(self, descriptor: int) -> None:
        self._fail(errno.ENOSPC)
        self._real["fsync"](descriptor)

    def fdatasync(self, descriptor: int) -> None:
        self._fail(errno.ENOSPC)
        self._real["fdatasync"](descriptor)

    def write(self, descriptor: int, data: bytes) -> int:
        return int(self._real["write"](descriptor, data[: len(data) // 2] if self.broken else data))


def break_disk(monkeypatch: pytest.MonkeyPatch, how: str) -> Callable[[], None]:
    """Writing a journal fails from now on; the result mends it."""
    disk = BrokenDisk()
    stubs: dict[str, list[tuple[object, str, object]]] = {
        "read-only": [(os, "open", disk.open)],
        "no rename": [(Path, "rename", lambda *a: disk.rename(*a))],
        "full": [(os, "fsync", disk.fsync), (os, "fdatasync", disk.fdatasync)],
        "nearly full": [(os, "write", disk.write), (os, "fsync", disk.fsync)],
    }
    for owner, name, stub in stubs[how]:
        monkeypatch.setattr(owner, name, stub)
    return lambda: setattr(disk, "broken", False)


# The file


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    publish_journal.load(tmp_path).write(Change(**CONTENT))
    loaded = publish_journal.load(tmp_path)
    assert loaded.memory == Memory(**CONTENT)
    assert loaded.lost == ()


def test_the_state_directory_is_made_and_private(tmp_path: Path) -> None:
    state = tmp_path / "new" / "state"
    os.close(publish_journal.lock(state))
    assert stat.S_IMODE(state.stat().st_mode) == 0o700


def test_a_state_directory_without_a_journal_is_a_first_start(tmp_path: Path) -> None:
    found = publish_journal.load(tmp_path)
    assert (found.memory, found.lost) == (Memory(), ())


GOOD = '{"version": 1}\n'
ROW_TEXT = '["n1", "yarn/etl", "n1:8041"]'


def with_line(text: str) -> str:
    return f"{GOOD}{text}\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        (GOOD[:-2], "is not JSON in line 1"),
        ("\0" * 300 + "\n", "contains NUL bytes in line 1, as after a power cut"),
        (with_line('{"known": \0\0\0}'), "contains NUL bytes in line 2"),
        ("\xff\xfe\n", "is not JSON in line 1"),
        ("[]\n", "makes no sense"),
        ("null\n", "makes no sense"),
        ("{}\n", "has no version that there ever was: None"),
        (GOOD.replace("1", "0"), "has no version that there ever was: 0"),
        (GOOD.replace("1", "true"), "has no version that there ever was: True"),
        (GOOD.replace("1", '"1"'), "has no version that there ever was: '1'"),
        (GOOD.replace("1", "3"), "was written by a newer Fallow: version 3, this one knows up to 1"),
        (with_line(""), "is not JSON in line 2"),
        (with_line("7"), "line 2: "),
        (with_line('{"colour": []}'), "line 2: unknown field 'colour'"),
        (with_line('{"in_flight": [["n1", []]]}'), "line 2: "),
        (with_line('{"in_flight": [7]}'), "line 2: "),
        (with_line(f'{{"in_flight": [[{ROW_TEXT}, [{{"cpu_milli": 1}}]]]}}'), "line 2: "),
        (with_line(f'{{"in_flight": [[{ROW_TEXT}, [{{"cpu_milli": 1.5, "memory_bytes": 1}}]]]}}'), "1.5 is no amount"),
        (with_line(f'{{"in_flight": [[{ROW_TEXT}, [{{"cpu_milli": -1, "memory_bytes": 1}}]]]}}'), "-1 is no amount"),
        (with_line(f'{{"in_flight": [[{ROW_TEXT}, [{{"cpu_milli": Infinity, "memory_bytes": 1}}]]]}}'), "Infinity"),
        (with_line(f'{{"in_flight": [[{ROW_TEXT}, 0]]}}'), "0 is no list"),
        (with_line(f'{{"known": [[{ROW_TEXT}, "yes"]]}}'), "'yes' is no bool"),
        (with_line('{"known": [[["n1", "yarn/etl", 7], true]]}'), "7 is no text"),
        (with_line(f'{{"originals": [[{ROW_TEXT}, {{"size": null}}]]}}'), "line 2: "),
        (with_line(f'{{"refreshed": [[{ROW_TEXT}, "yesterday"]]}}'), "'yesterday' is no time"),
        (with_line('{"switches": [["yarn/etl", {"state": "off", "who": "", "when": 0, "why": ""}]]}'), "'off'"),
        (with_line('{"switches": [["yarn/etl", {"state": "hold", "who": null, "when": 0, "why": ""}]]}'), "None is no"),
        (with_line('{"switches": 7}'), "line 2: "),
        ("[" * 100_000 + "\n", "is not JSON in line 1"),
    ],
)
def test_a_journal_that_cannot_be_read_is_left_alone_and_stays_unknown(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "published.jsonl"
    file.write_text(text, encoding="latin-1")
    for _ in range(2):  # two starts
        found = publish_journal.load(tmp_path)
        assert found.memory == Memory()
        (lost,) = found.lost
        assert lost.path == file
        assert why in lost.why
        assert "the sizes found first" in lost.effect
    found.write(Change(**CONTENT))
    again = publish_journal.load(tmp_path)
    assert (again.memory, again.lost) == (Memory(**CONTENT), found.lost)
    assert file.read_text(encoding="latin-1") == text


def test_a_newer_version_is_left_to_the_fallow_that_knows_it(tmp_path: Path) -> None:
    (tmp_path / "published.jsonl").write_text(GOOD.replace("1", "3"))
    (lost,) = publish_journal.load(tmp_path).lost
    assert lost.advice == "start that one"


def test_a_journal_that_may_not_be_read_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish_journal.load(tmp_path).write(Change(**CONTENT))

    def refuse(path: Path, *_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    with monkeypatch.context() as patch:  # permissions do not stop root
        patch.setattr(os, "open", refuse)
        assert [lost.why for lost in publish_journal.load(tmp_path).lost] == ["cannot be read: Permission denied"]
    assert publish_journal.load(tmp_path).lost == ()


def test_a_directory_in_place_of_a_journal_is_unknown_and_can_be_given_up(tmp_path: Path) -> None:
    (tmp_path / "published.jsonl").mkdir()
    found = publish_journal.load(tmp_path)
    assert [lost.why for lost in found.lost] == ["cannot be read: Is a directory"]
    found.accept(found.lost, ADA)
    assert publish_journal.load(tmp_path).lost == ()


def test_a_journal_cut_off_anywhere_never_lacks_a_switch_or_a_size_found_first_unnoticed(tmp_path: Path) -> None:
    kept = publish_journal.load(tmp_path)
    kept.write(Change(**CONTENT))
    for seconds in range(5):
        kept.write(Change(refreshed={ROW: float(seconds)}))
    kept.write(Change(switches={"all": Switch(state=SwitchState.STOP)}))
    kept.write(Change(in_flight={ROW: None}))
    text, unknown = kept.path.read_bytes(), 0
    for length in range(len(text)):
        kept.path.write_bytes(text[:length])
        found = publish_journal.load(tmp_path)
        unknown += bool(found.lost)
        assert found.lost or (found.memory.switches, found.memory.originals) == (
            kept.memory.switches,
            kept.memory.originals,
        )
    assert unknown > 300


def test_giving_up_is_written_down_and_keeps_the_file(tmp_path: Path) -> None:
    file = tmp_path / "published.jsonl"
    file.write_text("garbage")
    found = publish_journal.load(tmp_path)
    found.write(Change(**CONTENT))
    names = found.accept(found.lost, ADA)
    assert (found.lost, names[file].read_text()) == ((), "garbage")
    again = publish_journal.load(tmp_path)
    assert (again.lost, again.memory) == ((), Memory(**CONTENT, accepted={names[file].name: ADA}))
    again.write(Change(in_flight={ROW: None}))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["published.jsonl", names[file].name]
    expected = Memory(**CONTENT | {"in_flight": {}}, accepted={names[file].name: ADA})
    assert publish_journal.load(tmp_path).memory == expected


def test_two_losses_at_once_are_kept_under_two_names(tmp_path: Path) -> None:
    kept = set()
    for _ in range(2):
        (tmp_path / "published.jsonl").write_text("garbage")
        found = publish_journal.load(tmp_path)
        kept |= set(found.accept(found.lost, ADA).values())
    assert len(kept) == 2
    assert publish_journal.load(tmp_path).memory.accepted.keys() == {each.name for each in kept}


def test_a_loss_that_cannot_be_written_down_is_not_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "published.jsonl").write_text("garbage")
    found = publish_journal.load(tmp_path)
    with monkeypatch.context() as patch:
        break_disk(patch, "full")
        with pytest.raises(StateError, match="cannot write"):
            found.accept(found.lost, ADA)
    assert found.lost
    assert publish_journal.load(tmp_path).lost == found.lost


def test_the_journal_of_the_meantime_may_be_lost_too(tmp_path: Path) -> None:
    for name in ("published.jsonl", "published.1.jsonl"):
        (tmp_path / name).write_text("garbage")
    found = publish_journal.load(tmp_path)
    assert [lost.path.name for lost in found.lost] == ["published.jsonl", "published.1.jsonl"]
    found.write(Change(**CONTENT))
    assert publish_journal.load(tmp_path).memory == Memory(**CONTENT)
    found.accept(found.lost, ADA)
    assert publish_journal.load(tmp_path).lost == ()


def test_a_journal_that_was_repaired_is_put_together_with_what_came_after_it(tmp_path: Path) -> None:
    file = tmp_path / "published.jsonl"
    publish_journal.load(tmp_path).write(Change(**CONTENT))
    good = file.read_bytes()
    file.write_bytes(good[:-20])
    later = Original(size=Resources(100, 2**27))
    found = publish_journal.load(tmp_path)
    found.write(Change(originals={ROW: later, OTHER_ROW: later}, switches={"all": Switch(state=SwitchState.STOP)}))
    file.write_bytes(good)
    again = publish_journal.load(tmp_path)
    assert again.lost == ()
    assert again.memory.originals == {**CONTENT["originals"], OTHER_ROW: later}
    assert again.memory.switches == {**CONTENT["switches"], "all": Switch(state=SwitchState.STOP)}
    again.write(Change(in_flight={ROW: None}))
    assert [each.name for each in tmp_path.iterdir()] == ["published.jsonl"]
    assert publish_journal.load(tmp_path).memory == again.memory


def test_a_half_written_new_journal_leaves_the_old_one(tmp_path: Path) -> None:
    publish_journal.load(tmp_path).write(Change(**CONTENT))
    (tmp_path / "published.part").write_text('{"version": 1, "in_fli')
    assert publish_journal.load(tmp_path).memory == Memory(**CONTENT)


def test_a_change_adds_one_line_and_leaves_the_others(tmp_path: Path) -> None:
    kept = publish_journal.load(tmp_path)
    kept.write(Change(**CONTENT))
    before = kept.path.read_text()
    kept.write(Change(in_flight={ROW: None}))
    assert kept.path.read_text().startswith(before)
    assert kept.path.read_text().count("\n") == before.count("\n") + 1
    assert publish_journal.load(tmp_path).memory == Memory(**CONTENT | {"in_flight": {}}) == kept.memory


def test_a_last_line_that_was_not_written_whole_is_left_out_and_cut_off(tmp_path: Path) -> None:
    kept = publish_journal.load(tmp_path)
    kept.write(Change(**CONTENT))
    with kept.path.open("a") as file:
        file.write('{"in_flight": [[["n1", "yarn/')
    found = publish_journal.load(tmp_path)
    assert (found.memory, found.lost, found.cut_off) == (Memory(**CONTENT), (), True)
    found.write(Change(in_flight={ROW: None}))
    assert publish_journal.load(tmp_path).memory == Memory(**CONTENT | {"in_flight": {}})


def test_after_many_changes_the_file_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish_journal, "LINES", 5)
    kept = publish_journal.load(tmp_path)
    for number in range(20):
        kept.write(Change(refreshed={ROW: float(number)}))
        assert kept.path.read_text().count("\n") <= 6
        assert publish_journal.load(tmp_path).memory == Memory(refreshed={ROW: float(number)})


def test_a_journal_that_somebody_removed_is_written_anew(tmp_path: Path) -> None:
    kept = publish_journal.load(tmp_path)
    kept.write(Change(**CONTENT))
    kept.path.unlink()
    kept.write(Change(in_flight={ROW: None}))
    assert publish_journal.load(tmp_path).memory == Memory(**CONTENT | {"in_flight": {}})


@pytest.mark.parametrize("how", ["read-only", "nearly full", "full"])
def test_what_cannot_be_written_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    kept = publish_journal.load(tmp_path)
    kept.write(Change(**CONTENT))
    break_disk(monkeypatch, how)
    with pytest.raises(StateError, match=f"cannot write {kept.path}: .*; sizes only shrink until it can be written"):
        kept.write(Change(in_flight={ROW: None}, switches={"all": Switch(state=SwitchState.STOP)}))
    assert kept.memory == Memory(**CONTENT)
    assert publish_journal.load(tmp_path).memory == Memory(**CONTENT)


def test_a_state_directory_that_is_none_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match=f"cannot use the state directory {tmp_path}/file: .*; set stateDir"):
        publish_journal.load(tmp_path / "file")
    with pytest.raises(StateError, match="cannot use the state directory"):
        publish_journal.lock(tmp_path / "file")


def test_a_lost_journal_that_cannot_be_renamed_stays_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "published.jsonl").write_text("{")
    found = publish_journal.load(tmp_path)
    break_disk(monkeypatch, "no rename")
    with pytest.raises(StateError, match=r"cannot rename .*published.jsonl to published.jsonl.lost-.*: Permission"):
        found.accept(found.lost, ADA)
    assert publish_journal.load(tmp_path).lost == found.lost != ()


def test_a_state_directory_belongs_to_one_process(tmp_path: Path) -> None:
    first = publish_journal.lock(tmp_path)
    with pytest.raises(StateError, match=f"a Fallow is running already: it uses the state directory {tmp_path}"):
        publish_journal.lock(tmp_path)
    os.close(first)
    os.close(publish_journal.lock(tmp_path))


# What is written when


def test_a_size_is_on_the_disk_as_in_flight_before_the_call_that_sends_it(world: World) -> None:
    seen: list[str] = []

    def look(cluster: str, offers: tuple[Offer, ...]) -> None:
        content = world.journal_on_disk()
        for offer in offers:
            row = key(cluster, offer.framework_node)
            assert content.in_flight[row][-1] == offer.total
            assert content.refreshed[row] == world.now + world.wall_offset
            assert row in content.originals
            seen.append(cluster)

    for name, framework in world.frameworks.items():
        framework.seen = lambda offers, name=name: look(name, offers)  # type: ignore[misc]
    for step in range(200):
        world.used = size(step * 7 % 10)
        world.tick(1.0)
    assert min(seen.count("a"), seen.count("b")) >= 3


def test_all_sizes_in_flight_are_on_the_disk_until_they_have_arrived(world: World) -> None:
    world.frameworks["a"].delay_seconds = 30
    world.run(3)
    world.used = size(4)
    world.run(3)
    assert world.journal_on_disk().in_flight[key("a", "a1")] == (size(5), size(3))
    world.run(60)
    assert world.journal_on_disk().in_flight == {}


def test_the_sizes_found_first_are_kept_whatever_is_sent_later(world: World) -> None:
    for step in range(100):
        world.used = size(step * 7 % 10)
        world.tick(1.0)
        if step % 30 == 0:
            world.start()
    originals = world.journal_on_disk().originals
    assert {row.framework_node: original.size for row, original in originals.items()} == {
        "a1": size(8),
        "b1": size(8),
    }


def test_a_daemon_that_was_started_anew_gets_an_original_of_its_own(world: World) -> None:
    world.run(20)
    world.frameworks["a"].restart("a1", size(9))
    world.run(20)
    assert world.sizes()["a1"] == size(5)
    assert world.controller.original(key("a", "a1")) == Original(size=size(9), started="4712@2")
    assert world.controller.original(key("b", "b1")) == Original(size=size(8), started="4711@1")


def test_a_size_of_our_own_that_arrives_late_is_not_taken_for_an_original(world: World) -> None:
    framework = world.frameworks["a"]
    framework.fails, framework.carries_out, framework.delay_seconds = TimeoutError("no answer"), True, 70
    world.run(2)
    framework.fails, framework.delay_seconds = None, 1
    world.run(150, step=2)
    world.used = size(5)
    world.run(20)
    assert world.controller.original(key("a", "a1")) == Original(size=size(8), started="4711@1")


def test_a_daemon_first_seen_after_its_size_does_not_change_the_original(world: World) -> None:
    node = world.frameworks["a"].nodes["a1"]
    node.process_is_seen = False
    world.run(10)
    assert world.controller.original(key("a", "a1")) == Original(size=size(8), started="")
    node.process_is_seen = True
    world.run(10)
    node.in_force = size(9)  # somebody else, not a start of the daemon
    world.used = size(4)
    world.run(30)
    assert world.controller.original(key("a", "a1")) == Original(size=size(8), started="4711@1")


# A disk that cannot be written


@pytest.mark.parametrize("how", ["read-only", "nearly full", "full"])
def test_an_unwritable_journal_lets_only_shrinks_of_known_rows_through(
    world: World, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    world.frameworks["b"].nodes["b1"].in_force = size(3)
    world.start("a")
    world.used = size(4)
    world.run(10)
    assert world.sizes() == {"a1": size(6), "b1": size(3)}
    world.build("b")
    mend = break_disk(monkeypatch, how)
    world.used = size(6)
    world.run(10)
    shrunk = {"a1": size(2), "b1": size(3)}  # the size of b1 found first is not on the disk
    assert world.sizes() == shrunk
    assert f"cannot write {world.state_dir}/published.jsonl" in world.controller.journal_error
    world.used = size(0)
    world.run(100)
    assert world.sizes() == shrunk
    mend()
    world.run(400)
    assert world.controller.journal_error == ""
    assert world.sizes() == {"a1": size(5), "b1": size(5)}
    assert world.controller.original(key("b", "b1")) == Original(size=size(3), started="4711@1")


def test_a_switch_that_cannot_be_written_down_is_an_error_and_changes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.run(10)
    mend = break_disk(monkeypatch, "full")
    with pytest.raises(StateError, match="cannot write"):
        world.controller.set_switch("alpha/a", SwitchState.DRAIN, "ada", "")
    with pytest.raises(StateError, match="cannot write"):
        world.controller.restore("ada")
    mend()
    assert world.left()
    world.run(20)
    assert world.sizes() == {"a1": size(5), "b1": size(5)}
    assert world.controller.switch("alpha/a").state is SwitchState.LEND


def test_the_floors_can_be_left_behind_on_a_full_disk(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.run(10)
    break_disk(monkeypatch, "full")
    world.controller.leave(ExitMode.FLOOR)
    world.run(10)
    assert world.left()
    assert world.sizes() == {"a1": FLOOR, "b1": FLOOR}


# Kills


def after_a_history(state_dir: Path, monkeypatch: pytest.MonkeyPatch, killed_at: int, carried_out: bool) -> World:
    """Load comes and goes, calls get lost, and at one moment the process is killed. Nothing is ever lent twice."""
    policy = PublishingPolicy(
        mode=PublishingMode.ENFORCE, growth_delay_seconds=10, in_flight_seconds=30, publish_interval_seconds=2
    )
    accounts = {"a": AccountPolicy(weight=3, memory_limit=Limit(percent=50))}
    nodes = {"a": {"a1": size(8)}, "b": {"b1": size(8)}}
    world = World(state_dir, monkeypatch, policy=policy, accounts=accounts, **nodes)
    framework = world.frameworks["a"]
    framework.delay_seconds = 7
    for step in range(60):
        if step == killed_at:
            world.hold("alpha/a acts")  # the call that starts now ends after the process
            world.tick()
            under_way = world.held.pop("alpha/a acts")
            if carried_out:
                for job in under_way or ():
                    job()
            world.start()
        framework.fails = TimeoutError("no answer") if 20 <= step < 26 else None
        framework.carries_out = step % 2 == 0
        world.used = size(6 if 10 <= step < 30 else 0)
        world.tick(2.0)
        if len(world.controller.rows) == 2:
            possible = sum(node.most.cpu_milli for each in world.frameworks.values() for node in each.nodes.values())
            believed = sum(row.belief("cpu") for row in world.controller.rows)
            assert possible <= believed
    framework.delay_seconds = 1
    world.run(200, step=3)
    return world


@pytest.fixture(scope="module")
def sizes_without_a_kill(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Resources]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        return after_a_history(tmp_path_factory.mktemp("state"), monkeypatch, -1, False).sizes()


@pytest.mark.parametrize("carried_out", [True, False])
@pytest.mark.parametrize("killed_at", range(0, 60, 4))
def test_a_kill_at_any_moment_ends_in_the_same_offers(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sizes_without_a_kill: dict[str, Resources],
    killed_at: int,
    carried_out: bool,
) -> None:
    world = after_a_history(tmp_path, monkeypatch, killed_at, carried_out)
    for node, found in world.sizes().items():
        expected = sizes_without_a_kill[node]
        assert found.cpu_milli == expected.cpu_milli
        assert abs(found.memory_bytes - expected.memory_bytes) <= 2 * 2**20  # so much to tell two sizes apart
    originals = world.journal_on_disk().originals
    assert {row.framework_node: original.size for row, original in originals.items()} == {"a1": size(8), "b1": size(8)}


def test_what_was_in_flight_at_a_kill_is_believed_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch, a={"a1": size(5)}, b={"b1": size(1)})
    world.frameworks["b"].delay_seconds = 1e9
    world.run(64)
    assert world.offers("b") == [{"b1": size(5)}]
    world.frameworks["b"].nodes["b1"].coming = []
    world.frameworks["b"].delay_seconds = 1
    world.used = size(6)
    world.start()
    world.run(2)
    assert world.row("b", "b1").belief("cpu") == 5000
    world.run(50)
    assert world.sizes()["b1"].cpu_milli == 2000
    assert world.row("b", "b1").belief("cpu") == 5000
    world.run(25)
    assert world.row("b", "b1").belief("cpu") == 2000


def test_what_was_in_flight_stays_believed_when_the_next_size_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, monkeypatch, a={"a1": size(5)})
    world.frameworks["a"].delay_seconds = 1e9
    world.run(64)
    assert world.offers("a") == [{"a1": size(10)}]
    world.frameworks["a"].delay_seconds = 2
    world.used = size(8)
    world.start()
    world.tick()
    world.tick()  # the first report, and a shrink at the same moment
    assert world.offers("a")[-1] == {"a1": size(2)}
    world.tick()
    assert world.row("a", "a1").belief("cpu") == 10_000


def test_a_shrink_that_a_kill_kept_from_being_carried_out_is_sent_again_at_once(world: World) -> None:
    world.hold("alpha/a acts")
    world.run(3)
    world.held.clear()  # the call never reached the framework
    assert world.journal_on_disk().in_flight[key("a", "a1")] == (size(5),)
    world.start()
    world.run(4)
    assert world.sizes()["a1"].cpu_milli == 5000


# Links and directories of others


def test_a_state_directory_that_others_can_change_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o777)
    with pytest.raises(StateError, match=f"{tmp_path}/state can be changed by users other than .*; set stateDir"):
        publish_journal.lock(tmp_path / "state")
    assert not list((tmp_path / "state").iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_state_of_a_service_is_for_root_too_when_root_says_so(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(StateError, match=f"{tmp_path} belongs to user 12345"):
        publish_journal.lock(tmp_path)
    os.close(publish_journal.lock(tmp_path, directory.user_of(tmp_path)))


@pytest.mark.parametrize("name", ["published.jsonl", "lock"])
def test_no_link_is_followed_in_the_state_directory(tmp_path: Path, name: str) -> None:
    (tmp_path / "other").write_text(GOOD)
    (tmp_path / name).symlink_to("other")
    if name == "lock":
        with pytest.raises(StateError, match="cannot use the state directory"):
            publish_journal.lock(tmp_path)
    else:
        journal = publish_journal.load(tmp_path)
        assert [lost.why for lost in journal.lost] == ["cannot be read: Too many levels of symbolic links"]
        journal.write(Change(**CONTENT))
    assert (tmp_path / "other").read_text() == GOOD


def test_a_pipe_in_place_of_a_journal_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "published.jsonl")
    assert [lost.why for lost in publish_journal.load(tmp_path).lost] == ["cannot be read: it is no regular file"]


def test_a_journal_that_is_too_large_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_files, "LARGEST_BYTES", 100)
    (tmp_path / "published.jsonl").write_text(GOOD + " " * 100)
    assert "larger than 100 bytes" in publish_journal.load(tmp_path).lost[0].why
