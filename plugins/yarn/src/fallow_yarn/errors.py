"""The errors of this plugin, distinguished by what a caller can do about them.

::

    YarnError
    ├── UnreachableError            no connection, for example without a route
    │   ├── UnknownHostError        the name of the host cannot be resolved
    │   ├── RefusedError            the host is up, and nothing listens at the port
    │   ├── SilentHostError         nothing came back: the host is down, or a firewall drops packets
    │   └── ConnectionLostError     the connection ended before the answer was complete
    ├── DeadlineError               connected, but no answer before the deadline
    ├── CredentialsError            this side cannot authenticate (Kerberos)
    │   └── UnknownServiceError     the KDC does not know the service
    ├── ProtocolError               the other side sent invalid data
    │   └── WrongPortError          it uses another protocol
    └── RemoteError                 the ResourceManager refused
        ├── StandbyError            it is not the active one (or has only just started)
        ├── AccessDeniedError       the user may not do this
        ├── AuthenticationRefusedError  it does not accept this authentication
        ├── UnknownNodeError        it does not know a node of the request
        └── NoSuchCallError         it does not know the protocol or the method

Messages have the address with the setting that it came from, what was received, and advice where there is some.
"""

from typing import Final

MAX_TEXT: Final = 300


class YarnError(Exception):
    """Base of this plugin's errors.

    `maybe_sent` is True if the whole request left this process: the ResourceManager may have carried it out, or may
    still do so. False means that it has not and will not.
    """

    def __init__(self, message: str, *, maybe_sent: bool = False) -> None:
        super().__init__(message)
        self.maybe_sent = maybe_sent


class UnreachableError(YarnError):
    """No connection could be made."""


class UnknownHostError(UnreachableError):
    """The host's name cannot be resolved."""


class RefusedError(UnreachableError):
    """The host refused the connection: nothing listens at the port."""


class SilentHostError(UnreachableError):
    """The host acknowledges nothing: it is down, or the network is."""


class ConnectionLostError(UnreachableError):
    """The other side ended the connection before its answer was complete."""


class DeadlineError(YarnError):
    """The deadline of the caller has passed."""


class ProtocolError(YarnError):
    """The other side sent invalid data, such as garbage or a truncated or oversized frame."""


class WrongPortError(ProtocolError):
    """The first bytes are those of another protocol: HTTP, TLS, Hadoop IPC, or an unknown one."""


class CredentialsError(YarnError):
    """This side cannot authenticate: no ticket, a wrong keytab, or an unreachable KDC."""


class UnknownServiceError(CredentialsError):
    """The KDC does not know the service under this name."""


class RemoteError(YarnError):
    """The ResourceManager refused the request.

    `kind` is the Java class of its exception, or `HTTP 503` for a web page; `detail` the first line of its text.
    """

    def __init__(self, message: str, *, kind: str = "", detail: str = "", maybe_sent: bool = False) -> None:
        super().__init__(message, maybe_sent=maybe_sent)
        self.kind = kind
        self.detail = detail


class StandbyError(RemoteError):
    """This ResourceManager is not active."""


class AccessDeniedError(RemoteError):
    """The user lacks the right for this call."""


class AuthenticationRefusedError(RemoteError):
    """The ResourceManager does not accept the authentication method or the credentials."""


class UnknownNodeError(RemoteError):
    """The request names a node that the ResourceManager does not know; it carried out no part of the request.

    `node` is the node that it names, `None` if its text names none.
    """

    def __init__(self, message: str, *, node: str | None, kind: str = "", detail: str = "") -> None:
        super().__init__(message, kind=kind, detail=detail)
        self.node = node


class NoSuchCallError(RemoteError):
    """The server at this address does not know the protocol or the method."""


def first_line(text: str) -> str:
    """The first line of a Java message, without stack and control characters, shortened for a log."""
    line = next((line for line in text.splitlines() if line.strip()), "").strip()
    line = "".join(character if character.isprintable() else "?" for character in line)
    return line if len(line) <= MAX_TEXT else line[:MAX_TEXT] + "…"
