"""GET requests to a Hadoop daemon's web server: without proxy and redirects, with a size limit and a deadline."""

import http.client
import io
import json
import socket
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, cast
from urllib.parse import quote

import msgspec

from fallow_yarn.errors import (
    AccessDeniedError,
    AuthenticationRefusedError,
    ProtocolError,
    RemoteError,
    StandbyError,
    WrongPortError,
    YarnError,
    first_line,
)
from fallow_yarn.http.loose_json import member, text
from fallow_yarn.net.channel import CHUNK_BYTES, Channel
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint

if TYPE_CHECKING:
    import ssl

    from _typeshed import WriteableBuffer

T = TypeVar("T")

MAX_ANSWER_BYTES: Final = 64 << 20
"""For pages of a ResourceManager, whose list of 10,000 nodes is 18 MB."""
SMALL_ANSWER_BYTES: Final = 4 << 20
"""For pages of one host: a NodeManager's list of 1,000 containers is 0.7 MB."""
REFUSED: Final = (http.client.UNAUTHORIZED, http.client.FORBIDDEN)
TLS_PORT: Final = "this is a TLS port (set spec.tls to speak TLS)"


class Authentication(Protocol):
    """Authenticates requests to web servers."""

    def header(self, endpoint: Endpoint, deadline: Deadline) -> str:
        """The value of the header `Authorization` for one request."""

    def refused(self) -> None:
        """Tell that a server rejected the header."""


