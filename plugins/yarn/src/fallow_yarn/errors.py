"""What can go wrong between this plugin and a ResourceManager, told apart by what the caller can do about it.

::

    YarnError
    ├── UnreachableError            no connection, such as for want of a route
    │   ├── UnknownHostError        the name of the host cannot be resolved
    │   ├── RefusedError            the host is up, and nothing listens at the port
    │   ├── SilentHostError         nothing came back: the host is down, or a filter drops what is sent
    │   └── ConnectionLostError     there was one, and it ended before the answer was complete
    ├── DeadlineError               connected, and no answer in the time the caller gave
    ├── CredentialsError            this side cannot prove who it is (Kerberos)
    ├── ProtocolError               what answers there says something impossible
    │   └── WrongPortError          it speaks another protocol
    └── RemoteError                 the ResourceManager answered, and refused
        ├── StandbyError            it is not the active one (or has only just started)
        ├── AccessDeniedError       the user may not do this
        ├── AuthenticationRefusedError  it does not take this way of saying who one is
        ├── UnknownNodeError        it does not know a node that the request names
        └── NoSuchCallError         it does not know the protocol or the method

Messages name the address and the setting it came from, say what was seen, and what to do where that is known.
"""

from typing import Final

MAX_TEXT: Final = 300


class YarnError(Exception):
    """Base of this plugin's errors.

    `maybe_sent` is True if the request left this process whole: the ResourceManager may have carried it out, or may
    do so yet. False means that it certainly has not and will not.
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
    """The host confirms nothing of what it is sent: it is down, or the way there is."""


class ConnectionLostError(UnreachableError):
    """The other side ended the connection before its answer was complete."""


class DeadlineError(YarnError):
    """The time that the caller gave is over."""


class ProtocolError(YarnError):
    """The other side sent what no ResourceManager sends there: garbage, a truncated or oversized frame."""


class WrongPortError(ProtocolError):
    """What listens there speaks another protocol, from its first bytes on: HTTP, TLS, Hadoop IPC, or an unknown one."""


class CredentialsError(YarnError):
    """This side cannot prove who it is: no ticket, a wrong keytab, a KDC that is away."""


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
    """The ResourceManager does not accept this way of saying who one is, or the proof."""


class UnknownNodeError(RemoteError):
    """The request names a node that the ResourceManager does not know; nothing of the request was done.

    `node` is the node that it names, `None` if its text names none.
    """

    def __init__(self, message: str, *, node: str | None, kind: str = "", detail: str = "") -> None:
        super().__init__(message, kind=kind, detail=detail)
        self.node = node


class NoSuchCallError(RemoteError):
    """The server at this address does not know the protocol or the method."""


def first_line(text: str) -> str:
    """The first line of a Java message, without its stack and control characters, cut to a length fit for a log."""
    line = next((line for line in text.splitlines() if line.strip()), "").strip()
    line = "".join(character if character.isprintable() else "?" for character in line)
    return line if len(line) <= MAX_TEXT else line[:MAX_TEXT] + "…"
