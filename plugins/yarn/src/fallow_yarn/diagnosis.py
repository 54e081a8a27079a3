"""What `fallow doctor` says of a YARN cluster: each finding with what it means and what to change."""

from collections.abc import Callable, Iterator, Mapping

from fallow_hookspecs import Finding, Node
from fallow_yarn.config import YarnSpec
from fallow_yarn.errors import AccessDeniedError, YarnError
from fallow_yarn.ipc.deadline import Deadline
from fallow_yarn.nm.daemons import node_managers
from fallow_yarn.report import floor_of, live
from fallow_yarn.rm.client import Facts, NodeReading, Reading, ResourceManager
from fallow_yarn.rm.facts import CAPACITY_SCHEDULER, Calculator
from fallow_yarn.rm.size import Size

MANY_NODES = 1000
"""From so many nodes on an asynchronous CapacityScheduler keeps a large part of a core busy even when idle."""

SHOWN_NODES = 10

Own = Callable[[Node, Mapping[str, object]], list[str]]
"""The ids of the NodeManagers of a node, among those the ResourceManager lists."""


def diagnose(
    manager: ResourceManager, spec: YarnSpec, own: Own, nodes: tuple[Node, ...], deadline: Deadline
) -> tuple[Finding, ...]:
    """All findings; where the ResourceManager does not answer, that alone. Raises nothing."""
    try:
        facts = manager.facts(deadline)
        reading = manager.read(deadline)
    except YarnError as error:
        advice = "check spec.resourceManager in the cluster file, and that the ResourceManager runs and is active"
        return (Finding(subject="ResourceManager", ok=False, detail=str(error), advice=advice),)
    findings = [_identity(facts, spec), _rights(manager, spec, deadline)]
    findings += _scheduler(facts, len(reading.nodes))
    for node in nodes:
        ids = own(node, reading.nodes)
        found = live(ids, reading.nodes)
        findings.append(_nodes_found(node, ids, found, spec, reading))
        findings += (_configured_size(reading.nodes[node_id], facts) for node_id in found)
        findings += _processes(found)
    return tuple(findings)


def _identity(facts: Facts, spec: YarnSpec) -> Finding:
    identity = facts.identity
    state = identity.ha_state or ("ACTIVE" if identity.active else "starting")
    return Finding(
        subject="ResourceManager",
        ok=True if identity.active else None,
        detail=f"{identity.version} at {spec.resource_manager.web_address} is {state}",
    )


def _rights(manager: ResourceManager, spec: YarnSpec, deadline: Deadline) -> Finding:
    subject = "admin rights"
    try:
        manager.check_rights(deadline)
    except AccessDeniedError as error:
        advice = f"add {spec.user!r} to yarn.admin.acl in the ResourceManager's yarn-site.xml, or set spec.user"
        return Finding(subject=subject, ok=False, detail=str(error), advice=advice)
    except YarnError as error:
        return Finding(subject=subject, ok=False, detail=str(error), advice="check spec.resourceManager.admin")
    return Finding(subject=subject, ok=True, detail=f"user {spec.user!r} may change node sizes")


def _scheduler(facts: Facts, node_count: int) -> Iterator[Finding]:
    setup = facts.setup
    if setup is None:
        yield Finding(subject="scheduler", ok=None, detail="the ResourceManager is not active yet")
        return
    yield _smallest(floor_of(facts), is_shown=setup.minimum is not None)
    if setup.scheduler == CAPACITY_SCHEDULER:
        yield _calculator(setup.calculator)
        if setup.asynchronous and node_count >= MANY_NODES:
            yield Finding(
                subject="asynchronous scheduling",
                ok=False,
                detail=f"on, with {node_count} nodes: it keeps a core half busy, and size changes wait behind it",
                advice="set yarn.scheduler.capacity.schedule-asynchronously.enable to false",
            )
    else:
        yield Finding(subject="scheduler", ok=None, detail=f"{setup.scheduler}: which resources it heeds is not shown")


