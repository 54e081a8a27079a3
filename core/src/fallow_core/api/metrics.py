"""`/metrics` for Prometheus: computed at each scrape from the state, so nothing stays of what is gone.

Names are `fallow_<what>_<unit>`. CPU is in cores, the one exception to base units; memory in bytes, ages in seconds.
A value that is not known has no sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from fallow_core.api.status import VALID, ConfigReads, RefusedFile, Status
from fallow_core.model.policy import SwitchState
from fallow_core.planner.switches import Switch
from fallow_core.plugins.lanes import LaneState
from fallow_core.plugins.session import CALLS
from fallow_hookspecs import ResourceName, TaskState

if TYPE_CHECKING:
    from fallow_core.agent.eviction.evictor import Evictor
    from fallow_core.api.throttling import ThrottlingStatus

UNITS: Mapping[ResourceName, tuple[str, float]] = {"cpu": ("cores", 1000.0), "memory": ("bytes", 1.0)}

Labels = tuple[str, ...]
Samples = Iterable[tuple[Labels, float | None]]

NODE_METRICS: Mapping[str, str] = {
    "capacity": "What the node has.",
    "used": "What is in use on the node, batch included.",
    "batch_used": "What processes below a framework's daemons use.",
    "batch": "What the node can lend now.",
    "allocated": "What all accounts have promised to tasks.",
    "believed": "The most that all schedulers together may still promise.",
    "exposure": "Beliefs above batch capacity.",
    "overdraft": "Allocations above batch capacity.",
}
"""Fields of a node's resource."""
ROW_METRICS: Mapping[str, str] = {
    "allocated": "What the framework has promised to tasks on this node of its.",
    "in_force": "The size that the framework's scheduler works with.",
    "belief": "The most that the framework's scheduler may still promise.",
    "offer": "The size that the ledger wants for the row.",
}
"""Fields of a row."""
CLUSTER_COUNTERS: Mapping[str, tuple[str, str]] = {
    "fallow_offers_sent": ("offers_sent", "Sizes handed to the framework."),
    "fallow_offers_refused": ("offers_refused", "Sizes that the framework refused."),
    "fallow_plugin_call_failures": ("calls_failed", "Calls without an answer."),
}
"""Fields of a cluster's counts."""
THROTTLING_COUNTERS: Mapping[str, tuple[str, str]] = {
    "fallow_group_changes": ("changes", "Values written to control groups."),
    "fallow_group_resets": ("resets", "Values that others had changed since."),
    "fallow_reclaimed_bytes": ("pushed_out_bytes", "Memory of batch that was pushed out."),
}
"""Fields of the counts of throttling."""


def families(
    status: Status, switches: Mapping[str, Switch], agent: Evictor, throttling: ThrottlingStatus
) -> list[Metric]:
    """All metrics of `fallow run` or `fallow agent` now. `switches`: all that were ever set, by scope."""
    return [
        *_process(status),
        *_nodes(status),
        *(_rows(status) if status.role == "run" else ()),
        *_clusters(status, switches),
        *_tasks(status, agent),
        *_files(status.refused_files, status.config_reads),
        *throttling_families(agent.node.name, throttling),
    ]


def _gauge(name: str, text: str, labels: Labels, samples: Samples) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in samples:
        if value is not None:
            family.add_metric(list(map(_label, values)), value)
    return family


def _counter(name: str, text: str, labels: Labels, samples: Iterable[tuple[Labels, float]]) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(list(map(_label, values)), value)
    return family


def _label(value: str) -> str:
    """A value that UTF-8 can write: the name of a file may be any bytes, and must not end the whole page."""
    return value if value.isascii() else value.encode(errors="backslashreplace").decode()


def _process(status: Status) -> Iterator[Metric]:
    build = ((version("fallow-core"), str(status.mode)), 1)
    yield _gauge("fallow_build_info", "The version that runs.", ("version", "mode"), [build])
    text = "Files of the state directory that cannot be read, and about which a person has to decide."
    yield _gauge("fallow_state_files_unreadable", text, (), [((), len(status.lost_state))])
    problems = sum(len(file.problems) for file in status.refused_files)
    yield _gauge("fallow_config_problems", "Mistakes in files, which are not in force.", (), [((), problems)])
    if status.role == "agent":
        text = "1 if a controller's grant is valid: without one no task is terminated for overdraft."
        grants = [((node.node,), status.node_grant == VALID) for node in status.nodes]
        yield _gauge("fallow_node_grant_valid", text, ("node",), grants)
    else:
        text = "0 while the journal cannot be written: then sizes only shrink."
        yield _gauge("fallow_journal_writable", text, (), [((), not status.journal_error)])
        started = [((name,), count) for name, count in status.take_backs_started.items()]
        yield _counter("fallow_take_backs_started", "Take-backs that were started.", ("cluster",), started)


def _nodes(status: Status) -> Iterator[Metric]:
    for resource, (unit, divisor) in UNITS.items():
        found = [((node.node,), node.of(resource)) for node in status.nodes]
        for what, text in NODE_METRICS.items():
            amounts = [(labels, getattr(it, what)) for labels, it in found]
            samples = [(labels, None if amount is None else amount / divisor) for labels, amount in amounts]
            yield _gauge(f"fallow_node_{what}_{resource}_{unit}", text, ("node",), samples)
        ages = [(labels, it.sample_age_seconds) for labels, it in found]
        name = f"fallow_node_{resource}_sample_age_seconds"
        yield _gauge(name, "Age of the newest good reading.", ("node",), ages)


