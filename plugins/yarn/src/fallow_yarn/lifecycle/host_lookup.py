"""Finds the hosts of nodes that a user names by id or host. The lists hold hosts, with all NodeManagers of a host."""

import difflib
from collections.abc import Iterable, Sequence

from fallow_yarn.lifecycle.lists import LifecycleError
from fallow_yarn.rm.nodes import Node


def hosts_of(names: Iterable[str], nodes: Sequence[Node], known: Iterable[str] = ()) -> list[str]:
    """The hosts of these nodes, each once. `known`: further hosts that the user may name.

    :raises LifecycleError: the ResourceManager has no such node.
    """
    by_name = {node.node_id: node.host for node in nodes} | {node.host: node.host for node in nodes}
    by_name |= {host: host for host in known}
    found: dict[str, None] = {}
    for name in names:
        if name not in by_name:
            near = difflib.get_close_matches(name, by_name, n=1)
            advice = f"did you mean {near[0]!r}?" if near else "`yarn node -list -all` shows those that it knows"
            raise LifecycleError(f"the ResourceManager does not know node {name!r}; {advice}")
        found[by_name[name]] = None
    return list(found)
