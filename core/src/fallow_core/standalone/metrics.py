"""`/metrics` for Prometheus: computed at each scrape from the state, so nothing stays of what is gone.

Names are `fallow_<what>_<unit>`. CPU is in cores, the one exception to base units; memory in bytes, ages in seconds.
"""

from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fallow_core.controller.controller import Controller
from fallow_core.errors import FallowError
from fallow_core.plugins.lanes import LaneState
from fallow_hookspecs import RESOURCE_NAMES, ResourceName

UNITS: dict[ResourceName, tuple[str, float]] = {"cpu": ("cores", 1000.0), "memory": ("bytes", 1.0)}

NODE_METRICS = {
    "capacity": "What the node has.",
    "used": "What is in use on the node, batch included.",
    "batch_used": "What processes below a framework's daemons use.",
    "batch": "What the node can lend now.",
}
SUM_METRICS = {
    "allocated": "What all accounts have promised to tasks.",
    "believed": "The most that all schedulers together may still promise.",
    "exposure": "Beliefs above batch capacity.",
    "overdraft": "Allocations above batch capacity.",
}
ROW_METRICS = {
    "allocated": "What the framework has promised to tasks on this node of its.",
    "in_force": "The size that the framework's scheduler works with.",
    "belief": "The most that the framework's scheduler may still promise.",
    "offer": "The size that the ledger wants for the row.",
}


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
        return self._collect()


def families(controller: Controller, now: float) -> list[Metric]:
    """All metrics of the present state."""
    build = GaugeMetricFamily("fallow_build_info", "The version that runs.", labels=["version", "mode"])
    build.add_metric([version("fallow-core"), controller.publishing.mode], 1)
    return [build, *_nodes(controller), *_rows(controller), *_clusters(controller, now)]


def _nodes(controller: Controller) -> Iterator[Metric]:
    for resource in RESOURCE_NAMES:
        unit, divisor = UNITS[resource]
        ledgers = [ledger.of(resource) for ledger in controller.ledgers.values()]
        named = list(zip(controller.ledgers, ledgers, strict=True))
        for what, text in (NODE_METRICS | SUM_METRICS).items():
            family = GaugeMetricFamily(f"fallow_node_{what}_{resource}_{unit}", text, labels=["node"])
            for node, ledger in named:
                source = ledger.capacity if what in NODE_METRICS else ledger
                if source is not None:
                    family.add_metric([node], getattr(source, what) / divisor)
            yield family
        age = GaugeMetricFamily(
            f"fallow_node_{resource}_sample_age_seconds", "Age of the newest good reading.", labels=["node"]
        )
        for node, ledger in named:
            if ledger.sample_age_seconds is not None:
                age.add_metric([node], ledger.sample_age_seconds)
        yield age


def _rows(controller: Controller) -> Iterator[Metric]:
    wanted = {
        resource: {
            entry.key: entry.size for ledger in controller.ledgers.values() for entry in ledger.of(resource).rows
        }
        for resource in RESOURCE_NAMES
    }
    for resource in RESOURCE_NAMES:
        unit, divisor = UNITS[resource]
        for what, text in ROW_METRICS.items():
            family = GaugeMetricFamily(
                f"fallow_row_{what}_{resource}_{unit}", text, labels=["node", "cluster", "framework_node"]
            )
            for row in controller.rows:
                values: dict[str, int | None] = {
                    "allocated": row.allocated.amount(resource),
                    "in_force": row.in_force.amount(resource) if row.in_force is not None else None,
                    "belief": row.belief(resource),
                    "offer": wanted[resource].get(row.key),
                }
                value = values[what]
                if value is not None:
                    family.add_metric(list(row.key), value / divisor)
            yield family


def _clusters(controller: Controller, now: float) -> Iterator[Metric]:
    age = GaugeMetricFamily("fallow_cluster_report_age_seconds", "Age of the newest report.", labels=["cluster"])
    switch = GaugeMetricFamily("fallow_cluster_switch", "1 for the switch's state.", labels=["cluster", "state"])
    lanes = GaugeMetricFamily(
        "fallow_plugin_lane_state", "1 for the state of the lane.", labels=["cluster", "lane", "state"]
    )
    sent = CounterMetricFamily("fallow_offers_sent", "Sizes handed to the framework.", labels=["cluster"])
    failed = CounterMetricFamily("fallow_plugin_call_failures", "Calls without an answer.", labels=["cluster"])
    refused = CounterMetricFamily("fallow_offers_refused", "Sizes that the framework refused.", labels=["cluster"])
    for name, cluster in sorted(controller.clusters.items()):
        if cluster.reported_at is not None:
            age.add_metric([name], now - cluster.reported_at)
        switch.add_metric([name, controller.switch(name).state], 1)
        health = cluster.instance.health()
        for lane, found in (("reads", health.reads.state), ("acts", health.acts.state)):
            for state in LaneState:
                lanes.add_metric([name, lane, state], int(state is found))
        sent.add_metric([name], cluster.counts.offers_sent)
        failed.add_metric([name], cluster.counts.calls_failed)
        refused.add_metric([name], cluster.counts.offers_refused)
    return iter([age, switch, lanes, sent, failed, refused])
