"""Checks whether the socket of a copilot can be trusted, and each component of its path.

A user who can replace the socket decides what is lent and which tasks are terminated. Beside the rules of
`fallow_hookspecs.trusted_path`:

- the directory of the socket is closed to others, sticky or not; its group may write, so that a copilot that is not
  root can place its socket there;
- the socket belongs to root, to Fallow's own user, or to the copilot's user as configured, and is closed to others.
"""

import os
import pwd
import stat
from dataclasses import dataclass

from fallow_hookspecs import PluginError, trusted_path


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
    try:
        real, found = trusted_path.walk(directory, own_uid)
    except trusted_path.UntrustedPathError as error:
        raise UntrustedPathError(str(error)) from None
    except OSError as error:
        raise _unseen(error) from None
    if mode := stat.S_IMODE(found.st_mode) & stat.S_IRWXO:
        raise UntrustedPathError(
            f"{real} is open to others (mode {stat.S_IMODE(found.st_mode):04o}), so anyone may reach the copilot: "
            f"chmod o-{_letters(mode)} {real}"
        )
    socket = _stat(trusted_path.below(real, name))
    if not stat.S_ISSOCK(socket.st_mode):
        raise PluginError(f"{path} is no socket: is it the path that the copilot was started with?")
    allowed = {0, own_uid} | ({_uid(copilot_user)} if copilot_user is not None else set())
    if socket.st_uid not in allowed:
        raise UntrustedPathError(
            f"the socket {path} belongs to {trusted_path.user(socket.st_uid)}; expected {trusted_path.users(allowed)}. "
            "If the copilot runs as that user, and no task does, set spec.user"
        )
    if stat.S_IMODE(socket.st_mode) & stat.S_IRWXO:
        mode = stat.S_IMODE(socket.st_mode)
        raise UntrustedPathError(f"the socket {path} is open to others (mode {mode:04o}): chmod o-rwx {path}")
    return Place(path=path, socket=socket, directory=found)


def _stat(path: str) -> os.stat_result:
    try:
        return os.lstat(path)
    except OSError as error:
        raise _unseen(error) from None


def _unseen(error: OSError) -> PluginError:
    if isinstance(error, FileNotFoundError):
        return PluginError(f"there is no {error.filename}: the copilot does not run, or serves at another path")
    return PluginError(f"{error.filename} cannot be examined: {error.strerror}")


def _uid(user: str) -> int:
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        raise PluginError(f"spec.user is {user!r}, and there is no such user on this host") from None


def _owner(found: os.stat_result) -> str:
    return f"{trusted_path.user(found.st_uid)}, {stat.S_IMODE(found.st_mode):04o}"


def _letters(mode: int) -> str:
    return "".join(letter for letter, bit in (("r", 4), ("w", 2), ("x", 1)) if mode & bit)
