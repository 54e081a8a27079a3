"""The control socket: one JSON line in, one JSON line out, on a Unix socket that only its owner can open.

Who asks is told by the kernel (`SO_PEERCRED`), not by the request. With a control group its members may ask for what
is only read; what changes something is for the owner of the process and for root.
"""

import errno
import grp
import json
import logging
import os
import pwd
import socket
import socketserver
import stat
import struct
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fallow_core.errors import ControlError, FallowError, NotRunningError
from fallow_core.log import event

log = logging.getLogger("fallow.control")

MAX_REQUEST_BYTES = 64 * 1024
MAX_ANSWER_BYTES = 64 * 1024 * 1024
CLIENT_SECONDS = 30.0
MOST_OF_A_USER, MOST_GUESTS = 4, 32
"""The connections that users who may only read may have open at a time: each one, and all together."""
TOO_MANY = "too many connections: wait until your other requests have ended"
PROBE_SECONDS = 1.0

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Who asks, as the kernel says."""

    uid: int
    name: str

    @property
    def may_change(self) -> bool:
        """Whether this user may change something: the owner of the process, and root."""
        return self.uid in (0, os.geteuid())


Handler = Callable[[Peer, dict[str, Any]], Answer]


class Guests:
    """The open connections of users who may only read. Owner and root are not counted, so nobody takes their places."""

    def __init__(self) -> None:
        self._open: Counter[int] = Counter()
        self._lock = threading.Lock()

    def enter(self, uid: int) -> bool:
        """Count one more connection of a user; false if there are too many, of this user or of all."""
        with self._lock:
            if self._open[uid] >= MOST_OF_A_USER or self._open.total() >= MOST_GUESTS:
                return False
            self._open[uid] += 1
            return True

    def leave(self, uid: int) -> None:
        """A connection of a user was closed."""
        with self._lock:
            self._open[uid] -= 1
            if not self._open[uid]:
                del self._open[uid]


class ControlServer:
    """Serves the socket in threads of its own; `handler` is called there, once for each request."""

    def __init__(self, path: Path, group: str | None, handler: Handler) -> None:
        self.path = path
        _make_way(path)
        old_mask = os.umask(0o177)
        try:
            self._server = _Server(str(path), handler)
        except OSError as error:
            raise _not_opened(path, error) from error
        finally:
            os.umask(old_mask)
        try:
            if group is not None:
                _open_to_group(path, group)
        except ControlError:
            self._end()
            raise
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.2,), name="control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving and remove the socket."""
        self._server.shutdown()
        self._end()

    def _end(self) -> None:
        self._server.server_close()
        self.path.unlink(missing_ok=True)


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, path: str, handler: Handler) -> None:
        self.handler = handler
        self._guests = Guests()
        super().__init__(path, _Connection)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        try:
            peer = _peer(request)
        except OSError:
            return False  # it went away
        if peer.may_change or self._guests.enter(peer.uid):
            return True
        event(log, logging.WARNING, "connection_refused", who=peer.name, reason="it has too many open")
        with suppress(OSError):
            request.sendall(json.dumps({"error": TOO_MANY}).encode() + b"\n")
        return False

    def process_request(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread can be started
            self._leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except Exception:
            self.handle_error(request, client_address)
        finally:
            self._leave(request)
            self.shutdown_request(request)

    def _leave(self, request: Any) -> None:
        peer = _peer(request)
        if not peer.may_change:
            self._guests.leave(peer.uid)

    def handle_error(self, request: Any, client_address: Any) -> None:
        event(log, logging.ERROR, "connection_failed", reason=repr(sys.exc_info()[1]))


class _Connection(socketserver.StreamRequestHandler):
    timeout = CLIENT_SECONDS

    def handle(self) -> None:
        try:
            line = self.rfile.readline(MAX_REQUEST_BYTES)
            if line:
                self.wfile.write(json.dumps(self._answer(line)).encode() + b"\n")
        except OSError:
            pass  # the client went away

    def _answer(self, line: bytes) -> Answer:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            request = None
        if not isinstance(request, dict):
            return {"error": f"the request is not one line of at most {MAX_REQUEST_BYTES} bytes with a JSON object"}
        try:
            return cast("_Server", self.server).handler(_peer(self.connection), request)
        except FallowError as error:
            return {"error": str(error)}
        except Exception as error:
            event(log, logging.ERROR, "request_failed", request=request.get("request"), reason=repr(error))
            log.debug("request failed", exc_info=error)
            return {"error": f"a mistake in Fallow: {error!r}"}


def _peer(connection: socket.socket) -> Peer:
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    uid = struct.unpack("3i", raw)[1]
    return Peer(uid=uid, name=user_name(uid))


def user_name(uid: int) -> str:
    """The name of a user, who need not have one."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _make_way(path: Path) -> None:
    """Make the socket's directory, and remove a socket that nobody serves."""
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        if not path.exists():
            return
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
        answer = _probed(path) if is_socket else 0
        if answer == errno.ECONNREFUSED:
            path.unlink()
            return
    except OSError as error:
        raise _not_opened(path, error) from error
    if not is_socket:
        raise ControlError(f"{path} exists and is no socket; remove it, or set controlSocket")
    if answer in (0, errno.EAGAIN):  # the second one: it is alive, and too busy to answer
        raise ControlError(f"a Fallow is running already: it serves {path}")
    raise _not_opened(path, OSError(answer, os.strerror(answer)))


def _probed(path: Path) -> int:
    """What the kernel says to a connection."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PROBE_SECONDS)
        return probe.connect_ex(str(path))


def _not_opened(path: Path, error: OSError) -> ControlError:
    return ControlError(f"cannot open the control socket {path}: {error.strerror}; set controlSocket")


def _open_to_group(path: Path, group: str) -> None:
    try:
        os.chown(path, -1, grp.getgrnam(group).gr_gid)
        path.chmod(0o660)
    except KeyError:
        raise ControlError(f"controlGroup: there is no group {group!r} on this host") from None
    except OSError as error:
        raise ControlError(f"controlGroup: cannot give {path} to group {group!r}: {error.strerror}") from error


def ask(path: Path, request: dict[str, Any]) -> Answer:
    """Send one request to a running Fallow.

    :raises NotRunningError: nobody serves the socket.
    :raises ControlError: there is no access, or the answer is an error.
    """
    try:
        answer: Answer = json.loads(_line(path, request))
    except (FileNotFoundError, ConnectionRefusedError):
        raise NotRunningError(f"no Fallow is running: nobody serves {path}") from None
    except (ConnectionResetError, BrokenPipeError):
        raise ControlError(f"Fallow is stopping: it closed {path} without an answer") from None
    except PermissionError:
        raise ControlError(f"no access to {path}: ask as root or as the user that runs Fallow") from None
    except (OSError, ValueError) as error:
        raise ControlError(f"no answer from the Fallow that serves {path}: {error}") from error
    if "error" in answer:
        raise ControlError(str(answer["error"]))
    return answer


def _line(path: Path, request: dict[str, Any]) -> bytes:
    """The line that answers a request.

    :raises ConnectionResetError: the connection was closed before the end of the line.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(CLIENT_SECONDS)
        connection.connect(str(path))
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as stream:
            line = stream.readline(MAX_ANSWER_BYTES)
    if not line.endswith(b"\n") and len(line) < MAX_ANSWER_BYTES:
        raise ConnectionResetError
    return line
