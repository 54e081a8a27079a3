"""Nodes that are being taken out of the cluster: what a refresh of the lists and a heartbeat do to one. Pure."""

import math

from fallow_yarn.embedded.node_lists import NodeLists
from fallow_yarn.embedded.node_state import NodeState


def refreshed(node: NodeState, lists: NodeLists, grace_seconds: int | None, now: float) -> None:
    """A graceful refresh: an excluded node is leaving from now on, and one that is leaving may get another grace.

    One that is no longer excluded is in use again, with the size that it had.
    """
    if lists.takes(node.host):
        if node.leaving_since is not None:
            node.state, node.leaving_since = "RUNNING", None
            node.capability = node.total = node.size_before
        return
    if node.leaving_since is None:
        node.state, node.leaving_since, node.size_before = "DECOMMISSIONING", now, node.capability
    node.grace_seconds = lists.grace_seconds(node.host, grace_seconds)


def heard(node: NodeState, now: float, *, is_needed: bool) -> bool:
    """A heartbeat of a node that is leaving: it shrinks to what is allocated there. Whether it is out now.

    `is_needed`: an application runs that has used it.
    """
    if node.leaving_since is None:
        return False
    node.capability = node.total = node.used
    node.deadline = now
    grace_seconds = node.grace_seconds if node.grace_seconds is not None else 0
    end = node.leaving_since + (grace_seconds if grace_seconds >= 0 else math.inf)
    return now >= end or not (node.containers or is_needed)
