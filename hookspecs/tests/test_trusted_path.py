import os
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest

from fallow_hookspecs import trusted_path
from fallow_hookspecs.trusted_path import UntrustedPathError

STRANGER = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.mark.parametrize(
    ("mode", "advice"),
    [(0o770, "chmod go-w"), (0o707, "chmod go-w"), (0o1777, "take a directory of its own below it")],
)
def test_a_folder_in_which_others_can_make_files_is_refused_also_a_sticky_one(
    tmp_path: Path, mode: int, advice: str
) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(UntrustedPathError, match=f"{tmp_path} can be changed by users other than .*: {advice}"):
        trusted_path.check_folder(tmp_path)


def test_a_folder_is_returned_without_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("real")
    assert trusted_path.check_folder(tmp_path / "link" / ".." / "link") == str(tmp_path / "real")


def test_missing_folders_are_made_below_checked_ones(tmp_path: Path) -> None:
    made = trusted_path.make_folder(tmp_path / "a" / "b", 0o700)
    assert made == str(tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


@as_root
def test_nothing_is_made_below_a_folder_or_a_link_of_another_user(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to("mine")
    os.chown(tmp_path / "theirs", STRANGER, STRANGER)
    os.chown(tmp_path / "link", STRANGER, STRANGER, follow_symlinks=False)
    for name in ("theirs", "link"):
        with pytest.raises(UntrustedPathError, match=f"{name} belongs to user {STRANGER}"):
            trusted_path.make_folder(tmp_path / name / "new", 0o700)
    assert not (tmp_path / "theirs" / "new").exists()
    assert not (tmp_path / "mine" / "new").exists()


def test_a_new_file_takes_the_place_of_a_link_and_not_of_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("kept")
    (tmp_path / "new").symlink_to("other")
    os.close(trusted_path.create(tmp_path / "new"))
    assert (tmp_path / "other").read_text() == "kept"
    assert not (tmp_path / "new").is_symlink()


def test_a_link_is_resolved_when_what_it_leads_to_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("missing")
    assert trusted_path.target(tmp_path / "link") == tmp_path / "missing"


def test_a_file_is_refused_when_a_link_leads_where_others_can_write(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to("open/file")
    with pytest.raises(UntrustedPathError, match="open can be changed"):
        trusted_path.target(tmp_path / "link")


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(UntrustedPathError, match="too many symbolic links"):
        trusted_path.target(tmp_path / "a")


@pytest.mark.parametrize(("mode", "fix"), [(0o640, "0600"), (0o604, "0600"), (0o466, "0400"), (0o610, "0600")])
def test_a_secret_that_others_can_use_is_refused_with_its_mode_and_the_fix(tmp_path: Path, mode: int, fix: str) -> None:
    file = tmp_path / "keytab"
    file.touch()
    file.chmod(mode)
    with pytest.raises(UntrustedPathError, match=rf"\(mode {mode:04o}\).*: chmod {fix} {file}"):
        trusted_path.check_secret(file)


@pytest.mark.parametrize("mode", [0o400, 0o600])
def test_a_secret_of_ones_own_is_accepted_also_through_a_link(tmp_path: Path, mode: int) -> None:
    (tmp_path / "keytab").touch()
    (tmp_path / "keytab").chmod(mode)
    (tmp_path / "link").symlink_to("keytab")
    trusted_path.check_secret(tmp_path / "link")


@as_root
@pytest.mark.parametrize(("mode", "refused"), [(0o440, False), (0o460, True), (0o444, True)])
def test_the_group_may_read_a_secret_of_another_user_and_no_more(tmp_path: Path, mode: int, refused: bool) -> None:
    (tmp_path / "keytab").touch()
    (tmp_path / "keytab").chmod(mode)
    os.chown(tmp_path / "keytab", STRANGER, STRANGER)
    with pytest.raises(UntrustedPathError, match="chmod 0440") if refused else nullcontext():
        trusted_path.check_secret(tmp_path / "keytab")


def test_what_is_no_directory_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        trusted_path.check_folder(tmp_path / "file" / "below")


def test_only_a_regular_file_is_opened_for_reading_and_a_link_only_if_asked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    for path, follow in ((tmp_path / "file", False), (tmp_path / "link", True)):
        with os.fdopen(trusted_path.open_regular(path, follow_link=follow)) as file:
            assert file.read() == "x"
    before = len(list(Path("/proc/self/fd").iterdir()))
    for name in ("link", "pipe", "."):
        with pytest.raises(OSError, match=r"symbolic links|no regular file|Is a directory"):
            trusted_path.open_regular(tmp_path / name)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
