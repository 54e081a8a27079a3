"""What the ResourceManager says, as the contract's report. Pure.

A vcore stands for `vcore_milli` milli-cores.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from fallow_hookspecs import (
    Application,
    Capabilities,
    NodeState,
    OfferAnswer,
    Pending,
    Refusal,
    ReportRow,
    ResourceCapability,
    Resources,
)
from fallow_yarn.errors import AccessDeniedError, StandbyError, UnknownNodeError, YarnError
from fallow_yarn.rm.admin import FAR_TIMEOUT_MS, UpdateAnswer
from fallow_yarn.rm.applications import Request, RunningApplication
from fallow_yarn.rm.client import Facts, NodeReading
from fallow_yarn.rm.facts import Calculator
from fallow_yarn.rm.nodes import State
from fallow_yarn.rm.scheduler import Metrics
from fallow_yarn.rm.size import MIB_BYTES, Size, cpu_milli, memory_bytes, resources

DEFAULT_MINIMUM = Size(memory_mb=1024, vcores=1)
"""Hadoop's own default of the smallest allocation, taken where the ResourceManager does not show its setting."""

NOTHING = Resources(0, 0)
MOST_SHOWN = 3
"""Of so many users and queues it is said how much they wait for."""

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

REFUSALS: Mapping[type[YarnError], Refusal] = {
    UnknownNodeError: Refusal.UNKNOWN_NODE,
    AccessDeniedError: Refusal.ACCESS_DENIED,
    StandbyError: Refusal.NOT_LEADER,
}


def floor_of(facts: Facts) -> Size:
    """The smallest size at which a NodeManager can be kept.

    From 3.3 on a NodeManager registers with the size it was last told; with less than the scheduler's minimum
    allocation it is refused when the ResourceManager restarts, and exits. Before 3.3 it is never told.
    """
    if not facts.identity.takes_back:
        return Size(0, 0)
    return (facts.setup.minimum if facts.setup is not None else None) or DEFAULT_MINIMUM


def live(node_ids: Iterable[str], readings: Mapping[str, NodeReading]) -> list[str]:
    """The ids without those of NodeManagers that are gone: lost, shut down, decommissioned."""
    return [node_id for node_id in node_ids if STATES.get(readings[node_id].node.state) is not NodeState.GONE]


def row(
    node: str,
    reading: NodeReading,
    before: Resources | None,
    floor: Size,
    vcore_milli: int,
    age_seconds: float,
    *,
    is_superseded: bool = False,
) -> ReportRow | None:
    """The row of one NodeManager; `None` where nothing can be said of it now, so that what is known grows older.

    The scheduler does not know what runs on a node that it has taken out (unhealthy): what it had allocated there
    `before` stays, since its containers run on and none is added. Such a node, and one that is being decommissioned,
    can use no more than it has; the latter follows what is allocated by itself, down to nothing. `is_superseded`: its
    NodeManager has ended and registered anew at another port, so that the scheduler places nothing there that starts.
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
    )


def parked_row(
    node: str, node_id: str, offered: Resources | None, floor: Size, vcore_milli: int, age_seconds: float
) -> ReportRow:
    """The row of a NodeManager that is out for being empty: at what it was offered since, or else at its floor, with
    nothing on it, open for an offer.
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


def capabilities(facts: Facts) -> Capabilities:
    """What this ResourceManager does about sizes.

    With the CapacityScheduler's default calculator vcores are counted and never heeded. From 3.3 on a scheduler ends
    what is above a node's size when the over-commit timeout runs out, and no application is charged for that; so an
    offer has to be renewed before its far timeout does.
    """
    cpu_honoured = facts.setup is None or facts.setup.calculator is not Calculator.DEFAULT
    takes_back = facts.identity.takes_back
    return Capabilities(
        cpu=ResourceCapability(honoured=cpu_honoured, takes_back=takes_back and cpu_honoured, take_back_charged=False),
        memory=ResourceCapability(honoured=True, takes_back=takes_back, take_back_charged=False),
        ends_single_tasks=True,
        ends_gracefully=True,
        reports_progress=True,
        offer_lasts_seconds=FAR_TIMEOUT_MS // 1000 if takes_back else None,
    )


