"""Serves `/metrics` for Prometheus."""

import logging
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from fallow_core.errors import FallowError
from fallow_core.log import event

log = logging.getLogger("fallow.metrics")


def serve(address: str, port: int, collect: Callable[[], list[Metric]]) -> Callable[[], None]:
    """Serve `/metrics`; the result stops it.

    :raises FallowError: the address cannot be used.
    """
    registry = CollectorRegistry()
    registry.register(_Scrape(collect))
    try:
        server, thread = start_http_server(port, addr=address, registry=registry)
    except OSError as error:
        raise FallowError(
            f"cannot serve metrics on {address}:{port}: {error.strerror}; set metrics, or metrics: off"
        ) from error

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join(timeout=1)

    return stop


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
