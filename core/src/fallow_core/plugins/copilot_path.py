"""Checks whether the path of a copilot's socket can be trusted: the owner and the mode of each component.

Batch tasks often run as the framework's own user. A user who can replace the socket decides what is lent and which
tasks are terminated, so a path with a component that another user can replace is refused. The rules:

- each directory and each symbolic link belongs to root or to Fallow's own user;
- no directory is writable by its group or by others, unless it is sticky like /tmp: then only the owner of an entry can
  replace it;
- the directory of the socket is closed to others, sticky or not; its group may write, so that a copilot that is not
  root can place its socket there;
- the socket belongs to root, to Fallow's own user, or to the copilot's user as configured, and is closed to others.
"""

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fallow_hookspecs import PluginError

_MOST_LINKS: Final = 40


class UntrustedPathError(PluginError):
    """A component of the path belongs to the wrong user, or others may change it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A trusted socket and its directory. A different `identity` means that the copilot was restarted."""

    path: str
    socket: os.stat_result
    directory: os.stat_result

    @property
    def identity(self) -> tuple[int, int, int]:
        """What tells sockets at the same path apart."""
        return self.socket.st_dev, self.socket.st_ino, self.socket.st_ctime_ns

    def __str__(self) -> str:
        """The owners and modes of the socket and its directory, for the operator."""
        return f"{self.path} ({_owner(self.socket)}) in a directory of its own ({_owner(self.directory)})"


def check(path: str, copilot_user: str | None, own_uid: int) -> Place:
    """Check every component of an absolute path.

    :raises UntrustedPathError: a rule is violated; the text names the component and what to change.
    :raises PluginError: there is no socket.
    """
    directory, name = os.path.split(path)
    real = _walk(directory, own_uid, path)
    found = _stat(real)
    if mode := stat.S_IMODE(found.st_mode) & stat.S_IRWXO:
        raise UntrustedPathError(
            f"{real} is open to others (mode {stat.S_IMODE(found.st_mode):04o}), so anyone may reach the copilot: "
            f"chmod o-{_letters(mode)} {real}"
        )
    socket = _stat(_below(real, name))
    if not stat.S_ISSOCK(socket.st_mode):
        raise PluginError(f"{path} is no socket: is it the path that the copilot was started with?")
    allowed = {0, own_uid} | ({_uid(copilot_user)} if copilot_user is not None else set())
    if socket.st_uid not in allowed:
        raise UntrustedPathError(
            f"the socket {path} belongs to {_user(socket.st_uid)}; expected {_users(allowed)}. If the copilot runs as "
            "that user, and no task does, set spec.user"
        )
    if stat.S_IMODE(socket.st_mode) & stat.S_IRWXO:
        mode = stat.S_IMODE(socket.st_mode)
        raise UntrustedPathError(f"the socket {path} is open to others (mode {mode:04o}): chmod o-rwx {path}")
    return Place(path=path, socket=socket, directory=found)


def _walk(directory: str, own_uid: int, path: str) -> str:
    """The directory without symbolic links; every component on the way is checked, and so is each link."""
    current, left, links = "/", _parts(directory), 0
    _check_directory(current, _stat(current), own_uid, last=not left)
    while left:
        part = left.pop(0)
        if part == "..":
            current = current.rpartition("/")[0] or "/"
            continue
        step = _below(current, part)
        found = _stat(step)
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > _MOST_LINKS:
                raise UntrustedPathError(f"{path} has too many symbolic links")
            _check_owner(step, found, own_uid)
            target = str(Path(step).readlink())
            left = _parts(target) + left
            current = "/" if target.startswith("/") else current
            continue
        _check_directory(step, found, own_uid, last=not left)
        current = step
    return current


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _below(directory: str, name: str) -> str:
    return f"{directory.rstrip('/')}/{name}"


def _check_directory(path: str, found: os.stat_result, own_uid: int, *, last: bool) -> None:
    _check_owner(path, found, own_uid)
    mode = stat.S_IMODE(found.st_mode)
    if last or mode & stat.S_ISVTX or not mode & (stat.S_IWGRP | stat.S_IWOTH):
        return
    raise UntrustedPathError(
        f"{path} can be changed by users other than {_user(found.st_uid)} (mode {mode:04o}): chmod go-w {path}"
    )


def _check_owner(path: str, found: os.stat_result, own_uid: int) -> None:
    if found.st_uid not in (0, own_uid):
        raise UntrustedPathError(
            f"{path} belongs to {_user(found.st_uid)}, who could put another socket in place of the copilot's; "
            f"expected {_users({0, own_uid})}: chown root {path}"
        )


def _stat(path: str) -> os.stat_result:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        raise PluginError(f"there is no {path}: the copilot does not run, or serves at another path") from None
    except OSError as error:
        raise PluginError(f"{path} cannot be examined: {error.strerror}") from error


def _uid(user: str) -> int:
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        raise PluginError(f"spec.user is {user!r}, and there is no such user on this host") from None


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _users(uids: set[int]) -> str:
    return " or ".join(sorted(map(_user, uids)))


def _owner(found: os.stat_result) -> str:
    return f"{_user(found.st_uid)}, {stat.S_IMODE(found.st_mode):04o}"


def _letters(mode: int) -> str:
    return "".join(letter for letter, bit in (("r", 4), ("w", 2), ("x", 1)) if mode & bit)
