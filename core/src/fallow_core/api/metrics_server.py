"""Serves `/metrics` for Prometheus, to a few clients at a time: a flood of connections takes little memory."""

import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import Metric
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.registry import Collector

from fallow_core.errors import FallowError
from fallow_core.log import event

log = logging.getLogger("fallow.metrics")

MOST_CONNECTIONS = 32
"""Each has a thread; a further connection is closed at once."""
CLIENT_SECONDS = 10.0
"""The time that a client has for each part of its request."""


def serve(address: str, port: int, collect: Callable[[], list[Metric]]) -> Callable[[], None]:
    """Serve `/metrics`; the result stops it.

    :raises FallowError: the address cannot be used.
    """
    registry = CollectorRegistry()
    registry.register(_Scrape(collect))
    try:
        server = _Server(address, port)
    except OSError as error:
        raise FallowError(
            f"cannot serve metrics on {address}:{port}: {error.strerror}; set metrics, or metrics: off"
        ) from error
    server.set_app(make_wsgi_app(registry))
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join(timeout=1)

    return stop


class _Server(ThreadingWSGIServer):
    def __init__(self, address: str, port: int) -> None:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        self.address_family = found[0]
        self._slots = threading.Semaphore(MOST_CONNECTIONS)
        super().__init__((str(found[4][0]), port), _Connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started
            self._slots.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):  # else the client went away, or was too slow
            event(log, logging.ERROR, "connection_failed", reason=repr(error))


class _Connection(WSGIRequestHandler):
    timeout = CLIENT_SECONDS

    def log_message(self, *_: Any) -> None:
        """Requests are not logged."""


class _Scrape(Collector):
    def __init__(self, collect: Callable[[], list[Metric]]) -> None:
        self._collect = collect

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        try:
            return self._collect()
        except FallowError as error:
            event(log, logging.WARNING, "scrape_failed", reason=error)
            raise ConnectionAbortedError from error  # ends the connection; any other error prints a traceback
        except Exception as error:
            event(log, logging.ERROR, "scrape_failed", reason=repr(error))
            raise
