"""Taking nodes into a cluster again."""

from collections.abc import Collection

from fallow_yarn.lifecycle.decommissioning import soon
from fallow_yarn.lifecycle.lists import Lists
from fallow_yarn.rm.active import Manager
from fallow_yarn.rm.nodes import ACTIVE, State


def recommission(manager: Manager, lists: Lists, hosts: Collection[str]) -> None:
    """Exclude these hosts no longer, include them where only listed hosts are taken, and tell the ResourceManager.

    Nodes whose NodeManagers have ended come back when those are started. Hold the lock of the lists.

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
    lists.take_out(hosts)
    manager.refresh_nodes(grace_seconds, soon())
    lists.parked.remove_hosts(hosts)
