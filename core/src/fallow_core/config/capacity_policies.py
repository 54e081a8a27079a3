"""What the files say of capacity, as the policies that the ledger works with."""

from fallow_core.config.capacity_models import (
    Capacity,
    CapacityChange,
    CpuCapacity,
    CpuChange,
    MemoryCapacity,
    MemoryChange,
    NodeSettings,
    PoolSettings,
    Scheduled,
    ScheduleSettings,
)
from fallow_core.model.node_policies import Layer, NodeChange, NodePolicies, Pool, ResourceChange, Schedule, Window
from fallow_core.model.policy import NodePolicy


def policies_of(capacity: Capacity, pools: list[PoolSettings], nodes: list[NodeSettings]) -> NodePolicies:
    """The policies of all nodes."""
    return NodePolicies(
        default=_change(capacity).applied(NodePolicy()),
        schedule=_schedule(capacity.schedule),
        pools=tuple(Pool(name=p.name, node_selector=p.node_selector, layer=_layer(p.capacity)) for p in pools),
        nodes={node.name: _layer(node.capacity) for node in nodes},
    )


def _layer(model: CapacityChange) -> Layer:
    return Layer(change=_change(model), schedule=_schedule(model.schedule))


def _change(model: Capacity | CapacityChange) -> NodeChange:
    return NodeChange(cpu=_resource(model.cpu), memory=_resource(model.memory))


def _resource(model: CpuCapacity | MemoryCapacity | CpuChange | MemoryChange) -> ResourceChange:
    """What is reserved is an amount or a share: naming one takes the other away."""
    reserved = model.reserved
    return ResourceChange(
        watermark_percent=model.watermark,
        rule=model.policy,
        reserved=None if reserved is None else reserved.amount or 0,
        reserved_percent=None if reserved is None else reserved.percent or 0,
        reserved_per_daemon=model.reserved_per_daemon,
        cap_percent=model.cap,
        overcommit_percent=model.overcommit,
    )


def _schedule(model: ScheduleSettings | None) -> Schedule | None:
    if model is None:
        return None
    windows = (
        Window(
            days=frozenset(each.days),
            from_minute=each.from_,
            to_minute=each.to,
            change=NodeChange(cpu=_scheduled(each.cpu), memory=_scheduled(each.memory)),
        )
        for each in model.windows
    )
    return Schedule(time_zone=model.time_zone, windows=tuple(windows), ramp_seconds=round(model.ramp))


def _scheduled(model: Scheduled) -> ResourceChange:
    return ResourceChange(watermark_percent=model.watermark, overcommit_percent=model.overcommit)
