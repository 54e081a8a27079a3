"""The socket of a copilot, in a directory of its own that is closed to other users."""

import os
import socket
import stat
from pathlib import Path
from typing import Final

from fallow_hookspecs import trusted_path
from fallow_hookspecs.copilot import CopilotError

DIRECTORY_MODE: Final = 0o700
SOCKET_UMASK: Final = 0o117
"""Only the owner and the group may use the socket."""

LONGEST_PATH_BYTES: Final = 107


def prepare(path: Path) -> None:
    """Create the directory if it is missing (not its parents), and remove a socket without a server.

    :raises CopilotError: the directory is open to others, or one above it can be changed by them, the socket has a
        server, or the path is no socket.
    """
    if len(os.fsencode(path)) > LONGEST_PATH_BYTES:
        raise CopilotError(f"{path} is longer than {LONGEST_PATH_BYTES} bytes, the most for a socket")
    directory = path.parent
    try:
        directory.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        _, found = trusted_path.walk(directory.absolute(), os.geteuid())
    except trusted_path.UntrustedPathError as error:
        raise CopilotError(str(error)) from None
    except OSError as error:
        raise CopilotError(f"the directory of the socket, {directory}, cannot be created: {error.strerror}") from error
    if stat.S_IMODE(found.st_mode) & stat.S_IRWXO:
        mode = stat.S_IMODE(found.st_mode)
        raise CopilotError(f"{directory} is open to others (mode {mode:04o}); chmod o-rwx it, or take another one")
    _remove_stale(path)


def _remove_stale(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise CopilotError(f"{path} cannot be examined: {error.strerror}") from error
    if not stat.S_ISSOCK(found.st_mode):
        raise CopilotError(f"{path} exists and is no socket; remove it, or use another path")
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise CopilotError(f"{path} cannot be tried: {error.strerror}") from error
    raise CopilotError(f"another process already serves at {path}; stop it first")
