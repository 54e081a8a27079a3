"""Finds the hosts of nodes that a user names by id or host. The lists hold hosts, with all NodeManagers of a host."""

import difflib
import socket
from collections.abc import Callable, Collection, Iterable, Sequence

from fallow_yarn.lifecycle.lists import LifecycleError
from fallow_yarn.model.node_matching import canonical, canonical_id, is_loopback
from fallow_yarn.rm.nodes import Node

NamesOf = Callable[[str], Collection[str]]
"""All names and addresses of the host with a name or address."""


def names_of(name: str) -> set[str]:
    """The canonical name, the aliases and the addresses, by the system's name look-up; empty if there are none."""
    found: set[str] = set()
    for look_up in (socket.gethostbyaddr, socket.gethostbyname_ex):
        try:
            first, aliases, addresses = look_up(name)
        except (OSError, ValueError):
            continue
        found |= {first, *aliases, *addresses}
    return found


def hosts_of(
    names: Iterable[str], nodes: Sequence[Node], known: Iterable[str] = (), names_of: NamesOf = names_of
) -> list[str]:
    """The hosts of these nodes, each once, as the ResourceManager spells them. `known`: further hosts that the user may
    name. A node may also be named in another spelling, by an alias of its host, or by an address.

    :raises LifecycleError: the ResourceManager has no such node, or several hosts have such a name.
    """
    by_id = {canonical_id(node.node_id): node.host for node in nodes}
    by_host = {canonical(node.host): node.host for node in nodes}
    exact = {node.host for node in nodes}
    listed = set(known)
    found: dict[str, None] = {}
    for name in names:
        host = name if name in exact else by_id.get(canonical_id(name)) or by_host.get(canonical(name))
        if host is None:
            aliases = {canonical(alias) for alias in names_of(name) if not is_loopback(alias)}
            others = sorted({by_host[alias] for alias in aliases if alias in by_host})
            if len(others) > 1:
                raise LifecycleError(f"{name!r} is a name of several nodes: {', '.join(others)}; name one of them")
            host = others[0] if others else name if name in listed else None
        if host is None:
            near = difflib.get_close_matches(name, [node.node_id for node in nodes] + [*exact, *listed], n=1)
            advice = f"did you mean {near[0]!r}?" if near else "`yarn node -list -all` shows those that it knows"
            raise LifecycleError(f"the ResourceManager does not know node {name!r}; {advice}")
        found[host] = None
    return list(found)
