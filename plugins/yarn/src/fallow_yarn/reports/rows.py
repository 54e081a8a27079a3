"""The report's rows: one for each NodeManager. Pure.

A vcore stands for `vcore_milli` milli-cores.
"""

from fallow_hookspecs import NodeState, ReportRow, Resources
from fallow_yarn.model.size import MIB_BYTES, Size, resources
from fallow_yarn.rm.nodes import State
from fallow_yarn.rm.readings import NodeReading

NOTHING = Resources(0, 0)
STATES = {
    State.NEW: NodeState.NEW,
    State.RUNNING: NodeState.RUNNING,
    State.UNHEALTHY: NodeState.UNHEALTHY,
    State.DECOMMISSIONING: NodeState.DRAINING,
    State.DECOMMISSIONED: NodeState.GONE,
    State.LOST: NodeState.GONE,
    State.REBOOTED: NodeState.GONE,
    State.SHUTDOWN: NodeState.GONE,
}


def row(
    node: str,
    reading: NodeReading,
    before: Resources | None,
    floor: Size,
    vcore_milli: int,
    age_seconds: float,
    *,
    is_superseded: bool = False,
    partitions: tuple[str, ...] = (),
) -> ReportRow | None:
    """The row of one NodeManager; `None` if its values are unknown now, so that the earlier ones age.

    The scheduler removes an unhealthy node from its table: the allocation of `before` counts, since its containers run
    on and none is added. Such a node, and one that is being decommissioned, can use no more than it has; the size of
    the latter follows its allocation, down to zero. `is_superseded`: its NodeManager has ended and registered at
    another port, so that containers placed there would not start.
    """
    state = NodeState.GONE if is_superseded else STATES.get(reading.node.state)
    allocated = None
    if state is NodeState.GONE:
        allocated = NOTHING
    elif reading.used is not None:
        allocated = resources(reading.used, vcore_milli)
    elif state is NodeState.UNHEALTHY:
        allocated = before
    if state is None or allocated is None:
        return None
    return ReportRow(
        node=node,
        framework_node=reading.node.node_id,
        age_seconds=age_seconds,
        state=state,
        allocated=allocated,
        in_force=None if reading.in_force is None else resources(reading.in_force, vcore_milli),
        unit=Resources(cpu_milli=vcore_milli, memory_bytes=MIB_BYTES),
        floor=NOTHING if state is NodeState.DRAINING else resources(floor, vcore_milli),
        maximum=allocated if state in (NodeState.UNHEALTHY, NodeState.DRAINING) else None,
        partitions=partitions,
    )


def removed_row(
    node: str, node_id: str, offered: Resources | None, floor: Size, vcore_milli: int, age_seconds: float
) -> ReportRow:
    """The row of a node that was removed because it was empty: open for offers, without an allocation, and with the
    size that it was offered since, or else its floor.
    """
    return ReportRow(
        node=node,
        framework_node=node_id,
        age_seconds=age_seconds,
        state=NodeState.RUNNING,
        allocated=NOTHING,
        in_force=resources(floor, vcore_milli) if offered is None else offered,
        unit=Resources(cpu_milli=vcore_milli, memory_bytes=MIB_BYTES),
        floor=resources(floor, vcore_milli),
    )