def _rows(status: Status) -> Iterator[Metric]:
    labels = ("node", "cluster", "framework_node")
    rows = [((row.node, it.cluster, row.framework_node), row) for it in status.clusters for row in it.rows]
    for resource, (unit, divisor) in UNITS.items():
        for what, text in ROW_METRICS.items():
            sizes = [(key, getattr(row, what)) for key, row in rows]
            samples = [(key, None if size is None else size.amount(resource) / divisor) for key, size in sizes]
            yield _gauge(f"fallow_row_{what}_{resource}_{unit}", text, labels, samples)


def _clusters(status: Status, switches: Mapping[str, Switch]) -> Iterator[Metric]:
    clusters, names = status.clusters, status.configured
    built = {cluster.cluster for cluster in clusters}
    up = [((name,), name in built) for name in names]
    yield _gauge("fallow_cluster_up", "1 if the cluster's plugin instance was built.", ("cluster",), up)
    states = [((n, state), state is switches.get(n, Switch()).state) for n in names for state in SwitchState]
    yield _gauge("fallow_cluster_switch", "1 for the state of the switch.", ("cluster", "state"), states)
    scopes = [((scope, state), state is switch.state) for scope, switch in switches.items() for state in SwitchState]
    yield _gauge("fallow_switch", "1 for the state of each switch that was ever set.", ("scope", "state"), scopes)
    refused = [((it.source, it.kind, it.of), 1) for it in status.refused_inputs]
    labels = ("source", "kind", "of")
    yield _gauge("fallow_input_refused", "1 for an input that cannot be true and is refused.", labels, refused)
    ages = [((it.cluster,), it.report_age_seconds) for it in clusters]
    yield _gauge("fallow_cluster_report_age_seconds", "Age of the newest report.", ("cluster",), ages)
    failing = [((it.cluster, call), call in it.failing) for it in clusters for call in CALLS]
    yield _gauge("fallow_plugin_call_failing", "1 if the last call of the kind failed.", ("cluster", "call"), failing)
    lanes = [
        ((it.cluster, name, state), state is lane.state)
        for it in clusters
        for name, lane in (("reads", it.reads), ("acts", it.acts))
        for state in LaneState
    ]
    yield _gauge("fallow_plugin_lane_state", "1 for the state of the lane.", ("cluster", "lane", "state"), lanes)
    for name, (field, text) in CLUSTER_COUNTERS.items():
        yield _counter(name, text, ("cluster",), [((it.cluster,), getattr(it.counts, field)) for it in clusters])


def _files(refused: Iterable[RefusedFile], reads: ConfigReads) -> Iterator[Metric]:
    problems = [((it.file,), len(it.problems)) for it in refused]
    yield _gauge("fallow_config_file_problems", "Mistakes of a file that is refused.", ("file",), problems)
    name = "fallow_config_last_taken_timestamp_seconds"
    text = "When the files were last read without a mistake, in seconds since 1970."
    yield _gauge(name, text, (), [((), reads.last_taken_at)])
    counts = [(("taken",), reads.taken), (("refused",), reads.refused)]
    yield _counter("fallow_config_reads", "Files read again while running.", ("outcome",), counts)


def _tasks(status: Status, agent: Evictor) -> Iterator[Metric]:
    node = agent.node.name
    counts = Counter((task.cluster, task.task.state) for task in agent.tasks)
    listed = [cluster.cluster for cluster in status.clusters if node in cluster.listed_nodes]
    states = [((node, name, state), counts[name, state]) for name in listed for state in TaskState]
    yield _gauge("fallow_node_tasks", "Tasks that hold resources on the node.", ("node", "cluster", "state"), states)
    ended = [((node, name, strategy), count) for (name, strategy), count in sorted(agent.terminated.items())]
    text = "Tasks that Fallow terminated and that are gone."
    yield _counter("fallow_tasks_terminated", text, ("node", "cluster", "strategy"), ended)


def throttling_families(node: str, throttling: ThrottlingStatus) -> Iterator[Metric]:
    """How batch is throttled; only the first one has a sample where this host has no control groups."""
    here, labels, counts = (node,), ("node", "group"), throttling.counts
    text = "1 if this host's CPU control groups can be used."
    yield _gauge("fallow_throttle_available", text, ("node",), [(here, counts is not None)])
    groups = [((node, group.group), group) for group in throttling.groups]
    for what, text, field in (
        ("limit", "The limit that was decided.", "limit_milli"),
        ("in_force", "The limit that the kernel has.", "in_force_milli"),
    ):
        limits = [(key, getattr(group, field)) for key, group in groups]
        samples = [(key, None if limit is None else limit / 1000) for key, limit in limits]
        yield _gauge(f"fallow_group_cpu_{what}_cores", text, labels, samples)
    waited = [(key, group.throttled_seconds) for key, group in groups if group.throttled_seconds is not None]
    yield _counter("fallow_group_cpu_throttled_seconds", "Time kept waiting by it.", labels, waited)
    strategies = ("cpuset", "identity", "memory_reclaim") if counts is not None else ()
    available = [((node, name), name not in throttling.unavailable) for name in strategies]
    text = "0 if this host lacks what a strategy needs."
    yield _gauge("fallow_strategy_available", text, ("node", "strategy"), available)
    problems = [] if counts is None else [(here, counts.problems)]
    yield _gauge("fallow_group_problems", "Groups that cannot be changed.", ("node",), problems)
    for name, (field, text) in THROTTLING_COUNTERS.items():
        yield _counter(name, text, ("node",), [] if counts is None else [(here, getattr(counts, field))])
