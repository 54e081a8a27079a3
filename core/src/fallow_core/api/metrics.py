"""`/metrics` for Prometheus: computed at each scrape from the state, so nothing stays of what is gone.

Names are `fallow_<what>_<unit>`. CPU is in cores, the one exception to base units; memory in bytes, ages in seconds.
What is not known has no sample.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fallow_core.config.refused_files import Refusals
from fallow_core.errors import FallowError
from fallow_core.ledger.rows import Row
from fallow_core.log import event
from fallow_core.model.policy import PublishingMode, SwitchState
from fallow_core.plugins.lanes import LaneState
from fallow_core.plugins.session import CALLS, ClusterSession
from fallow_hookspecs import ResourceName, TaskState

if TYPE_CHECKING:
    from fallow_core.agent.eviction.evictor import Evictor
    from fallow_core.agent.remote_ledger import RemoteLedger
    from fallow_core.controller.controller import Controller
    from fallow_core.ledger.entries import ResourceLedger

log = logging.getLogger("fallow.metrics")

UNITS: Mapping[ResourceName, tuple[str, float]] = {"cpu": ("cores", 1000.0), "memory": ("bytes", 1.0)}

Labels = tuple[str, ...]
Samples = Iterable[tuple[Labels, float | None]]

NODE_METRICS: Mapping[str, tuple[str, Callable[[ResourceLedger], int | None]]] = {
    "capacity": ("What the node has.", lambda ledger: ledger.capacity.capacity if ledger.capacity else None),
    "used": (
        "What is in use on the node, batch included.",
        lambda ledger: ledger.capacity.used if ledger.capacity else None,
    ),
    "batch_used": (
        "What processes below a framework's daemons use.",
        lambda ledger: ledger.capacity.batch_used if ledger.capacity else None,
    ),
    "batch": ("What the node can lend now.", lambda ledger: ledger.capacity.batch if ledger.capacity else None),
    "allocated": ("What all accounts have promised to tasks.", lambda ledger: ledger.allocated),
    "believed": ("The most that all schedulers together may still promise.", lambda ledger: ledger.believed),
    "exposure": ("Beliefs above batch capacity.", lambda ledger: ledger.exposure),
    "overdraft": ("Allocations above batch capacity.", lambda ledger: ledger.overdraft),
}
ROW_METRICS: Mapping[str, tuple[str, Callable[[Row, ResourceName], int | None]]] = {
    "allocated": (
        "What the framework has promised to tasks on this node of its.",
        lambda row, resource: row.allocated.amount(resource),
    ),
    "in_force": (
        "The size that the framework's scheduler works with.",
        lambda row, resource: row.in_force.amount(resource) if row.in_force is not None else None,
    ),
    "belief": ("The most that the framework's scheduler may still promise.", Row.belief),
}
CLUSTER_COUNTERS: Mapping[str, tuple[str, Callable[[ClusterSession], int]]] = {
    "fallow_offers_sent": ("Sizes handed to the framework.", lambda cluster: cluster.counts.offers_sent),
    "fallow_offers_refused": ("Sizes that the framework refused.", lambda cluster: cluster.counts.offers_refused),
    "fallow_plugin_call_failures": ("Calls without an answer.", lambda cluster: cluster.counts.calls_failed),
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
        try:
            return self._collect()
        except FallowError as error:
            event(log, logging.WARNING, "scrape_failed", reason=error)
            raise ConnectionAbortedError from error  # ends the connection; any other error prints a traceback


def families(
    controller: Controller, agent: Evictor, now: float, config_problems: int, refusals: Refusals | None = None
) -> list[Metric]:
    """All metrics of `fallow run` now. `config_problems`: mistakes in files, which are not in force."""
    text = "0 while the journal cannot be written: then sizes only shrink."
    return [
        *_build(controller.state.publishing.mode, config_problems),
        _gauge("fallow_journal_writable", text, (), [((), not controller.journal_error)]),
        *_nodes(controller),
        *_rows(controller),
        *_clusters(controller, now),
        *_tasks(controller, agent),
        _take_backs(controller),
        *_files(refusals or Refusals()),
    ]


def families_of_agent(
    followed: RemoteLedger, agent: Evictor, now: float, config_problems: int, refusals: Refusals
) -> list[Metric]:
    """All metrics of `fallow agent` now: those of `fallow run` that concern it, and whether it has a ledger's row."""
    text = "1 if a controller's row of the ledger counts: without one no task is terminated for overdraft."
    return [
        *_build(PublishingMode.OBSERVE, config_problems),
        _gauge("fallow_ledger_row_counts", text, ("node",), [((agent.node.name,), followed.row is not None)]),
        *_nodes(followed),
        *_clusters(followed, now),
        *_tasks(followed, agent),
        *_files(refusals),
    ]


def _build(mode: PublishingMode, config_problems: int) -> Iterator[Metric]:
    build = ((version("fallow-core"), str(mode)), 1)
    yield _gauge("fallow_build_info", "The version that runs.", ("version", "mode"), [build])
    text = "Mistakes in files, which are not in force."
    yield _gauge("fallow_config_problems", text, (), [((), config_problems)])


def _gauge(name: str, text: str, labels: Labels, samples: Samples) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in samples:
        if value is not None:
            family.add_metric(values, value)
    return family


