import os
import pwd
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fallow_core.plugins.copilot_path import UntrustedPathError, check
from fallow_hookspecs import PluginError

UID = os.geteuid()
STRANGER = 12345


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A socket as a copilot makes it."""
    directory = tmp_path / "run"
    directory.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(directory / "socket"))
        (directory / "socket").chmod(0o660)
        yield directory / "socket"


def refusal(path: Path, user: str | None = None, uid: int = UID) -> str:
    with pytest.raises(UntrustedPathError) as caught:
        check(os.fspath(path), user, uid)
    return str(caught.value)


def test_a_socket_in_a_closed_directory_is_trusted_and_described(place: Path) -> None:
    me = pwd.getpwuid(UID).pw_name
    found = check(os.fspath(place), None, UID)
    assert str(found) == f"{place} ({me}, 0660) in a directory of its own ({me}, 0700)"


def test_another_socket_at_the_same_path_is_told_apart(place: Path) -> None:
    before = check(os.fspath(place), None, UID)
    assert check(os.fspath(place), None, UID).identity == before.identity
    place.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(place))
        place.chmod(0o660)
        assert check(os.fspath(place), None, UID).identity != before.identity


@pytest.mark.parametrize("mode", [0o701, 0o704, 0o702, 0o1777])
def test_a_directory_that_others_can_enter_is_refused(place: Path, mode: int) -> None:
    place.parent.chmod(mode)
    assert f"{place.parent} is open to others (mode {mode:04o})" in refusal(place)


@pytest.mark.parametrize("mode", [0o770, 0o750])
def test_the_group_of_its_own_directory_may_place_the_socket(place: Path, mode: int) -> None:
    place.parent.chmod(mode)
    assert f"{mode:04o}" in str(check(os.fspath(place), None, UID))


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
def test_a_directory_above_that_others_can_change_is_refused(place: Path, mode: int) -> None:
    above = place.parent.parent
    above.chmod(mode)
    assert f"{above} can be changed by users other than" in refusal(place)
    assert f"chmod go-w {above}" in refusal(place)


def test_in_a_sticky_directory_nobody_can_replace_what_is_anothers(place: Path) -> None:
    place.parent.parent.chmod(0o1777)
    check(os.fspath(place), None, UID)


def test_a_socket_that_others_can_use_is_refused(place: Path) -> None:
    place.chmod(0o666)
    assert f"the socket {place} is open to others (mode 0666): chmod o-rwx {place}" in refusal(place)


def test_a_file_is_no_socket(tmp_path: Path) -> None:
    (tmp_path / "socket").write_text("")
    tmp_path.chmod(0o700)
    with pytest.raises(PluginError, match="is no socket"):
        check(os.fspath(tmp_path / "socket"), None, UID)


@pytest.mark.parametrize("missing", ["run/nothing", "nothing/socket"])
def test_where_nothing_is_the_copilot_does_not_run(place: Path, missing: str) -> None:
    path = place.parent.parent / missing
    with pytest.raises(PluginError, match="the copilot does not run, or serves at another path") as caught:
        check(os.fspath(path), None, UID)
    assert not isinstance(caught.value, UntrustedPathError)


def test_links_are_followed_and_what_they_lead_to_is_checked(place: Path) -> None:
    link = place.parent.parent / "link"
    link.symlink_to("./run")
    check(os.fspath(link / ".." / "link" / "socket"), None, UID)
    place.parent.chmod(0o777)
    assert "is open to others" in refusal(link / "socket")


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "too many symbolic links" in refusal(tmp_path / "a" / "socket")


def test_a_user_that_does_not_exist_is_said(place: Path) -> None:
    with pytest.raises(PluginError, match="there is no such user"):
        check(os.fspath(place), "nobody-of-that-name", UID)


as_root = pytest.mark.skipif(UID != 0, reason="only root can give files away")


@as_root
def test_a_directory_of_another_user_is_refused(place: Path) -> None:
    os.chown(place.parent, STRANGER, 0)
    assert f"{place.parent} belongs to user {STRANGER}, who could put something else in its place" in refusal(place)


@as_root
def test_a_link_of_another_user_is_refused(place: Path) -> None:
    link = place.parent.parent / "link"
    link.symlink_to(place.parent)
    os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
    assert f"{link} belongs to user {STRANGER}" in refusal(link / "socket")


@as_root
def test_the_socket_of_a_user_that_is_not_named_is_refused(place: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    os.chown(place, nobody.pw_uid, nobody.pw_gid)
    said = refusal(place)
    assert "belongs to nobody; expected root." in said
    assert "set spec.user" in said
    assert "(nobody, 0660)" in str(check(os.fspath(place), "nobody", UID))


@as_root
def test_what_belongs_to_root_is_trusted_by_every_user(place: Path) -> None:
    check(os.fspath(place), None, STRANGER)