def applications(running: Iterable[RunningApplication]) -> tuple[Application, ...]:
    """The applications that have containers."""
    return tuple(
        Application(
            id=application.id,
            name=application.name,
            user=application.user,
            queue=application.queue,
            kind=application.kind,
            priority=application.priority,
            progress=application.progress,
            master_task_ids=() if application.master is None else (application.master,),
        )
        for application in running
        if application.has_containers
    )


def pending(metrics: Metrics, waiting: Sequence[RunningApplication], vcore_milli: int) -> Pending | None:
    """What waits in the queues of the whole cluster. `waiting`: the applications, read with their requests.

    The requests are all of them only if they are as many containers as the scheduler counts; else one that the user
    may not see, or that is newer, may be smaller than all that are known. A release that does not tell the sum (3.2)
    is believed the sum of the requests.
    """
    requests = [(application, request) for application in waiting for request in application.requests]
    count = sum(request.containers for _, request in requests)
    is_all = metrics.pending_containers is not None and count >= metrics.pending_containers
    sizes = [request.size for _, request in requests] if is_all and metrics.pending_containers else []
    total = metrics.pending
    if total is None and is_all:
        total = Size(
            sum(request.size.memory_mb * request.containers for _, request in requests),
            sum(request.size.vcores * request.containers for _, request in requests),
        )
    if total is None:
        return None
    return Pending(
        total=resources(total, vcore_milli),
        smallest=resources(_each(min, sizes), vcore_milli) if sizes else None,
        largest=resources(_each(max, sizes), vcore_milli) if sizes else None,
        detail=_by_whom(requests) if total != Size(0, 0) else "",
    )


def _each(choose: Callable[[Iterable[int]], int], sizes: Sequence[Size]) -> Size:
    return Size(choose(size.memory_mb for size in sizes), choose(size.vcores for size in sizes))


def _by_whom(requests: Iterable[tuple[RunningApplication, Request]]) -> str:
    """Whose the most containers are, by queue and user."""
    counts: Counter[tuple[str, str]] = Counter()
    for application, request in requests:
        counts[application.queue, application.user] += request.containers
    shown = [
        f"{count} container{'' if count == 1 else 's'} of {user} in {queue}"
        for (queue, user), count in counts.most_common(MOST_SHOWN)
    ]
    more = [f"and of {len(counts) - MOST_SHOWN} others"] if len(counts) > MOST_SHOWN else []
    return ", ".join([*shown, *more])


def largest(readings: Iterable[NodeReading], facts: Facts) -> Size | None:
    """The largest container that can be asked for: no larger than the largest node in either, nor than is configured.

    `None` without a node; then the scheduler takes the configured one.
    """
    sizes = [r.in_force for r in readings if r.in_force is not None]
    if not sizes:
        return None
    found = _each(max, sizes)
    configured = facts.setup.maximum if facts.setup is not None else None
    return found if configured is None else _each(min, [found, configured])


def largest_elsewhere(readings: Mapping[str, NodeReading], own: Collection[str], vcore_milli: int) -> Resources | None:
    """The largest node, by memory, that is in the scheduler and is not one of `own`."""
    sizes = [reading.in_force for node_id, reading in readings.items() if node_id not in own]
    found = max((size for size in sizes if size is not None), default=None)
    return None if found is None else resources(found, vcore_milli)


def answer(node: str, update: UpdateAnswer, size: Size, offered: Resources, vcore_milli: int) -> OfferAnswer:
    """What became of one offer. A call that may yet be carried out is `FAILED`, not refused."""
    error = update.error
    if error is None:
        if (offered.cpu_milli, offered.memory_bytes) == (cpu_milli(size, vcore_milli), memory_bytes(size)):
            return OfferAnswer(node=node, framework_node=update.node_id, accepted=offered)
        reason = f"rounded down to whole vcores of {vcore_milli} milli-cores and to MiB"
        taken = resources(size, vcore_milli)
        return OfferAnswer(node=node, framework_node=update.node_id, accepted=taken, reason=reason)
    known = (refusal for kind, refusal in REFUSALS.items() if isinstance(error, kind) and not error.maybe_sent)
    refusal = next(known, Refusal.FAILED)
    return OfferAnswer(node=node, framework_node=update.node_id, accepted=None, refusal=refusal, reason=str(error))
