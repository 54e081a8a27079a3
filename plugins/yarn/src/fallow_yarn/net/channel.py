"""A TCP connection whose reads and writes keep a deadline, even if the peer sends byte by byte."""

import errno
import socket
from typing import TYPE_CHECKING, Final, Self

from fallow_yarn.errors import (
    ConnectionLostError,
    DeadlineError,
    ProtocolError,
    RefusedError,
    SilentHostError,
    UnknownHostError,
    UnreachableError,
    WrongPortError,
)
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint

if TYPE_CHECKING:
    import ssl

CHUNK_BYTES: Final = 64 << 10
GONE_SECONDS: Final = 4.0
"""How long a host may leave data, or a connection request, without a TCP acknowledgement. A slow host acknowledges."""

UNKNOWN_AUTHORITY: Final = "set spec.tls.caFile to the file of the authority that signed it"
OTHER_NAME: Final = "set the address to a name that the certificate is for"
OTHER_FAULT: Final = (
    "have the certificate, or that of its authority, issued again without this fault; an authority in spec.tls.caFile"
    " is accepted also if it lacks what Python 3.13 requires of those of the system"
)
_TRUST_ADVICE: Final = {  # by the codes of X509_verify_cert_error_string(3)
    **dict.fromkeys((2, 18, 19, 20, 21), UNKNOWN_AUTHORITY),
    **dict.fromkeys((9, 10), "renew the certificate, or correct this host's clock"),
    **dict.fromkeys((62, 64), OTHER_NAME),
}


class Channel:
    """A connected socket. One thread uses it; every method ends by the deadline."""

    def __init__(self, endpoint: Endpoint, connected: socket.socket) -> None:
        self.endpoint = endpoint
        self._socket = connected

    @classmethod
    def connect(cls, endpoint: Endpoint, deadline: Deadline, tls: "ssl.SSLContext | None" = None) -> Self:
        """Connect to the first of the host's addresses that answers; each gets its share of the time, not more than
        `GONE_SECONDS`.

        With `tls` all data is encrypted, after the server has shown a certificate that the context trusts.

        Only the system's name look-up cannot be interrupted. It has time limits of its own (resolv.conf); an address
        instead of a name avoids it.
        """
        # As bytes it needs no IDNA codec, whose large tables would stay in memory.
        host = endpoint.host.encode() if endpoint.host.isascii() else endpoint.host
        try:
            found = socket.getaddrinfo(host, endpoint.port, type=socket.SOCK_STREAM)
        except (OSError, ValueError) as error:
            raise UnknownHostError(f"{endpoint}: the name {endpoint.host!r} cannot be resolved: {error}") from None
        failure: OSError | None = None
        for position, (family, kind, protocol, _, address) in enumerate(found):
            left = deadline.left_seconds()
            if left <= 0:
                break
            candidate = socket.socket(family, kind, protocol)
            try:
                candidate.settimeout(min(left / (len(found) - position), GONE_SECONDS))
                candidate.connect(address)
                candidate.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(GONE_SECONDS * 1000))
                candidate.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                candidate.close()
                failure = error
                continue
            except BaseException:
                candidate.close()
                raise
            return cls(endpoint, candidate if tls is None else _secured(endpoint, candidate, tls, deadline))
        if failure is None or isinstance(failure, TimeoutError):
            raise SilentHostError(
                f"{endpoint}: no connection in the time given; is the host up, and no filter between?"
            )
        error_class = RefusedError if isinstance(failure, ConnectionRefusedError) else UnreachableError
        raise error_class(
            f"{endpoint}: no connection: {failure.strerror or failure}; expected {endpoint.purpose} there"
            f" ({endpoint.hadoop_key}): is it running, and is it active?"
        )

    def send(self, data: bytes, deadline: Deadline) -> None:
        """Send all of `data`. If this raises, the peer has not received all of it."""
        self._limit(deadline)
        try:
            self._socket.sendall(data)
        except TimeoutError as error:
            raise self._timed_out(error, "sending the request") from None
        except OSError as error:
            raise self._lost(error.strerror or str(error)) from None

    def receive(self, most_bytes: int, deadline: Deadline) -> bytes:
        """Received data, at least one byte and at most `most_bytes`; empty if the peer has closed."""
        self._limit(deadline)
        try:
            return self._socket.recv(min(most_bytes, CHUNK_BYTES))
        except TimeoutError as error:
            raise self._timed_out(error, "waiting for the answer") from None
        except OSError as error:
            raise self._lost(error.strerror or str(error)) from None

    def receive_exactly(self, count: int, deadline: Deadline, *, begun: bool = False) -> bytes:
        """`count` bytes. Memory grows with the received data, not with the announced length.

        An end before the first byte is a ConnectionLostError; a ProtocolError if a part of the same answer was
        received, in this call or before it (`begun`).
        """
        received = bytearray()
        while len(received) < count:
            try:
                chunk = self.receive(count - len(received), deadline)
            except ConnectionLostError:
                chunk = b""
                if not (begun or received):
                    raise
            if not chunk and not (begun or received):
                raise self._lost("it closed the connection")
            if not chunk:
                raise ProtocolError(
                    f"the answer is truncated: its connection ended after {len(received)} of {count} bytes"
                )
            received += chunk
        return bytes(received)

    def is_quiet(self) -> bool:
        """Whether the connection is open and has no unread data, as it should be between two calls."""
        self._socket.settimeout(0)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Close the socket; safe to repeat."""
        self._socket.close()

    def _limit(self, deadline: Deadline) -> None:
        left = deadline.left_seconds()
        if left <= 0:
            raise self._late("talking to it")
        self._socket.settimeout(left)

    def _timed_out(self, error: TimeoutError, doing: str) -> DeadlineError | SilentHostError:
        """The error for the deadline, or for the kernel's time-out of a host that acknowledges nothing."""
        if error.errno == errno.ETIMEDOUT:
            return SilentHostError(
                f"{self.endpoint}: the host of a connection that stood confirms nothing; is it up, and the way there?"
            )
        return self._late(doing)

    def _late(self, doing: str) -> DeadlineError:
        return DeadlineError(f"{self.endpoint}: the time given was over while {doing}")

    def _lost(self, why: str) -> ConnectionLostError:
        return ConnectionLostError(f"{self.endpoint}: the connection ended before the answer: {why}")


def _secured(
    endpoint: Endpoint, connected: socket.socket, tls: "ssl.SSLContext", deadline: Deadline
) -> "ssl.SSLSocket":
    import ssl  # takes megabytes, and most clusters speak no TLS

    try:
        connected.settimeout(max(deadline.left_seconds(), 0.001))
        return tls.wrap_socket(connected, server_hostname=endpoint.host.rstrip("."))
    except ssl.SSLCertVerificationError as error:
        connected.close()
        advice = _TRUST_ADVICE.get(error.verify_code, OTHER_FAULT)
        raise ProtocolError(f"{endpoint}: its certificate is not trusted: {error.verify_message}; {advice}") from None
    except TimeoutError:
        connected.close()
        raise DeadlineError(f"{endpoint}: the time given was over while agreeing on TLS") from None
    except OSError as error:
        connected.close()
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        raise WrongPortError(f"{endpoint}: it does not speak TLS: {reason}; expected {endpoint.purpose}") from None
