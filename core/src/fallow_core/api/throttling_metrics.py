"""How batch is throttled, for Prometheus: the limits decided and in force, and what became of the changes."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from fallow_core.agent.throttling.host_throttling import HostThrottling
from fallow_core.api.throttling_view import in_force_milli
from fallow_core.node.cgroups import cpu


def families(node: str, throttling: HostThrottling) -> Iterator[Metric]:
    """All metrics of the present state; only the first one has a sample where this host has no control groups."""
    throttle = throttling.limiter
    up = GaugeMetricFamily(
        "fallow_throttle_available", "1 if this host's CPU control groups can be used.", labels=["node"]
    )
    up.add_metric([node], throttle is not None)
    labels = ["node", "group"]
    decided = GaugeMetricFamily("fallow_group_cpu_limit_cores", "The limit that was decided.", labels=labels)
    in_force = GaugeMetricFamily("fallow_group_cpu_in_force_cores", "The limit that the kernel has.", labels=labels)
    throttled = CounterMetricFamily("fallow_group_cpu_throttled_seconds", "Time kept waiting by it.", labels=labels)
    changes = CounterMetricFamily("fallow_group_changes", "Values written to control groups.", labels=["node"])
    resets = CounterMetricFamily("fallow_group_resets", "Values that others had changed since.", labels=["node"])
    problems = GaugeMetricFamily("fallow_group_problems", "Groups that cannot be changed.", labels=["node"])
    available = GaugeMetricFamily(
        "fallow_strategy_available", "0 if this host lacks what a strategy needs.", labels=["node", "strategy"]
    )
    pushed_out = CounterMetricFamily("fallow_reclaimed_bytes", "Memory of batch that was pushed out.", labels=["node"])
    if throttle is not None:
        for path in sorted(throttle.groups):
            values = [node, f"/{path}"]
            if throttle.limits is not None and path in throttle.limits.groups:
                decided.add_metric(values, throttle.limits.groups[path] / 1000)
            if (limit := in_force_milli(throttle.cpu.hierarchy, path)) is not None:
                in_force.add_metric(values, limit / 1000)
            if (seconds := cpu.throttled_seconds(throttle.cpu.hierarchy, path)) is not None:
                throttled.add_metric(values, seconds)
        lacking = throttling.unavailable()
        for strategy in ("cpuset", "identity", "memory_reclaim"):
            available.add_metric([node, strategy], strategy not in lacking)
        trees = [tree.writer for tree in throttle.trees]
        changes.add_metric([node], sum(knobs.writes for knobs in trees))
        resets.add_metric([node], sum(knobs.resets for knobs in trees))
        problems.add_metric([node], sum(len(knobs.problems) for knobs in trees))
        pushed_out.add_metric([node], 0 if throttle.reclaimer is None else throttle.reclaimer.reclaimed_bytes)
    yield from (up, decided, in_force, throttled, changes, resets, problems, available, pushed_out)
