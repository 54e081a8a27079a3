"""The findings of an agent without a ResourceManager: the NodeManagers that it knows, and their settings."""

from collections.abc import Collection, Container, Iterator, Mapping

from fallow_hookspecs import Finding, Node, Process
from fallow_yarn.diagnosis.common import some_of
from fallow_yarn.diagnosis.node_manager import node_manager
from fallow_yarn.diagnosis.probes import PROBES, Probes
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.nm.discovery import LocalNodeManager
from fallow_yarn.security.web_access import WebAccess


def diagnose(
    node: Node,
    known: Mapping[Process, LocalNodeManager],
    problems: Collection[str],
    own: Container[str],
    access: WebAccess,
    deadline: Deadline,
    probes: Probes = PROBES,
) -> Iterator[Finding]:
    """All findings about one host. `problems`: why the ids of some NodeManagers are unknown."""
    yield Finding(subject="ResourceManager", ok=True, detail="not asked: an agent asks this host only")
    mine = {process: found for process, found in known.items() if found.node_id in own}
    yield _found(node, mine, [found.node_id for found in known.values() if found.node_id not in own], problems)
    advice = "let this host read its web page as spec.user; without it the list of tasks stays incomplete"
    yield from (Finding(subject="NodeManager", ok=False, detail=problem, advice=advice) for problem in problems)
    for process, found in mine.items():
        detail = f"process {process.pid}, which answers at {found.web}: what runs below it counts as batch"
        yield Finding(subject=f"process of {found.node_id}", ok=True, detail=detail)
        page = probes.node_page(found.web, access, deadline)
        yield from node_manager(found.node_id, page, None, probes, is_named=False)


def _found(
    node: Node, mine: Mapping[Process, LocalNodeManager], others: list[str], problems: Collection[str]
) -> Finding:
    subject = f"NodeManagers of {node.name}"
    if mine:
        return Finding(subject=subject, ok=True, detail=some_of([found.node_id for found in mine.values()]))
    if others:
        detail = (
            f"{some_of(others)} runs here, which is not one of this host's names: {', '.join(node.addresses) or 'none'}"
        )
        advice = f"if it is this cluster's, set spec.nodeManagers: [{', '.join(sorted(others))}]"
        return Finding(subject=subject, ok=False, detail=detail, advice=advice)
    if problems:
        return Finding(subject=subject, ok=False, detail="none has told its id")
    advice = "start it; in a container Fallow needs the host's PID namespace to see it"
    return Finding(subject=subject, ok=False, detail="no NodeManager runs here that this user can see", advice=advice)
