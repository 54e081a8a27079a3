import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fallow_core.state import durable


def test_a_file_is_made_and_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    durable.write(file, "one")
    durable.write(file, "two")
    assert file.read_text() == "two"
    assert [each.name for each in tmp_path.iterdir()] == ["x.json"]


def test_what_an_earlier_process_left_half_written_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "x.part").write_text("a longer text than the new one")
    durable.write(tmp_path / "x.json", "new")
    assert (tmp_path / "x.json").read_text() == "new"


def test_the_content_is_on_the_disk_before_it_replaces_the_old_one_and_the_name_thereafter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    real_fsync, real_replace = os.fsync, Path.replace

    def fsync(descriptor: int) -> None:
        kind = "directory" if Path(f"/proc/self/fd/{descriptor}").is_dir() else "file"
        content = "" if kind == "directory" else Path(f"/proc/self/fd/{descriptor}").read_text()
        steps.append(f"sync {kind} {content}".rstrip())
        real_fsync(descriptor)

    def replace(path: Path, target: Path) -> Path:
        steps.append("rename")
        return real_replace(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    durable.write(tmp_path / "x.json", "text")
    assert steps == ["sync file text", "rename", "sync directory"]


def failing(*_: Any, **__: Any) -> Any:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    "break_it",
    [
        lambda patch: patch.setattr(os, "open", failing),
        lambda patch: patch.setattr(os, "fsync", failing),
        lambda patch: patch.setattr(Path, "replace", failing),
    ],
)
def test_where_it_cannot_be_written_the_old_content_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, break_it: Callable[[pytest.MonkeyPatch], None]
) -> None:
    file = tmp_path / "x.json"
    durable.write(file, "old")
    with monkeypatch.context() as patch:
        break_it(patch)
        with pytest.raises(OSError, match="No space left"):
            durable.write(file, "new")
    assert file.read_text() == "old"


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("precious")
    for name in ("x.part", "x.json"):
        (tmp_path / name).symlink_to("other")
    durable.write(tmp_path / "x.json", "new")
    assert (tmp_path / "other").read_text() == "precious"
    assert (tmp_path / "x.json").read_text() == "new"
