"""How batch is throttled, for Prometheus: the limits decided and in force, and what became of the changes."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from fallow_core.api.throttling import ThrottlingStatus


def families(node: str, throttling: ThrottlingStatus) -> Iterator[Metric]:
    """All metrics of the present state; only the first one has a sample where this host has no control groups."""
    counts = throttling.counts
    up = GaugeMetricFamily(
        "fallow_throttle_available", "1 if this host's CPU control groups can be used.", labels=["node"]
    )
    up.add_metric([node], counts is not None)
    labels = ["node", "group"]
    decided = GaugeMetricFamily("fallow_group_cpu_limit_cores", "The limit that was decided.", labels=labels)
    in_force = GaugeMetricFamily("fallow_group_cpu_in_force_cores", "The limit that the kernel has.", labels=labels)
    throttled = CounterMetricFamily("fallow_group_cpu_throttled_seconds", "Time kept waiting by it.", labels=labels)
    for group in throttling.groups:
        values = [node, group.group]
        if group.limit_milli is not None:
            decided.add_metric(values, group.limit_milli / 1000)
        if group.in_force_milli is not None:
            in_force.add_metric(values, group.in_force_milli / 1000)
        if group.throttled_seconds is not None:
            throttled.add_metric(values, group.throttled_seconds)
    changes = CounterMetricFamily("fallow_group_changes", "Values written to control groups.", labels=["node"])
    resets = CounterMetricFamily("fallow_group_resets", "Values that others had changed since.", labels=["node"])
    problems = GaugeMetricFamily("fallow_group_problems", "Groups that cannot be changed.", labels=["node"])
    available = GaugeMetricFamily(
        "fallow_strategy_available", "0 if this host lacks what a strategy needs.", labels=["node", "strategy"]
    )
    pushed_out = CounterMetricFamily("fallow_reclaimed_bytes", "Memory of batch that was pushed out.", labels=["node"])
    if counts is not None:
        for strategy in ("cpuset", "identity", "memory_reclaim"):
            available.add_metric([node, strategy], strategy not in throttling.unavailable)
        changes.add_metric([node], counts.changes)
        resets.add_metric([node], counts.resets)
        problems.add_metric([node], counts.problems)
        pushed_out.add_metric([node], counts.pushed_out_bytes)
    yield from (up, decided, in_force, throttled, changes, resets, problems, available, pushed_out)
