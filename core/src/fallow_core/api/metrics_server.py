"""Serves `/metrics` for Prometheus from one thread, whatever the number of connections.

A connection has some seconds for its request. When there are too many, the oldest one is closed, so that a flood of
silent clients keeps nobody else from a page.
"""

import logging
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from fallow_core.errors import FallowError
from fallow_core.log import event

log = logging.getLogger("fallow.metrics")

MOST_CONNECTIONS: Final = 64
CLIENT_SECONDS: Final = 10.0
"""The time that a client has for its request, and to take the page."""
MOST_REQUEST_BYTES: Final = 16 << 10
END: Final = b"\r\n\r\n"


def serve(address: str, port: int, collect: Callable[[], list[Metric]]) -> Callable[[], None]:
    """Serve `/metrics`; the result stops it.

    :raises FallowError: the address cannot be used.
    """
    try:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server((str(found[4][0]), port), family=found[0], backlog=MOST_CONNECTIONS)
    except OSError as error:
        why = str(error.strerror).partition(" (while ")[0]  # the rest repeats the address
        raise FallowError(f"cannot serve metrics on {address}:{port}: {why}; set metrics, or metrics: off") from error
    server = _Server(listener, collect)
    thread = threading.Thread(target=server.run, name="metrics", daemon=True)
    thread.start()

    def stop() -> None:
        server.stop()
        thread.join(timeout=1)

    return stop


@dataclass(slots=True, eq=False)
class _Client:
    """A connection: what it has sent, then what is left of the answer. It is closed at `due`, in monotonic seconds."""

    connection: socket.socket
    due: float
    request: bytearray = field(default_factory=bytearray)
    answer: memoryview | None = None


class _Server:
    """All methods but `stop` belong to its thread."""

    def __init__(self, listener: socket.socket, collect: Callable[[], list[Metric]]) -> None:
        self._listener = listener
        self._registry = CollectorRegistry()
        self._registry.register(_Scrape(collect))
        self._clients: dict[_Client, None] = {}
        self._stop_read, self._stop_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(self._stop_read, selectors.EVENT_READ)

    def stop(self) -> None:
        """Let `run` end."""
        os.write(self._stop_write, b"x")

    def run(self) -> None:
        """Serve until `stop`."""
        while True:
            due = min((client.due for client in self._clients), default=None)
            ready = self._selector.select(None if due is None else max(due - time.monotonic(), 0.0))
            for key, _ in ready:
                if key.fileobj is self._listener:
                    self._accept()
                elif key.data is None:
                    self._end()
                    return
                elif key.data in self._clients:
                    self._serve(key.data)
            now = time.monotonic()
            for client in [client for client in self._clients if client.due <= now]:
                self._close(client)

    def _accept(self) -> None:
        if len(self._clients) >= MOST_CONNECTIONS:
            self._close_oldest()
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it went away, or this process has no descriptor left
            self._close_oldest()
            return
        connection.setblocking(False)
        client = _Client(connection, time.monotonic() + CLIENT_SECONDS)
        self._clients[client] = None
        self._selector.register(connection, selectors.EVENT_READ, client)

    def _serve(self, client: _Client) -> None:
        """Read what is there of the request, or write what can be written of the answer."""
        try:
            if client.answer is None:
                self._read(client)
            else:
                client.answer = client.answer[client.connection.send(client.answer) :]
                if not client.answer:
                    self._close(client)
        except BlockingIOError:
            pass
        except OSError:
            self._close(client)

    def _read(self, client: _Client) -> None:
        part = client.connection.recv(MOST_REQUEST_BYTES)
        client.request += part
        if END in client.request:
            answer = self._answer(bytes(client.request))
            if answer:
                client.answer = memoryview(answer)
                client.due = time.monotonic() + CLIENT_SECONDS
                self._selector.modify(client.connection, selectors.EVENT_WRITE, client)
                return
        elif part and len(client.request) < MOST_REQUEST_BYTES:
            return
        self._close(client)

    def _answer(self, request: bytes) -> bytes:
        """The page, or an HTTP error; empty if this process is too busy to make the page."""
        first, *lines = request.partition(END)[0].decode("latin-1").split("\r\n")
        method, _, path = first.partition(" ")
        if method != "GET":
            return _head("405 Method Not Allowed", "text/plain", 0)
        if path.split(" ")[0].partition("?")[0] not in ("/", "/metrics"):
            return _head("404 Not Found", "text/plain", 0)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        encode, content_type = choose_encoder(headers.get("accept", ""))
        try:
            page = encode(self._registry)
        except FallowError as error:
            event(log, logging.WARNING, "scrape_failed", reason=error)
        except Exception as error:
            event(log, logging.ERROR, "scrape_failed", reason=repr(error))
            return _head("500 Internal Server Error", "text/plain", 0)
        else:
            return _head("200 OK", content_type, len(page)) + page
        return b""

    def _close_oldest(self) -> None:
        """Close the oldest connection, rather one without a request than one that takes its page."""
        waiting = (client for client in self._clients if client.answer is None)
        oldest = next(waiting, next(iter(self._clients), None))
        if oldest is not None:
            self._close(oldest)

    def _close(self, client: _Client) -> None:
        self._clients.pop(client, None)
        with suppress(KeyError):
            self._selector.unregister(client.connection)
        client.connection.close()

    def _end(self) -> None:
        for client in list(self._clients):
            self._close(client)
        self._selector.close()
        self._listener.close()
        os.close(self._stop_read)
        os.close(self._stop_write)


def _head(status: str, content_type: str, length: int) -> bytes:
    lines = (f"HTTP/1.1 {status}", f"Content-Type: {content_type}", f"Content-Length: {length}", "Connection: close")
    return "\r\n".join(lines).encode() + END


class _Scrape(Collector):
    def __init__(self, collect: Callable[[], list[Metric]]) -> None:
        self._collect = collect

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        return self._collect()
