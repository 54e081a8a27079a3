"""How batch is squeezed, for Prometheus: the limits decided and in force, and what became of the changes."""

from collections.abc import Iterator

from fallow_core.node.cgroups import cpu
from fallow_core.standalone.exposition import Family
from fallow_core.standalone.squeeze_view import in_force_milli
from fallow_core.standalone.squeezing import Squeezing


def families(node: str, squeezing: Squeezing) -> Iterator[Family]:
    """All metrics of the present state; only the first one has a sample where this host has no control groups."""
    squeeze = squeezing.squeeze
    text = "1 if this host's CPU control groups can be used."
    up = Family("fallow_squeeze_available", "gauge", text, ("node",))
    up.add([node], squeeze is not None)
    labels = ("node", "group")
    decided = Family("fallow_group_cpu_limit_cores", "gauge", "The limit that was decided.", labels)
    in_force = Family("fallow_group_cpu_in_force_cores", "gauge", "The limit that the kernel has.", labels)
    throttled = Family("fallow_group_cpu_throttled_seconds", "counter", "Time kept waiting by it.", labels)
    changes = Family("fallow_group_changes", "counter", "Values written to control groups.", ("node",))
    resets = Family("fallow_group_resets", "counter", "Values that others had changed since.", ("node",))
    problems = Family("fallow_group_problems", "gauge", "Groups that cannot be changed.", ("node",))
    text = "0 if this host lacks what a strategy needs."
    available = Family("fallow_strategy_available", "gauge", text, ("node", "strategy"))
    pushed_out = Family("fallow_reclaimed_bytes", "counter", "Memory of batch that was pushed out.", ("node",))
    if squeeze is not None:
        for path in sorted(squeeze.groups):
            values = [node, f"/{path}"]
            if squeeze.limits is not None and path in squeeze.limits.groups:
                decided.add(values, squeeze.limits.groups[path] / 1000)
            if (limit := in_force_milli(squeeze.cpu.hierarchy, path)) is not None:
                in_force.add(values, limit / 1000)
            if (seconds := cpu.throttled_seconds(squeeze.cpu.hierarchy, path)) is not None:
                throttled.add(values, seconds)
        lacking = squeezing.unavailable(squeezing.config)
        for strategy in ("cpuset", "identity", "memory_reclaim"):
            available.add([node, strategy], strategy not in lacking)
        trees = [tree.knobs for tree in squeeze.trees]
        changes.add([node], sum(knobs.writes for knobs in trees))
        resets.add([node], sum(knobs.resets for knobs in trees))
        problems.add([node], sum(len(knobs.problems) for knobs in trees))
        pushed_out.add([node], 0 if squeeze.reclaiming is None else squeeze.reclaiming.pushed_out_bytes)
    yield from (up, decided, in_force, throttled, changes, resets, problems, available, pushed_out)
