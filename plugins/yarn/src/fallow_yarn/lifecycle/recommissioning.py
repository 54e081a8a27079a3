"""Recommissions nodes."""

from collections.abc import Collection

from fallow_yarn.lifecycle.decommissioning import soon
from fallow_yarn.lifecycle.lists import HostLists
from fallow_yarn.rm.manager import Manager
from fallow_yarn.rm.nodes import ACTIVE, State


def recommission(manager: Manager, lists: HostLists, hosts: Collection[str]) -> None:
    """Remove these hosts from the exclude files, add them to the include files, and have the ResourceManager read both.

    Nodes whose NodeManagers have ended come back when these are started. Hold the lock of the lists.

    :raises LifecycleError: other nodes would be affected.
    :raises ListFileError: a file cannot be written.
    :raises YarnError: the ResourceManager cannot be asked, or refuses.
    """
    lists.check_writable()
    manager.check_rights(soon())
    nodes = manager.nodes(soon())
    others = [node for node in nodes if node.state is State.DECOMMISSIONING and node.host not in hosts]
    grace_seconds = max((node.grace_seconds or 0 for node in others), default=0)
    lists.check_others(nodes, hosts, grace_seconds)
    known = {node.host for node in nodes if node.state in ACTIVE}
    lists.include([host for host in hosts if host not in known])
    lists.stop_excluding(hosts)
    manager.refresh_nodes(grace_seconds, soon())
    lists.removed.discard_hosts(hosts)
