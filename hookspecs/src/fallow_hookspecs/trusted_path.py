"""Checks whether a path can be trusted: the owner and the mode of each component.

Whoever can replace a component of a path decides which file is read or written there, and batch tasks often run as a
user who has directories of his own on the host. The rules:

- each directory and each symbolic link belongs to root or to this process's own user;
- no directory is writable by its group or by others, unless it is sticky like /tmp: then only the owner of an entry can
  replace it;
- the last directory is writable by its owner only, sticky or not: names in it are known, and others must not take them.

A path that fulfils them cannot change between the check and its use, except by root and by this user.
"""

import contextlib
import errno
import os
import pwd
import stat
from pathlib import Path
from typing import Final

MOST_LINKS: Final = 40
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class UntrustedPathError(PermissionError):
    """Another user can change a component of the path. `strerror` names the component and says what to change."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EPERM, why)

    def __str__(self) -> str:
        return str(self.strerror)


def walk(folder: str | os.PathLike[str], own_uid: int, *, make_mode: int | None = None) -> tuple[str, os.stat_result]:
    """An absolute path of a directory without symbolic links, and its status. The mode of the last component is for the
    caller to judge.

    :param make_mode: the mode of directories that are made where one is missing; `None`: none is made.
    :raises UntrustedPathError: a rule is violated.
    :raises OSError: a component is missing, or cannot be examined.
    """
    current, left, links = "/", _parts(os.fspath(folder)), 0
    found = _directory(current, own_uid, last=not left)
    while left:
        part = left.pop(0)
        if part == "..":
            current = current.rpartition("/")[0] or "/"
            found = os.lstat(current)
            continue
        step = below(current, part)
        if make_mode is not None and not os.path.lexists(step):
            with contextlib.suppress(FileExistsError):
                Path(step).mkdir(make_mode)
        status = os.lstat(step)
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > MOST_LINKS:
                raise UntrustedPathError(f"{os.fspath(folder)} has too many symbolic links")
            _check_owner(step, status, own_uid)
            target = str(Path(step).readlink())
            left = _parts(target) + left
            current = "/" if target.startswith("/") else current
            found = os.lstat(current)
            continue
        current, found = step, _directory(step, own_uid, last=not left)
    return current, found


def check_folder(folder: str | os.PathLike[str], own_uid: int | None = None) -> str:
    """A directory in which only root and this user can make, replace and remove files; returned without links.

    :raises UntrustedPathError: a rule is violated.
    :raises OSError: a component is missing, or cannot be examined.
    """
    return _owned_alone(*walk(Path(folder).absolute(), os.geteuid() if own_uid is None else own_uid))


def make_folder(folder: str | os.PathLike[str], mode: int, own_uid: int | None = None) -> str:
    """As `check_folder`; directories that are missing are made with a mode, below checked ones only."""
    return _owned_alone(*walk(Path(folder).absolute(), os.geteuid() if own_uid is None else own_uid, make_mode=mode))


def create(path: str | os.PathLike[str], mode: int = 0o644) -> int:
    """A descriptor for a new file in a directory that was checked. What has its name is removed; no link is followed.

    :raises OSError: it cannot be made.
    """
    with contextlib.suppress(FileNotFoundError):
        Path(path).unlink()
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)


def open_regular(path: str | os.PathLike[str], *, follow_link: bool = False) -> int:
    """A descriptor for reading a regular file. No pipe is waited for, and no link at its end is followed unless asked.

    :raises OSError: it is no regular file, or cannot be opened.
    """
    link = 0 if follow_link else os.O_NOFOLLOW
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | link)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise OSError(errno.EINVAL, "it is no regular file", os.fspath(path))


def target(file: str | os.PathLike[str], own_uid: int | None = None) -> Path:
    """The path of a file without symbolic links: what `file` is, or what it leads to. Only root and this user can
    replace it, or lead elsewhere. The file itself may belong to anyone, and need not be there.

    :raises UntrustedPathError: a rule is violated.
    :raises OSError: a component is missing, or cannot be examined.
    """
    path = Path(file).absolute()
    for _ in range(MOST_LINKS):
        path = Path(below(check_folder(path.parent, own_uid), path.name))
        if not path.is_symlink():
            return path
        path = path.parent / path.readlink()
    raise UntrustedPathError(f"{os.fspath(file)} has too many symbolic links")


def check_secret(file: str | os.PathLike[str]) -> None:
    """Check that a file with a secret is closed to others, as ssh does. Its group may read it if it is another user's:
    that is how root gives a secret to a service.

    :raises UntrustedPathError: more users may read or write it; the text has its mode and what to change.
    :raises OSError: it is missing, or cannot be examined.
    """
    found = Path(file).stat()
    mode = stat.S_IMODE(found.st_mode)
    allowed = stat.S_IRWXU if found.st_uid == os.geteuid() else stat.S_IRWXU | stat.S_IRGRP
    if mode & ~allowed & (stat.S_IRWXG | stat.S_IRWXO):
        raise UntrustedPathError(
            f"{os.fspath(file)} is open to users other than {user(found.st_uid)} (mode {mode:04o}), so others may know "
            f"what is in it: chmod {mode & allowed:04o} {os.fspath(file)}, and renew it if others could read it"
        )


def below(directory: str, name: str) -> str:
    """The path of an entry of a directory."""
    return f"{directory.rstrip('/')}/{name}"


def user(uid: int) -> str:
    """The name of a user, who need not have one."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def users(uids: set[int]) -> str:
    """The names of users, as alternatives."""
    return " or ".join(sorted(map(user, uids)))


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _directory(path: str, own_uid: int, *, last: bool) -> os.stat_result:
    found = os.lstat(path)
    _check_owner(path, found, own_uid)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    if not last and not found.st_mode & stat.S_ISVTX:
        _check_mode(path, found)
    return found


def _owned_alone(path: str, found: os.stat_result) -> str:
    _check_mode(path, found)
    return path


def _check_mode(path: str, found: os.stat_result) -> None:
    if found.st_mode & _OTHERS_WRITE:
        mode = stat.S_IMODE(found.st_mode)
        advice = "take a directory of its own below it" if found.st_mode & stat.S_ISVTX else f"chmod go-w {path}"
        raise UntrustedPathError(
            f"{path} can be changed by users other than {user(found.st_uid)} (mode {mode:04o}): {advice}"
        )


def _check_owner(path: str, found: os.stat_result, own_uid: int) -> None:
    if found.st_uid not in (0, own_uid):
        raise UntrustedPathError(
            f"{path} belongs to {user(found.st_uid)}, who could put something else in its place; "
            f"expected {users({0, own_uid})}: chown root {path}"
        )
