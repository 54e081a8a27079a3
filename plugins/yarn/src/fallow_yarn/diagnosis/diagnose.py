"""Reads what a diagnosis needs, each source once, and has the other modules judge it."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from fallow_hookspecs import Finding, Node
from fallow_yarn.diagnosis import connection_errors, sizes
from fallow_yarn.diagnosis import manager as manager_findings
from fallow_yarn.diagnosis.kerberos import ticket
from fallow_yarn.diagnosis.labels import label
from fallow_yarn.diagnosis.node_manager import node_manager
from fallow_yarn.diagnosis.probes import PROBES, Probes
from fallow_yarn.diagnosis.registration import processes, registered
from fallow_yarn.diagnosis.scheduler import scheduler
from fallow_yarn.errors import (
    CredentialsError,
    DeadlineError,
    SilentHostError,
    StandbyError,
    UnknownHostError,
    YarnError,
)
from fallow_yarn.model.size import size_within
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.manager import Manager
from fallow_yarn.rm.readings import Facts, Reading, floor_of, live
from fallow_yarn.security.access import Access
from fallow_yarn.settings.config import YarnSpec
from fallow_yarn.settings.rm_addresses import RmAddresses, Server

_T = TypeVar("_T")

Own = Callable[[Node, Mapping[str, object]], list[str]]
"""Returns the ids of a node's NodeManagers among those that the ResourceManager lists."""

HOPELESS = (UnknownHostError, SilentHostError, DeadlineError, CredentialsError)
"""Errors after which the other ports of the same host are not tried."""


def diagnose(
    manager: Manager,
    spec: YarnSpec,
    access: Access,
    own: Own,
    nodes: tuple[Node, ...],
    deadline: Deadline,
    probes: Probes = PROBES,
) -> tuple[Finding, ...]:
    """All findings; if the ResourceManager does not answer, the reason for each port. Raises nothing."""
    facts = _tried(lambda: manager.facts(deadline))
    rm_states = manager.states(deadline)
    several = tuple(manager_findings.rm_states(rm_states))
    if access.login is not None:
        several += (ticket(access.login, access.service, deadline),)
    if spec.hadoop_conf_dir is not None:
        found = [rm_state.addresses for rm_state in rm_states] or [manager.addresses]
        several += tuple(manager_findings.addresses(addresses) for addresses in found)
    addresses = manager.addresses
    if isinstance(facts, (StandbyError, *HOPELESS)):
        return (connection_errors.failed("ResourceManager", addresses.web, facts), *several)
    rights = _tried(lambda: manager.check_rights(deadline))
    refused = rights if isinstance(rights, YarnError) else None
    if isinstance(facts, YarnError):
        listed = _tried(lambda: manager.nodes(deadline))
        answers = {Server.WEB: facts, Server.CLIENT: listed, Server.ADMIN: refused}
        errors = {kind: error for kind, error in answers.items() if isinstance(error, YarnError)}
        return (*manager_findings.ports(errors, addresses), *several)
    page = probes.manager_page(addresses, access, deadline)
    reading = _tried(lambda: manager.read(deadline))
    identity = facts.identity
    findings = [
        manager_findings.state(identity, addresses),
        *several,
        manager_findings.release(identity),
        manager_findings.clock(page),
    ]
    findings += manager_findings.rights(refused, page, identity, access.user, addresses)
    if isinstance(reading, YarnError):
        if identity.active:  # a standby has no client port
            findings += manager_findings.mixed_up(reading, refused)
            findings.append(connection_errors.failed("client port", addresses.client, reading))
        findings += scheduler(facts, page, 0)
        return tuple(findings)
    findings += scheduler(facts, page, len(reading.nodes))
    mine = {node.name: own(node, reading.nodes) for node in nodes}
    waiting = _tried(lambda: manager.applications(deadline, requests=True))
    requests = None if isinstance(waiting, YarnError) else [r for each in waiting for r in each.requests]
    asked = None if requests is None else [request.size for request in requests]
    largest = sizes.largest(reading.nodes, {node_id for ids in mine.values() for node_id in ids}, asked)
    findings += [] if largest is None else [largest]
    labelled = {
        node_id: name for ids in mine.values() for node_id in ids if (name := reading.nodes[node_id].node.label)
    }
    known = _tried(lambda: manager.labels(deadline)) if labelled else {}
    exclusive = {} if isinstance(known, YarnError) else known
    findings += [label(node_id, name, exclusive.get(name), requests) for node_id, name in sorted(labelled.items())]
    for node in nodes:
        findings += _node(node, mine[node.name], facts, reading, spec, access, addresses, deadline, probes)
    return tuple(findings)


def _node(
    node: Node,
    ids: list[str],
    facts: Facts,
    reading: Reading,
    spec: YarnSpec,
    access: Access,
    addresses: RmAddresses,
    deadline: Deadline,
    probes: Probes,
) -> Iterator[Finding]:
    """The findings about one host and its NodeManagers."""
    found = live(ids, reading.nodes)
    yield registered(node, ids, found, spec, addresses, reading.nodes, probes.processes(()) if not ids else ())
    if not found:
        return
    floor, most = floor_of(facts), node.lendable
    lend = None
    if most is not None:
        lend = size_within(cpu_milli=most.cpu_milli, memory_bytes=most.memory_bytes, vcore_milli=spec.vcore_milli)
    if lend is None:
        yield Finding(subject=f"room on {node.name}", ok=None, detail="what this host can lend is not known")
    else:
        yield sizes.room(node.name, len(found), floor, lend)
    for node_id in found:
        entry = reading.nodes[node_id]
        page = probes.node_page(entry.node.http_address, access, deadline)
        yield sizes.current(entry, floor)
        if lend is not None and page.settings.values:
            yield sizes.configured(node_id, page.settings, floor, lend)
        is_named = node_id in (spec.rules(manager_is_local=False).configured(node.name) or ())
        yield from node_manager(node_id, page, facts.identity, probes, is_named=is_named)
    yield from processes(found, probes.processes(found))


def _tried(ask: Callable[[], _T]) -> _T | YarnError:
    try:
        return ask()
    except YarnError as error:
        return error
