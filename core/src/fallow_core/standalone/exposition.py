"""Prometheus' text format, version 0.0.4, and the page that serves it: what a process on every node can afford.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import logging
import socket
import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from fallow_core.errors import FallowError
from fallow_core.log import event

log = logging.getLogger("fallow.metrics")

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
REQUEST_SECONDS = 10.0
LONGEST_LINE_BYTES, MOST_LINES = 8192, 100
_ESCAPED = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPED = str.maketrans({"\\": r"\\", "\n": r"\n"})


@dataclass(frozen=True, slots=True)
class Sample:
    """One value; `name` is that of its family, of counters with `_total`."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Family:
    """All samples of one metric. `name` is without `_total`; `labels` are the names of the labels of each sample."""

    name: str
    type: Literal["gauge", "counter"]
    documentation: str
    labels: tuple[str, ...] = ()
    samples: list[Sample] = field(default_factory=list)

    @property
    def served_name(self) -> str:
        """As it is on the page."""
        return f"{self.name}_total" if self.type == "counter" else self.name

    def add(self, values: Sequence[str], value: float) -> None:
        """Add a sample, with the values of the labels in their order."""
        labels = dict(zip(self.labels, values, strict=True))
        self.samples.append(Sample(self.served_name, labels, float(value)))


def text(families: Iterable[Family]) -> str:
    """The page."""
    return "".join(f"{line}\n" for family in families for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.served_name} {family.documentation.translate(_HELP_ESCAPED)}"
    yield f"# TYPE {family.served_name} {family.type}"
    for sample in family.samples:
        labels = ",".join(f'{name}="{value.translate(_ESCAPED)}"' for name, value in sorted(sample.labels.items()))
        yield f"{sample.name}{f'{{{labels}}}' if labels else ''} {sample.value!r}"


def serve(address: str, port: int, collect: Callable[[], Iterable[Family]]) -> Callable[[], None]:
    """Serve `/metrics`; the result stops it. `collect` is called in a thread for each request.

    :raises FallowError: the address cannot be used.
    """
    kind = _Server6 if ":" in address else _Server
    try:
        server = kind((address, port), collect)
    except OSError as error:
        raise FallowError(
            f"cannot serve metrics on {address}:{port}: {error.strerror}; set metrics, or metrics: off"
        ) from error
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join(timeout=1)

    return stop


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, at: tuple[str, int], collect: Callable[[], Iterable[Family]]) -> None:
        self.collect = collect
        super().__init__(at, _Request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever asked went away, or the page could not be made: the connection ends."""
        log.debug("a request for metrics failed", exc_info=True)


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Request(socketserver.StreamRequestHandler):
    """One request a connection, as HTTP/1.0 has it."""

    timeout = REQUEST_SECONDS

    def handle(self) -> None:
        method, _, rest = self.rfile.readline(LONGEST_LINE_BYTES).decode("latin-1").partition(" ")
        for _ in range(MOST_LINES):
            if self.rfile.readline(LONGEST_LINE_BYTES) in (b"", b"\n", b"\r\n"):
                break
        path = rest.split(" ")[0].split("?")[0]
        if method not in ("GET", "HEAD"):
            self._answer("405 Method Not Allowed", "only GET is answered here\n", method)
        elif path != "/metrics":
            self._answer("404 Not Found", "it is at /metrics\n", method)
        else:
            try:
                families = cast("_Server", self.server).collect()
            except FallowError as error:  # without an answer the one who asks counts it as down
                event(log, logging.WARNING, "scrape_failed", reason=error)
                return
            self._answer("200 OK", text(families), method)

    def _answer(self, status: str, body: str, method: str) -> None:
        content = body.encode()
        head = f"HTTP/1.0 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(content)}\r\n\r\n"
        self.wfile.write(head.encode() + (b"" if method == "HEAD" else content))
