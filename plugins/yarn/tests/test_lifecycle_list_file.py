import os
import stat
from pathlib import Path

import pytest

from fallow_yarn.lifecycle.list_file import ListFile, ListFileError
from fallow_yarn.lifecycle.xml_list import XmlList


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "exclude"
    path.write_text("# ours\nn1\n")
    return path


def test_a_change_keeps_mode_owner_and_link(path: Path, tmp_path: Path) -> None:
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 12345, 23456)
    before = path.stat()
    link = tmp_path / "link"
    link.symlink_to(path.name)
    assert ListFile(link).change(lambda text: text + "n2\n")
    after = path.stat()
    assert link.is_symlink()
    assert path.read_text() == "# ours\nn1\nn2\n"
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["exclude", "link"]


def test_a_change_that_changes_nothing_writes_nothing(path: Path) -> None:
    before = path.stat().st_ino
    assert not ListFile(path).change(lambda text: text)
    assert path.stat().st_ino == before


def test_what_somebody_else_writes_meanwhile_is_kept(path: Path) -> None:
    tries: list[str] = []

    def edit(text: str) -> str:
        if not tries:
            path.write_text(text + "n7\n")
        tries.append(text)
        return text + "n2\n"

    assert ListFile(path).change(edit)
    assert path.read_text() == "# ours\nn1\nn7\nn2\n"
    assert len(tries) == 2


def test_somebody_who_writes_all_the_time_is_an_error(path: Path) -> None:
    def edit(text: str) -> str:
        path.write_text(text + "n7\n")
        return text + "n2\n"

    with pytest.raises(ListFileError, match="try again"):
        ListFile(path).change(edit)
    assert "n2" not in path.read_text()


def test_a_file_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ListFileError, match=r"nowhere does not exist; .*create it empty"):
        ListFile(tmp_path / "nowhere").read()


def test_a_file_that_cannot_be_replaced_says_who_could(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", denied)
    with pytest.raises(ListFileError, match=rf"cannot be replaced in {path.parent}: Permission denied; run this as "):
        ListFile(path).check_writable()


def test_a_file_that_could_not_get_its_owner_is_left_as_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchmod", denied)
    with pytest.raises(ListFileError, match="Operation not permitted"):
        ListFile(path).change(lambda text: text + "n2\n")
    assert path.read_text() == "# ours\nn1\n"
    assert [file.name for file in path.parent.iterdir()] == ["exclude"]


def test_text_that_is_none_is_told(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ListFileError, match="it is not UTF-8 text"):
        ListFile(path).read()


def test_only_one_at_a_time_has_the_lock(path: Path) -> None:
    with ListFile(path).locked():
        with pytest.raises(ListFileError, match="wait for its end"), ListFile(path).locked():
            pass
        assert path.read_text() == "# ours\nn1\n"
    with ListFile(path).locked():
        pass


def test_the_name_of_a_file_says_its_kind(tmp_path: Path) -> None:
    file = ListFile(tmp_path / "exclude.xml")
    assert isinstance(file.kind, XmlList)
    file.path.write_text("n1\n")
    with pytest.raises(ListFileError, match=r"exclude\.xml: it is not XML"):
        file.hosts()
    with pytest.raises(ListFileError, match="it is not XML"):
        file.change(lambda text: file.kind.with_hosts(text, ["a"], 1))


# Files that others can change


def test_a_file_in_a_directory_that_others_can_change_is_refused_and_nothing_is_left_there(path: Path) -> None:
    path.parent.chmod(0o777)
    for use in (ListFile(path).read, ListFile(path).check_writable, ListFile(path).locked().__enter__):
        with pytest.raises(ListFileError, match=rf"{path}: {path.parent} can be changed by users other than"):
            use()
    assert [file.name for file in path.parent.iterdir()] == ["exclude"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("given", ["theirs", "link"])
def test_a_link_or_a_directory_of_another_user_is_refused(path: Path, tmp_path: Path, given: str) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "exclude").symlink_to(path)
    (tmp_path / "link").symlink_to(tmp_path)
    os.chown(tmp_path / given, 12345, 12345, follow_symlinks=False)
    with pytest.raises(ListFileError, match="belongs to user 12345, who could put something else in its place"):
        ListFile(tmp_path / given / "exclude").change(lambda text: text + "evil\n")
    assert path.read_text() == "# ours\nn1\n"


def test_no_lock_is_made_through_a_link(path: Path) -> None:
    (path.parent / ".exclude.fallow-lock").symlink_to(path.parent / "elsewhere")
    with pytest.raises(ListFileError, match="cannot be written"), ListFile(path).locked():
        pass
    assert not (path.parent / "elsewhere").exists()


def test_a_pipe_in_place_of_the_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "exclude")
    with pytest.raises(ListFileError, match="cannot be read: it is no regular file"):
        ListFile(tmp_path / "exclude").read()


def test_a_new_file_keeps_no_right_to_run_as_its_owner(path: Path) -> None:
    path.chmod(0o6755)
    ListFile(path).change(lambda text: text + "n2\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
