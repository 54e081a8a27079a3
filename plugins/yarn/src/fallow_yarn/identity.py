"""Which of the ResourceManager's nodes are NodeManagers of a node of ours. Pure.

A node id is `host:port` as the ResourceManager names it. With a list in the config only those ids count; without one,
those whose host is an address of the node. Names of the loopback interface count only where the ResourceManager itself
is reached by one: any other host's NodeManager may call itself `localhost` too.
"""

import ipaddress
from collections.abc import Collection, Iterable, Mapping

LOOPBACK_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})


def by_host(node_ids: Iterable[str]) -> dict[str, list[str]]:
    """The ids by their host: so that each of many nodes finds its own without a look at all."""
    found: dict[str, list[str]] = {}
    for node_id in node_ids:
        found.setdefault(host_of(node_id), []).append(node_id)
    return found


def own_ids(
    ids_by_host: Mapping[str, Collection[str]],
    addresses: Collection[str],
    configured: Collection[str] | None,
    manager_is_local: bool,
) -> list[str]:
    """The ids, in order, that belong to a node with these addresses (host names and IP addresses)."""
    if configured is not None:
        return sorted(node_id for node_id in set(configured) if node_id in ids_by_host.get(host_of(node_id), ()))
    hosts = {_canonical(address) for address in addresses}
    return sorted(
        node_id for host in hosts if manager_is_local or not is_loopback(host) for node_id in ids_by_host.get(host, ())
    )


def host_of(node_id: str) -> str:
    """The host of `host:port`, in lower case; an IPv6 address without brackets and in its short form."""
    return _canonical(node_id.rpartition(":")[0].strip("[]"))


def is_loopback(host: str) -> bool:
    """Whether a host name or address names the loopback interface."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() in LOOPBACK_NAMES


def _canonical(host: str) -> str:
    """One way to write each name and address: Java writes an IPv6 address in full."""
    try:
        return str(ipaddress.IPv6Address(host)) if ":" in host else host.lower()
    except ValueError:
        return host.lower()