class Web:
    """The web server of a Hadoop daemon. Each request has a connection of its own."""

    def __init__(
        self,
        endpoint: Endpoint,
        user: str,
        *,
        tls: "ssl.SSLContext | None" = None,
        authentication: Authentication | None = None,
        cookies: MutableMapping[str, str] | None = None,
        most_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        """`user` is the value of `user.name`, which servers with simple authentication believe.

        `authentication` makes the header `Authorization`, only for a server that asks for it. `cookies` holds the
        session cookies that it earned, by server address; threads may share it. `most_bytes`: of one answer.
        """
        self._most_bytes = most_bytes
        self.endpoint = endpoint
        self._user = user
        self._tls = tls
        self._authentication = authentication
        self._cookies = {} if cookies is None else cookies

    def json(self, path: str, deadline: Deadline) -> object:
        """The JSON of a page. `path` may have a query, whose parts must be quoted already."""
        return self.decoded(path, deadline, object)

    def decoded(self, path: str, deadline: Deadline, kind: type[T]) -> T:
        """The JSON of a page as a type; a struct keeps only its fields of a large answer.

        :raises ProtocolError: it is not JSON, or not of the type.
        """
        return self.decode(path, self.page(path, deadline), kind)

    def decode(self, path: str, body: bytes | bytearray, kind: type[T]) -> T:
        """As `decoded`, of a page that was read already."""
        try:
            return _decoded(body, kind)
        except (ValueError, RecursionError) as error:
            start = first_line(body[:80].decode(errors="replace"))
            raise ProtocolError(self._explain(path, f"no such JSON ({error}); it begins with {start!r}")) from None

    def decoded_if_found(self, path: str, deadline: Deadline, kind: type[T]) -> T | None:
        """The JSON of a page as a type; None if there is no such page (404)."""
        try:
            return self.decoded(path, deadline, kind)
        except RemoteError as error:
            if error.kind == "HTTP 404":
                return None
            raise

    def page(self, path: str, deadline: Deadline) -> bytes | bytearray:
        """The body of a page."""
        return self.dated_page(path, deadline)[0]

    def dated_page(self, path: str, deadline: Deadline) -> tuple[bytearray, str]:
        """The body of a page, and the server's time (its `Date` header; empty without one)."""
        proof = None if self._authentication is None else self._cookies.get(self.endpoint.authority)
        response, body = self._exchange(path, proof and f"Cookie: {proof}", deadline)
        if response.status == http.client.UNAUTHORIZED and proof:  # the cookie has expired
            self._cookies.pop(self.endpoint.authority, None)
            if not _asks_for_proof(response):
                proof = None
                response, body = self._exchange(path, None, deadline)
        if self._authentication is not None and _asks_for_proof(response):
            proof = self._authentication.header(self.endpoint, deadline)
            response, body = self._exchange(path, f"Authorization: {proof}", deadline)
            if response.status == http.client.OK and (cookie := _signed_cookie(response)):
                self._cookies[self.endpoint.authority] = cookie
        if response.status != http.client.OK:
            if proof and self._authentication is not None and response.status in REFUSED:
                self._authentication.refused()
            raise self._refusal(path, response, body)
        return body, response.headers.get("Date", "")

    def _exchange(self, path: str, proof: str | None, deadline: Deadline) -> tuple[http.client.HTTPResponse, bytearray]:
        """`proof`: the header that shows who asks; without one the server may believe `user.name`."""
        request = self._request(path, proof)
        channel = Channel.connect(self.endpoint, deadline, self._tls)
        try:
            channel.send(request, deadline)
            response = http.client.HTTPResponse(cast(socket.socket, _Incoming(channel, deadline, self._most_bytes)))
            response.begin()
            body = bytearray()
            while chunk := response.read(CHUNK_BYTES):
                body += chunk
        except http.client.BadStatusLine as error:
            raise self._foreign(path, error) from None
        except (http.client.HTTPException, ValueError) as error:
            raise ProtocolError(self._explain(path, f"no HTTP answer: {first_line(str(error))}")) from None
        finally:
            channel.close()
        return response, body

    def _request(self, path: str, proof: str | None) -> bytes:
        query = "" if proof else f"{'&' if '?' in path else '?'}user.name={quote(self._user, safe='')}"
        lines = (
            f"GET {path}{query} HTTP/1.1",
            f"Host: {self.endpoint.authority}",
            "Accept: application/json",
            "Accept-Encoding: identity",
            "Connection: close",
            *filter(None, (proof,)),
        )
        return "".join(f"{line}\r\n" for line in (*lines, "")).encode()

    def _refusal(self, path: str, response: http.client.HTTPResponse, body: bytearray) -> YarnError:
        status, kind = response.status, f"HTTP {response.status}"
        detail = _java_message(body) or first_line(body[:1000].decode(errors="replace"))
        said = f"{kind}: {detail or 'no text'}"
        if 300 <= status < 400:
            if "standby" in detail.lower() or response.headers.get("Refresh"):
                return StandbyError(self._explain(path, f"it is a standby ({said})"), kind=kind, detail=detail)
            target = first_line(response.headers.get("Location", "nowhere"))
            return ProtocolError(self._explain(path, f"it redirects to {target}, which is not followed"))
        if "Hadoop IPC port" in detail:
            return WrongPortError(self._explain(path, "this is a Hadoop IPC port"))
        message = self._explain(path, said)
        if status == http.client.UNAUTHORIZED:
            asked = _challenges(response)
            message += f"; it asks for {first_line(' or '.join(asked))}" if asked else ""
            message += "" if self._authentication else "; if the cluster has Kerberos, set spec.kerberos"
            return AuthenticationRefusedError(message, kind=kind, detail=detail)
        if status == http.client.FORBIDDEN:
            return AccessDeniedError(message, kind=kind, detail=detail)
        return RemoteError(message, kind=kind, detail=detail)

    def _foreign(self, path: str, error: http.client.BadStatusLine) -> ProtocolError:
        """The error for a first line that is not HTTP; an empty one is the end of the connection."""
        if isinstance(error, http.client.RemoteDisconnected):
            return ProtocolError(self._explain(path, f"no HTTP answer: {first_line(str(error))}"))
        if str(error).startswith("\x15\x03"):
            return WrongPortError(self._explain(path, f"{TLS_PORT}: it answered with a TLS alert"))
        return WrongPortError(self._explain(path, f"no HTTP answer: {first_line(str(error))}"))

    def _explain(self, path: str, seen: str) -> str:
        expected = f"expected {self.endpoint.purpose} ({self.endpoint.hadoop_key})"
        return f"{self.endpoint}: GET {path}: {seen}; {expected}"


def _challenges(response: http.client.HTTPResponse) -> list[str]:
    """The ways to authenticate that a server offers, in lower case, such as `negotiate`."""
    parts = ",".join(response.headers.get_all("WWW-Authenticate", [])).lower().split(",")
    words = (part.split()[0] for part in parts if part.strip())
    return [word for word in words if word.replace("-", "").isalnum()]  # the other parts are parameters


def _asks_for_proof(response: http.client.HTTPResponse) -> bool:
    """Whether the server asks for Kerberos (RFC 4559)."""
    return response.status == http.client.UNAUTHORIZED and "negotiate" in _challenges(response)


def _signed_cookie(response: http.client.HTTPResponse) -> str:
    """The session cookie of the server's authentication, without its attributes."""
    cookies = (header.partition(";")[0].strip() for header in response.headers.get_all("Set-Cookie", []))
    return next((cookie for cookie in cookies if cookie.startswith("hadoop.auth=") and len(cookie) > 16), "")


class _Incoming(io.RawIOBase):
    """The data of a channel as a file for http.client, with a limit of time and bytes."""

    def __init__(self, channel: Channel, deadline: Deadline, most_bytes: int) -> None:
        self._channel = channel
        self._deadline = deadline
        self._most_bytes = self._left_bytes = most_bytes

    def makefile(self, _mode: str) -> io.BufferedReader:
        """The method of a socket that http.client needs."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer)
        chunk = self._channel.receive(len(view), self._deadline)
        self._left_bytes -= len(chunk)
        if self._left_bytes < 0:
            raise ProtocolError(f"{self._channel.endpoint}: the answer is longer than {self._most_bytes} bytes")
        view[: len(chunk)] = chunk
        return len(chunk)


def _decoded(body: bytes | bytearray, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # A daemon may write NaN for 0/0, which is not JSON; the standard library accepts it.
        return msgspec.convert(json.loads(body), kind)


def _java_message(body: bytearray) -> str:
    """The message in the JSON of an error page, of Hadoop or of its web server; empty for another body."""
    try:
        answer = json.loads(body)
        return first_line(text(member(answer, "RemoteException", "message")) or text(member(answer, "message")))
    except (ValueError, RecursionError):
        return ""
