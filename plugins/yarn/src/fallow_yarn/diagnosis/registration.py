"""Judges which NodeManagers of a host the ResourceManager lists, and why it may not list one. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from fallow_hookspecs import Daemon, Finding, Node
from fallow_yarn.diagnosis.common import short_names, some_of
from fallow_yarn.model.node_matching import canonical_id, host_of, is_loopback
from fallow_yarn.rm.nodes import State
from fallow_yarn.rm.readings import NodeReading
from fallow_yarn.settings.config import YarnSpec
from fallow_yarn.settings.rm_addresses import RmAddresses


def registered(
    node: Node,
    ids: Collection[str],
    found: Collection[str],
    spec: YarnSpec,
    addresses: RmAddresses,
    nodes: Mapping[str, NodeReading],
    running: Iterable[Daemon],
) -> Finding:
    """`ids`: the NodeManagers that are this host's; `found`: those that are not gone; `running`: processes here."""
    subject = f"NodeManagers of {node.name}"
    named = spec.rules(manager_is_local=False).configured(node.name) or ()
    known = {canonical_id(node_id) for node_id in ids}
    missing = [node_id for node_id in named if canonical_id(node_id) not in known]
    if missing:
        key = "nodeManagers" if spec.node_managers is not None else "nodeManagersByNode"
        advice = f"the ResourceManager lists {some_of(nodes)}; correct spec.{key}, which has to use the same ids"
        return Finding(subject=subject, ok=False, detail=f"unknown: {', '.join(missing)}", advice=advice)
    if not ids:
        return _none_here(subject, node, addresses, nodes, [daemon.process.pid for daemon in running])
    states = ", ".join(f"{node_id} {nodes[node_id].node.state}" for node_id in ids)
    if not found and all(nodes[node_id].node.state is State.DECOMMISSIONED for node_id in ids):
        advice = f"to use it again: fallow yarn recommission {host_of(next(iter(ids)))}, and start its NodeManager"
        return Finding(subject=subject, ok=None, detail=f"{states}: decommissioned on purpose", advice=advice)
    if not found:
        return Finding(subject=subject, ok=False, detail=states, advice="start the NodeManager")
    unhealthy = [node_id for node_id in found if nodes[node_id].node.state is State.UNHEALTHY]
    if unhealthy:
        advice = "its disks are full or its health script fails: see healthReport on its web page, and its log"
        return Finding(subject=subject, ok=False, detail=f"{states}: it gets no containers", advice=advice)
    return Finding(subject=subject, ok=True, detail=states)


def processes(ids: Iterable[str], daemons: Iterable[Daemon]) -> Iterator[Finding]:
    """Whether the process of each is found here, so that its children count as batch."""
    found = {daemon.framework_node for daemon in daemons}
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


def _none_here(
    subject: str, node: Node, addresses: RmAddresses, nodes: Mapping[str, NodeReading], pids: Collection[int]
) -> Finding:
    tried = ", ".join(node.addresses) or "no name"
    detail = f"the ResourceManager lists none with a name of this host, which are {tried}; it lists {some_of(nodes)}"
    alike = [node_id for node_id in sorted(nodes) if short_names([host_of(node_id)]) & short_names(node.addresses)]
    loopback = [node_id for node_id in sorted(nodes) if is_loopback(host_of(node_id))]
    if alike:
        advice = f"if it is this host's, set spec.nodeManagers: [{', '.join(alike)}]"
    elif loopback and not is_loopback(addresses.admin.host):
        advice = (
            f"{some_of(loopback)} may be any host's: set yarn.nodemanager.hostname there, or, if it is this host's,"
            f" spec.nodeManagers: [{', '.join(loopback)}]"
        )
    elif pids:
        advice = (
            f"a NodeManager runs here (process {', '.join(map(str, sorted(pids)))}): its log shows whether it"
            " registered, and where; if it is listed by another name of this host, add that name to node.addresses in"
            " the core file, or set spec.nodeManagers to its id"
        )
    else:
        advice = "no NodeManager runs here that this user can see: start one, or set spec.nodeManagers to its id"
    return Finding(subject=subject, ok=False, detail=detail, advice=advice)