def _smallest(floor: Size, *, is_shown: bool) -> Finding:
    subject = "minimum allocation"
    if floor == Size(0, 0):
        return Finding(subject=subject, ok=True, detail="of no account before Hadoop 3.3: nodes may be of any size")
    if is_shown:
        return Finding(subject=subject, ok=True, detail=f"{_words(floor)}: no node is made smaller")
    return Finding(
        subject=subject,
        ok=None,
        detail=f"not shown by the ResourceManager; taken as {_words(floor)}, Hadoop's default",
        advice="let spec.user read /conf of the ResourceManager if yarn.scheduler.minimum-allocation-* is set there",
    )


def _calculator(calculator: Calculator | None) -> Finding:
    subject = "resource calculator"
    if calculator is Calculator.DOMINANT:
        return Finding(subject=subject, ok=True, detail="DominantResourceCalculator: memory and vcores are heeded")
    if calculator is Calculator.DEFAULT:
        return Finding(
            subject=subject,
            ok=False,
            detail="DefaultResourceCalculator: vcores are ignored, so CPU offers hold nothing back",
            advice="set yarn.scheduler.capacity.resource-calculator to "
            "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        )
    return Finding(
        subject=subject,
        ok=None,
        detail="cannot be told from here; with the DefaultResourceCalculator vcores would be ignored",
        advice="look for yarn.scheduler.capacity.resource-calculator in capacity-scheduler.xml",
    )


def _nodes_found(node: Node, ids: list[str], found: list[str], spec: YarnSpec, reading: Reading) -> Finding:
    subject = f"NodeManagers of {node.name}"
    missing = [node_id for node_id in spec.node_managers or () if node_id not in reading.nodes]
    if missing:
        advice = f"the ResourceManager lists {_listed(reading)}; mend spec.nodeManagers"
        return Finding(subject=subject, ok=False, detail=f"not known: {', '.join(missing)}", advice=advice)
    if not ids:
        own = ", ".join(node.addresses)
        advice = f"this node is {own}; the ResourceManager lists {_listed(reading)}; set spec.nodeManagers"
        return Finding(subject=subject, ok=False, detail="the ResourceManager lists none here", advice=advice)
    states = ", ".join(f"{node_id} {reading.nodes[node_id].node.state}" for node_id in ids)
    if not found:
        return Finding(subject=subject, ok=False, detail=states, advice="start the NodeManager")
    return Finding(subject=subject, ok=True, detail=states)


def _configured_size(reading: NodeReading, facts: Facts) -> Finding:
    floor = floor_of(facts)
    size = reading.node.capability
    too_small = size.memory_mb < floor.memory_mb or size.vcores < floor.vcores
    subject = f"size of {reading.node.node_id}"
    if not too_small:
        return Finding(subject=subject, ok=True, detail=_words(size))
    return Finding(
        subject=subject,
        ok=False,
        detail=f"{_words(size)}: below the minimum allocation, so it exits when the ResourceManager restarts",
        advice="set yarn.nodemanager.resource.memory-mb and cpu-vcores in its yarn-site.xml to "
        f"{_words(floor)}: it comes back with that, and grows from there",
    )


def _processes(ids: list[str]) -> Iterator[Finding]:
    found = {daemon.framework_node for daemon in node_managers(ids)}
    for node_id in ids:
        if node_id in found:
            yield Finding(subject=f"process of {node_id}", ok=True, detail="found: what runs below it counts as batch")
        else:
            unread = None in found
            yield Finding(
                subject=f"process of {node_id}",
                ok=None if unread else False,
                detail="a NodeManager runs here whose sockets this user cannot read"
                if unread
                else "not found on this host: what its containers use counts as online use",
                advice="run Fallow as root or as the NodeManager's user, in the host's PID namespace",
            )


def _listed(reading: Reading) -> str:
    ids = sorted(reading.nodes)
    more = f" and {len(ids) - SHOWN_NODES} more" if len(ids) > SHOWN_NODES else ""
    return (", ".join(ids[:SHOWN_NODES]) or "no node") + more


def _words(size: Size) -> str:
    return f"{size.memory_mb} MB and {size.vcores} vcore{'' if size.vcores == 1 else 's'}"
