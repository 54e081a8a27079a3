import json
from pathlib import Path

import pytest

from fallow_core.errors import StateError
from fallow_core.model.task import ApplicationKey, TaskKey
from fallow_core.qos.termination import Hit, Phase, Termination, Terminations
from fallow_core.state.boot_file import BOOT_ID
from fallow_core.state.terminations_file import FILE_NAME, TerminationsFile

APP = ApplicationKey("yarn/etl", "app")
ENDINGS = Terminations(
    active=(
        Termination(
            key=TaskKey("yarn/etl", "c1"),
            application=APP,
            reason="memory_evict: full",
            ordered_at=100.0,
            grace_seconds=30.0,
            asked_at=131.0,
            phase=Phase.FORCED,
            forced_at=130.0,
        ),
    ),
    hits=(Hit(APP, 90.0),),
)


def saved(tmp_path: Path) -> TerminationsFile:
    file = TerminationsFile(tmp_path, boot_id="b")
    file.save(ENDINGS)
    return file


def test_nothing_was_ever_ended_where_there_is_no_file(tmp_path: Path) -> None:
    assert TerminationsFile(tmp_path, boot_id="b").load(140.0) == (Terminations(), "")


def test_the_next_process_knows_every_termination_with_its_times(tmp_path: Path) -> None:
    saved(tmp_path)
    assert TerminationsFile(tmp_path, boot_id="b").load(140.0) == (ENDINGS, "")


def test_a_time_in_the_future_is_now(tmp_path: Path) -> None:
    (termination,) = saved(tmp_path).load(120.0)[0].active
    assert (termination.ordered_at, termination.forced_at, termination.asked_at) == (100.0, 120.0, 120.0)


def test_after_a_restart_of_the_host_the_file_is_forgotten(tmp_path: Path) -> None:
    saved(tmp_path)
    assert TerminationsFile(tmp_path, boot_id="another").load(140.0) == (Terminations(), "")


def test_the_boot_is_the_one_that_the_kernel_names(tmp_path: Path) -> None:
    TerminationsFile(tmp_path).save(ENDINGS)
    assert json.loads((tmp_path / FILE_NAME).read_text())["boot_id"] == BOOT_ID.read_text().strip()
    assert TerminationsFile(tmp_path).load(140.0) == (ENDINGS, "")


def changed(old: str, new: str) -> bytes:
    text = '{"boot_id": "b", "terminations": {"active": [], "hits": [], "floor_losses": []}}'
    assert old in text
    return text.replace(old, new).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"boot_id": "b", "terminations": {"act',
        b"\xff\xfe\x00",
        b"[]",
        b"7",
        b"[" * 100_000,
        changed('"boot_id"', '"boot"'),
        changed('"terminations"', '"termination"'),
        changed('"active": []', '"active": [7]'),
        changed('"active": []', '"active": [{"key": ["a"]}]'),
        changed('"hits": []', '"hits": [["a", "b"]]'),
        changed('"hits": []', '"hits": [["a", "b", "noon"]]'),
        changed('"hits": []', f'"hits": [["a", "b", {10**400}]]'),
        changed('"hits": []', '"hits": null'),
    ],
)
def test_a_file_that_is_unreadable_is_told_kept_and_forgotten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / FILE_NAME
    path.write_bytes(content)
    file = TerminationsFile(tmp_path, boot_id="b")
    terminations, lost = file.load(140.0)
    assert terminations == Terminations()
    assert lost.startswith(f"{path} ")
    assert lost.endswith(": terminations under way are forgotten, so their grace begins anew")
    file.save(ENDINGS)
    assert file.load(140.0) == (ENDINGS, "")
    (kept,) = tmp_path.glob(f"{FILE_NAME}.lost-*")
    assert kept.read_bytes() == content


def test_an_unknown_field_is_not_guessed_at(tmp_path: Path) -> None:
    file = saved(tmp_path)
    path = tmp_path / FILE_NAME
    path.write_text(path.read_text().replace('"reason"', '"purpose"'))
    terminations, lost = file.load(140.0)
    assert terminations == Terminations()
    assert "purpose" in lost


def test_a_disk_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    file = TerminationsFile(tmp_path / "nowhere", boot_id="b")
    with pytest.raises(
        StateError, match=f"cannot write {tmp_path}/nowhere/terminations.json: No such file or directory"
    ):
        file.save(ENDINGS)