def _nodes(controller: Controller | RemoteLedger) -> Iterator[Metric]:
    for resource, (unit, divisor) in UNITS.items():
        ledgers = {node: ledger.of(resource) for node, ledger in controller.ledgers.items()}
        for what, (text, value) in NODE_METRICS.items():
            amounts = {node: value(ledger) for node, ledger in ledgers.items()}
            samples = (((node,), None if it is None else it / divisor) for node, it in amounts.items())
            yield _gauge(f"fallow_node_{what}_{resource}_{unit}", text, ("node",), samples)
        ages = [((node,), ledger.sample_age_seconds) for node, ledger in ledgers.items()]
        name = f"fallow_node_{resource}_sample_age_seconds"
        yield _gauge(name, "Age of the newest good reading.", ("node",), ages)


def _rows(controller: Controller) -> Iterator[Metric]:
    labels = ("node", "cluster", "framework_node")
    for resource, (unit, divisor) in UNITS.items():
        for what, (text, value) in ROW_METRICS.items():
            amounts = {row.key: value(row, resource) for row in controller.rows}
            samples = ((key, None if it is None else it / divisor) for key, it in amounts.items())
            yield _gauge(f"fallow_row_{what}_{resource}_{unit}", text, labels, samples)
        entries = [entry for ledger in controller.ledgers.values() for entry in ledger.of(resource).rows]
        offers = [(entry.key, entry.size / divisor) for entry in entries]
        name = f"fallow_row_offer_{resource}_{unit}"
        yield _gauge(name, "The size that the ledger wants for the row.", labels, offers)


def _clusters(controller: Controller | RemoteLedger, now: float) -> Iterator[Metric]:
    clusters = dict(sorted(controller.clusters.items()))
    up = [((name,), name in clusters) for name in controller.names]
    yield _gauge("fallow_cluster_up", "1 if the cluster's plugin instance was built.", ("cluster",), up)
    switches = [((n, state), state is controller.switch(n).state) for n in controller.names for state in SwitchState]
    yield _gauge("fallow_cluster_switch", "1 for the state of the switch.", ("cluster", "state"), switches)
    stored = controller.journal.memory.switches.items()
    scopes = [((scope, state), state is switch.state) for scope, switch in stored for state in SwitchState]
    yield _gauge("fallow_switch", "1 for the state of each switch that was ever set.", ("scope", "state"), scopes)
    every = [controller.refused, *(it.refused for it in clusters.values())]
    refused = [((it.source, kind, name), 1) for it in every for kind, name in it.now]
    labels = ("source", "kind", "of")
    yield _gauge("fallow_input_refused", "1 for an input that cannot be true and is refused.", labels, refused)
    ages = [((name,), None if it.reported_at is None else now - it.reported_at) for name, it in clusters.items()]
    yield _gauge("fallow_cluster_report_age_seconds", "Age of the newest report.", ("cluster",), ages)
    failing = [((name, call), call in cluster.failing) for name, cluster in clusters.items() for call in CALLS]
    yield _gauge("fallow_plugin_call_failing", "1 if the last call of the kind failed.", ("cluster", "call"), failing)
    lanes = [
        ((name, lane, state), state is health.state)
        for name, found in ((name, cluster.instance.health()) for name, cluster in clusters.items())
        for lane, health in (("reads", found.reads), ("acts", found.acts))
        for state in LaneState
    ]
    yield _gauge("fallow_plugin_lane_state", "1 for the state of the lane.", ("cluster", "lane", "state"), lanes)
    for name, (text, value) in CLUSTER_COUNTERS.items():
        family = CounterMetricFamily(name, text, labels=["cluster"])
        for cluster in clusters.values():
            family.add_metric([cluster.name], value(cluster))
        yield family


def _files(refusals: Refusals) -> Iterator[Metric]:
    problems = [((str(file),), len(found)) for file, (_, found) in sorted(refusals.files.items())]
    yield _gauge("fallow_config_file_problems", "Mistakes of a file that is refused.", ("file",), problems)
    at = [((), refusals.taken_at or None)]
    name = "fallow_config_last_taken_timestamp_seconds"
    yield _gauge(name, "When the files were last read without a mistake, in seconds since 1970.", (), at)
    reads = CounterMetricFamily("fallow_config_reads", "Files read again while running.", labels=["outcome"])
    for outcome, count in (("taken", refusals.taken), ("refused", refusals.refused)):
        reads.add_metric([outcome], count)
    yield reads


def _tasks(controller: Controller | RemoteLedger, agent: Evictor) -> Iterator[Metric]:
    node = agent.node.name
    counts = Counter((task.cluster, task.task.state) for task in agent.tasks)
    listed = [name for name, cluster in sorted(controller.clusters.items()) if node in cluster.lists]
    states = [((node, name, state), counts[name, state]) for name in listed for state in TaskState]
    yield _gauge("fallow_node_tasks", "Tasks that hold resources on the node.", ("node", "cluster", "state"), states)
    text, labels = "Tasks that were terminated for the node and are seen gone.", ("node", "cluster", "strategy")
    ended = CounterMetricFamily("fallow_tasks_terminated", text, labels=labels)
    for (name, strategy), count in sorted(agent.terminated.items()):
        ended.add_metric([node, name, strategy], count)
    yield ended


def _take_backs(controller: Controller) -> Metric:
    started = CounterMetricFamily("fallow_take_backs_started", "Take-backs that were started.", labels=["cluster"])
    for name in controller.names:
        started.add_metric([name], controller.state.take_backs_started[name])
    return started
