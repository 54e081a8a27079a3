"""Which of the ResourceManager's nodes are NodeManagers of a node of ours. Pure.

A node id is `host:port` as the ResourceManager names it. With a list in the config only those ids count; without one,
those whose host is an address of the node. Names of the loopback interface count only where the ResourceManager itself
is reached by one: any other host's NodeManager may call itself `localhost` too.
"""

import ipaddress
from collections.abc import Collection, Iterable

LOOPBACK_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})


def own_ids(
    node_ids: Iterable[str], addresses: Collection[str], configured: Collection[str] | None, manager_is_local: bool
) -> list[str]:
    """The ids, in order, that belong to a node with these addresses (host names and IP addresses)."""
    if configured is not None:
        wanted = set(configured)
        return sorted(node_id for node_id in node_ids if node_id in wanted)
    known = {_canonical(address) for address in addresses}
    return sorted(
        node_id
        for node_id in node_ids
        if (host := host_of(node_id)) in known and (manager_is_local or not is_loopback(host))
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
