"""A minimal HTTP server for the web pages of a Hadoop daemon."""

import json
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import BinaryIO, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from fallow_yarn.embedded.listener import Serve

MAX_BODY_BYTES: Final = 1 << 20
MAX_LINE_BYTES: Final = 1 << 16
METHOD_BYTES: Final = 4
METHODS: Final = (b"GET ", b"POST")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request; `query` has the last value of each name."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A response."""

    status: int = HTTPStatus.OK
    body: bytes = b""
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = Callable[[Request], Response]


def page(content: object, status: int = HTTPStatus.OK) -> Response:
    """JSON."""
    return Response(status=status, body=json.dumps(content).encode())


def plain(text: str, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None) -> Response:
    """Text."""
    return Response(status=status, body=text.encode(), kind="text/plain;charset=utf-8", headers=headers or {})


def failure(status: int, exception: str, message: str) -> Response:
    """An error as Hadoop's REST servers write it."""
    said = {"exception": exception, "message": message, "javaClassName": f"org.apache.hadoop.yarn.webapp.{exception}"}
    return page({"RemoteException": said}, status)


def settings_page(values: Mapping[str, object], request: Request) -> Response:
    """The page /conf: all settings of a daemon, or with `name` one of them."""
    entries = [
        {"key": key, "value": str(value), "isFinal": False, "resource": "yarn-site.xml"}
        for key, value in values.items()
    ]
    name = request.query.get("name")
    if name is None:
        return page({"properties": entries})
    found = [entry for entry in entries if entry["key"] == name]
    return page({"property": found[0]}) if found else Response(status=HTTPStatus.NOT_FOUND)


def serve_http(answer: Answer) -> Serve:
    """Serve a connection: one request after the other."""

    def serve(connection: socket.socket) -> None:
        with connection.makefile("rb") as incoming:
            while start := incoming.read(METHOD_BYTES):
                try:
                    # What is no HTTP is answered at once: who sends it does not end a line.
                    request = _read(start, incoming)
                except ValueError as error:
                    connection.sendall(_written(plain(f"Bad Message: {error}", HTTPStatus.BAD_REQUEST)))
                    return
                connection.sendall(_written(answer(request)))

    return serve


def _read(start: bytes, incoming: BinaryIO) -> Request:
    """The request that begins with these bytes; ValueError if it is invalid."""
    if start not in METHODS:
        raise ValueError("Illegal character")
    method, target, _ = (start + incoming.readline(MAX_LINE_BYTES)).decode("latin-1").split()
    length = 0
    while (line := incoming.readline(MAX_LINE_BYTES).strip()) != b"":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = min(int(value), MAX_BODY_BYTES)
    parts = urlsplit(target)
    body = incoming.read(length)
    return Request(method=method, path=unquote(parts.path), query=dict(parse_qsl(parts.query)), body=body)


def _written(response: Response) -> bytes:
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
    headers = {
        "Date": date,
        "Content-Type": response.kind,
        "Content-Length": f"{len(response.body)}",
        **response.headers,
    }
    lines = [f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode() + response.body
