"""Decommissions nodes: the effects of a refresh of the lists and of a heartbeat on one. Pure."""

import math

from fallow_yarn.embedded.node_lists import NodeLists
from fallow_yarn.embedded.node_state import NodeState


def refreshed(node: NodeState, lists: NodeLists, grace_seconds: int | None, now: float) -> None:
    """A graceful refresh: starts to decommission an excluded node, or changes the grace of one that is under way.

    A node that is no longer excluded is in use again, with its former size.
    """
    if lists.takes(node.host):
        if node.decommissioning_since is not None:
            node.state, node.decommissioning_since = "RUNNING", None
            node.capability = node.total = node.size_before
        return
    if node.decommissioning_since is None:
        node.state, node.decommissioning_since, node.size_before = "DECOMMISSIONING", now, node.capability
    node.grace_seconds = lists.grace_seconds(node.host, grace_seconds)


def heard(node: NodeState, now: float, *, is_needed: bool) -> bool:
    """A heartbeat of a node that is being decommissioned: it shrinks to its allocation. Whether it is done.

    `is_needed`: an application that has used it is running.
    """
    if node.decommissioning_since is None:
        return False
    node.capability = node.total = node.used
    node.deadline = now
    grace_seconds = node.grace_seconds if node.grace_seconds is not None else 0
    end = node.decommissioning_since + (grace_seconds if grace_seconds >= 0 else math.inf)
    return now >= end or not (node.containers or is_needed)
