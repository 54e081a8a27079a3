"""Matches the ResourceManager's nodes with Fallow's nodes. Pure.

A node id is `host:port`, as in the ResourceManager's list of nodes; no other id is ever used. If the config names the
ids of a node, only these match. Otherwise an id belongs to a node if

- its host is an address of the node or of a pod on it; loopback names count only if the ResourceManager itself is
reached through loopback, since the NodeManager of any other host may call itself `localhost` too;
- a label or an annotation of the node, or of a pod on it, names the id, or its host for all ports.

A NodeManager that restarts at another port is a new node for the ResourceManager, which keeps the old one for ten more
minutes. `superseded` finds such old ids.
"""

import ipaddress
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from fallow_hookspecs import Node

NODE_ID_KEY = "yarn.hadoop.apache.org/node-id"
"""The label or annotation with the NodeManagers of a pod, as in Koordinator's charts for Hadoop."""

LOOPBACK_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})


def by_host(node_ids: Iterable[str]) -> dict[str, list[str]]:
    """The ids by host, as an index for `own_ids`."""
    found: dict[str, list[str]] = {}
    for node_id in node_ids:
        found.setdefault(host_of(node_id), []).append(node_id)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingRules:
    """How NodeManagers are matched. `listed`: their ids on the only node; `by_node`: those of each node.

    `key`: the label or annotation with their ids. `manager_is_local`: the ResourceManager is reached through loopback.
    """

    listed: Collection[str] | None = None
    by_node: Mapping[str, Collection[str]] | None = None
    key: str = NODE_ID_KEY
    manager_is_local: bool = False

    def configured(self, node: str) -> Collection[str] | None:
        """The ids that the config names for a node; `None` if it names none."""
        return self.listed if self.by_node is None else self.by_node.get(node)


def own_ids(ids_by_host: Mapping[str, Collection[str]], node: Node, rules: MatchingRules) -> list[str]:
    """The ids, in order, that belong to a node."""
    configured = rules.configured(node.name)
    if configured is not None:
        return sorted({known for node_id in configured for known in _equal(node_id, ids_by_host)})
    addresses = (*node.addresses, *(address for pod in node.pods for address in pod.addresses))
    hosts = {canonical(address) for address in addresses}
    counted = (host for host in hosts if rules.manager_is_local or not is_loopback(host))
    found = {node_id for host in counted for node_id in ids_by_host.get(host, ())}
    for values in (node.annotations, node.labels, *(v for pod in node.pods for v in (pod.annotations, pod.labels))):
        found.update(_named(values.get(rules.key, ""), ids_by_host))
    return sorted(found)


class OwnIds(Container[str]):
    """All ids that belong to a node by the rules, listed or not."""

    def __init__(self, node: Node, rules: MatchingRules) -> None:
        self._node, self._rules = node, rules

    def __contains__(self, node_id: object) -> bool:
        return isinstance(node_id, str) and bool(own_ids(by_host([node_id]), self._node, self._rules))


def superseded(listening: Mapping[str, int], last_seen: Mapping[str, int]) -> frozenset[str]:
    """The ids whose NodeManager has ended, and on whose host another one started after that.

    `listening`: the start time of the process that has the port of an id now; `last_seen`: when a process last had it.
    Times are on the clock of start times. A NodeManager that restarts at the same port has no successor.
    """
    starts: dict[str, int] = {}
    for node_id, started in listening.items():
        starts[host_of(node_id)] = max(started, starts.get(host_of(node_id), started))
    return frozenset(
        node_id
        for node_id, seen in last_seen.items()
        if node_id not in listening and starts.get(host_of(node_id), seen) > seen
    )


def host_of(node_id: str) -> str:
    """The host of `host:port` in the form of `canonical`."""
    return canonical(node_id.rpartition(":")[0])


def is_loopback(host: str) -> bool:
    """Whether a host name or address names the loopback interface."""
    host = canonical(host)
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in LOOPBACK_NAMES


def canonical_id(node_id: str) -> str:
    """The form in which two spellings of a node id are equal."""
    return f"{host_of(node_id)}:{_port(node_id)}"


def canonical(host: str) -> str:
    """The form in which two spellings of a host are equal: a name in lower case and without a dot at its end, an
    address without brackets, an IPv6 one in its short form (Java writes all groups).
    """
    bare = host.removeprefix("[").removesuffix("]")
    try:
        address = ipaddress.IPv6Address(bare) if ":" in bare else None
    except ValueError:
        address = None
    return host.lower().removesuffix(".") if address is None else str(address.ipv4_mapped or address)


def is_address(host: str) -> bool:
    """Whether this is an IP address, without brackets."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_ipv6(host: str) -> bool:
    """Whether this is an IPv6 address, without brackets."""
    return ":" in host and is_address(host)


def _named(value: str, ids_by_host: Mapping[str, Collection[str]]) -> Iterator[str]:
    """The known ids that a label or annotation names: ids or hosts, separated by commas or blanks."""
    for word in filter(None, re.split(r"[\s,]+", value)):
        yield from ids_by_host.get(canonical(word), ())
        yield from _equal(word, ids_by_host)


def _equal(node_id: str, ids_by_host: Mapping[str, Collection[str]]) -> Iterator[str]:
    """The known ids that are only another spelling of an id."""
    return (known for known in ids_by_host.get(host_of(node_id), ()) if _port(known) == _port(node_id))


def _port(node_id: str) -> str:
    return node_id.rpartition(":")[2]
