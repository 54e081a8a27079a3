"""State files that are valid JSON with values of the wrong type: they are lost, and no start fails."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fallow_core.ledger.rows import RowKey
from fallow_core.model.control_file import ControlFile
from fallow_core.model.policy import SwitchState
from fallow_core.model.qos_policy import TerminationPolicy
from fallow_core.model.task import ApplicationKey, TaskKey
from fallow_core.planner.memory import Acceptance, Change, Original
from fallow_core.planner.switches import Switch
from fallow_core.qos.termination import FloorLoss, Hit, Phase, Termination, Terminations
from fallow_core.state import publish_journal
from fallow_core.state.original_values import ChangedGroup, OriginalValuesFile
from fallow_core.state.run_marker import RunMarker
from fallow_core.state.terminations_file import TerminationsFile
from fallow_hookspecs import Resources
from fallow_hookspecs.shape import mismatch

NOW = 140.0
ROW = RowKey("n1", "yarn/etl", "n1:8041")
SIZE = Resources(8000, 1 << 33)
APP = ApplicationKey("yarn/etl", "app")
TERMINATIONS = Terminations(
    active=(
        Termination(
            key=TaskKey("yarn/etl", "c1"),
            application=APP,
            reason="memory_evict: full",
            ordered_at=100.0,
            grace_seconds=30.0,
            phase=Phase.FAILED,
            failed_at=130.0,
        ),
    ),
    hits=(Hit(APP, 90.0),),
    floor_losses=(FloorLoss("yarn/etl", "n1:8041", 90.0),),
)
GROUPS = {
    "yarn/x": ChangedGroup(
        identity=7, clusters=frozenset({"yarn/etl"}), originals={ControlFile.MEMORY: "max"}, home="a"
    )
}
CONTENT = Change(
    known={ROW: True},
    in_flight={ROW: (SIZE,)},
    originals={ROW: Original(size=SIZE, started="4711@12")},
    refreshed={ROW: 1.7e9},
    switches={"all": Switch(state=SwitchState.HOLD, who="ada", when=1.7e9, why="")},
    accepted={"x": Acceptance(who="ada", when=1.7e9, why="")},
)
NUMBERS: list[Any] = [0, -1, 7, 1 << 62, 10**400, 1e308, -0.5, float("inf"), float("nan")]
VALUES = st.sampled_from([*NUMBERS, None, True, "", "..", "a/../../b", "ab", [], {}, [[]], {"a": 1}])


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each value within a JSON value."""
    yield path
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for name, each in inside:
        yield from places(each, (*path, name))


def changed(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = json.loads(json.dumps(data))
    inside = copy
    for name in path[:-1]:
        inside = inside[name]
    inside[path[-1]] = value
    return copy


def texts(key: tuple[Any, ...]) -> None:
    assert all(type(part) is str for part in key)


def check_terminations(folder: Path) -> None:
    file = TerminationsFile(folder, boot_id="b")
    found, _ = file.load(NOW)
    assert mismatch(found, Terminations) == ""
    for each in found.active:
        texts(each.key)
        texts(each.application)
        each.is_left_alone(TerminationPolicy(), NOW)
        each.forced_if_due(NOW)
        assert each.ordered_at <= NOW
    file.save(found)


def check_originals(folder: Path) -> None:
    file = OriginalValuesFile(folder, "b")
    found = file.load()
    for name, each in found.items():
        assert ".." not in name.split("/") + (each.home or "").split("/")
        assert mismatch(each.identity, int) == "" or each.identity is None
        texts((name, *each.clusters, *each.originals.values()))
    if file.lost is None:
        file.save(found)


def check_journal(folder: Path) -> None:
    journal = publish_journal.load(folder)
    memory = journal.memory
    for name in ("known", "in_flight", "originals", "refreshed"):
        for key in getattr(memory, name):
            texts(key)
    sizes = [size for sent in memory.in_flight.values() for size in sent]
    for size in (*sizes, *(original.size for original in memory.originals.values())):
        assert mismatch(size, Resources) == ""
        assert 0 <= min(size.cpu_milli, size.memory_bytes) <= max(size.cpu_milli, size.memory_bytes) <= 1 << 60
    for value in (*memory.originals.values(), *memory.switches.values(), *memory.accepted.values()):
        assert mismatch(value, type(value)) == ""
    journal.write(Change(known={ROW: True}))
    if not journal.lost:
        assert replace(memory, known={}) == replace(publish_journal.load(folder).memory, known={})


def check_marker(folder: Path) -> None:
    assert RunMarker(folder).last_run() is not None


def written(folder: Path) -> Any:
    """What the only file of a folder holds."""
    (file,) = folder.iterdir()
    return file, json.loads(file.read_text())


def terminations(folder: Path) -> None:
    TerminationsFile(folder, boot_id="b").save(TERMINATIONS)


def originals(folder: Path) -> None:
    OriginalValuesFile(folder, "b").save(GROUPS)


def journal(folder: Path) -> None:
    publish_journal.load(folder).write(CONTENT)


def marker(folder: Path) -> None:
    RunMarker(folder).begin(1.7e9)


@pytest.mark.parametrize(
    ("write", "check"),
    [
        (terminations, check_terminations),
        (originals, check_originals),
        (journal, check_journal),
        (marker, check_marker),
    ],
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_in_any_place_is_taken_as_its_type_or_the_file_is_lost(
    tmp_path_factory: pytest.TempPathFactory, write: Any, check: Any, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("state")
    write(folder)
    file, content = written(folder)
    path = data.draw(st.sampled_from(list(places(content))))
    file.write_text(json.dumps(changed(content, path, data.draw(VALUES))))
    check(folder)


def test_a_termination_of_an_older_fallow_lacks_fields_and_is_read(tmp_path: Path) -> None:
    terminations(tmp_path)
    file, content = written(tmp_path)
    for each in content["terminations"]["active"]:
        del each["memory_bytes"]
    file.write_text(json.dumps(content))
    assert TerminationsFile(tmp_path, boot_id="b").load(NOW) == (TERMINATIONS, "")


@pytest.mark.parametrize("number", ["1e400", "-1e400", "Infinity", "NaN"])
def test_a_number_without_end_is_no_number_of_a_state_file(tmp_path: Path, number: str) -> None:
    journal(tmp_path)
    file, _ = written(tmp_path)
    file.write_text(file.read_text().replace("1700000000.0", number))
    (lost,) = publish_journal.load(tmp_path).lost
    assert "is not JSON in line 1" in lost.why


@pytest.mark.parametrize("path", ["..", "a/../../etc", "../x", "a\0b"])
def test_a_group_outside_of_the_hierarchy_is_no_group_whose_values_were_saved(tmp_path: Path, path: str) -> None:
    OriginalValuesFile(tmp_path, "b").save({path: GROUPS["yarn/x"]})
    file = OriginalValuesFile(tmp_path, "b")
    assert file.load() == {}
    assert file.lost is not None


def test_a_termination_of_many_attempts_backs_off_as_long_as_any() -> None:
    tried = replace(TERMINATIONS.active[0], attempts=5000)
    assert tried.is_left_alone(TerminationPolicy(), 130.0 + 3599)
    assert not tried.is_left_alone(TerminationPolicy(), 130.0 + 3600)
