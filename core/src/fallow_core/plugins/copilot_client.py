"""The connection to a copilot, and the instance whose calls it answers.

The path of the socket is checked before each call. If there is another socket, the copilot was restarted: the client
connects again and asks it who it is. So a restart loses only the calls under way, and no process that replaced the
socket receives a call unchecked.
"""

import os
import threading
import time
from dataclasses import dataclass
from typing import Any, Final

from fallow_core.plugins.copilot_path import Place, UntrustedPathError, check
from fallow_hookspecs import Finding, Instance, PluginError
from fallow_hookspecs.copilot.client import Connection, MisfitError, instance_of

DESCRIBE_SECONDS: Final = 5.0
START_SECONDS: Final = 3.0
"""How long a copilot that is started together with Fallow may take to serve."""
POLL_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class _Connected:
    place: Place
    connection: Connection


class Link:
    """The connection to the copilot at one path. Both lanes call it, each from its own thread."""

    def __init__(self, path: str, user: str | None, own_uid: int) -> None:
        self._path, self._user, self._own_uid = path, user, own_uid
        self._lock = threading.Lock()
        self._connected: _Connected | None = None
        self._closed = False

    def call(self, name: str, request: bytes, timeout_seconds: float) -> Any:
        """Make a call and return its message.

        :raises TryLater, Broken: the copilot says so.
        :raises PluginError: any other failure, in words for the operator.
        """
        begun = time.monotonic()
        connection = self.connect(timeout_seconds).connection
        return connection.call(name, request, timeout_seconds, gone_seconds=time.monotonic() - begun)

    def connect(self, timeout_seconds: float) -> _Connected:
        """The connection to the copilot that serves now.

        :raises PluginError: there is none, the path cannot be trusted, or it is no copilot that fits.
        """
        place = check(self._path, self._user, self._own_uid)
        if not self._lock.acquire(timeout=timeout_seconds):
            raise PluginError(f"the copilot at {self._path} did not answer within {timeout_seconds:.3g} s")
        try:
            if self._closed:
                raise PluginError("the connection was closed")
            known = self._connected
            if known is not None and known.place.identity == place.identity:
                return known
            self._drop()
            connection = Connection(self._path, min(timeout_seconds, DESCRIBE_SECONDS))
            self._connected = _Connected(place=place, connection=connection)
            return self._connected
        finally:
            self._lock.release()

    def findings(self, timeout_seconds: float) -> tuple[Finding, ...]:
        """The socket, and who serves there."""
        connected = self.connect(timeout_seconds)
        return (
            Finding(subject="copilot's socket", ok=True, detail=str(connected.place)),
            Finding(subject="copilot", ok=True, detail=str(connected.connection)),
        )

    def close(self) -> None:
        """End the connection. Safe to repeat."""
        with self._lock:
            self._closed = True
            self._drop()

    def _drop(self) -> None:
        if self._connected is not None:
            self._connected.connection.close()
            self._connected = None


def open_client(path: str, user: str | None) -> Instance:
    """An instance with the hooks of the copilot at the path. It waits a few seconds for a copilot that is starting.

    :raises PluginError: there is none, the path cannot be trusted, or it is no copilot that fits.
    """
    link = Link(path, user, os.geteuid())
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            hooks = link.connect(DESCRIBE_SECONDS).connection.description.hooks
            return instance_of(link, hooks, link.findings)
        except (MisfitError, UntrustedPathError):
            raise
        except PluginError:
            if time.monotonic() >= end:
                raise
        time.sleep(POLL_SECONDS)
