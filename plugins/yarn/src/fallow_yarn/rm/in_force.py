"""Decides which node sizes are in force, from the values of the ResourceManager and its scheduler. Pure.

A size change passes two queues. The call is answered when it is queued; then the ResourceManager's own record of the
node changes (`capability` in the node list), and later, one node after the other, the scheduler's. Only the scheduler's
size limits its allocations. It is in the REST entry of a node and, summed over all nodes, in the cluster's totals.
Reading all entries costs the ResourceManager half a second of CPU for 5,000 nodes, the totals almost nothing. So the
totals are read, and single entries only where the totals prove nothing.

**When the totals are proof.** A node's *possible* sizes are those that its scheduler may have now: the last one seen
there, and every size sent or seen as capability since. A node whose only possible size is its capability is *quiet*;
the others are *open*. Totals that equal the sum of the capabilities are not enough: one open node may still be 1 GiB
above its capability and another 1 GiB below. But if, for each resource, all possible sizes of all nodes lie on one side
of their capabilities, a sum of differences of one sign is zero only if each is zero: every capability is in force.
Otherwise the open nodes are read one by one, or all nodes if many are open; totals read after that show whether the
quiet ones have changed.

**Races.** The list of nodes is read before the totals. A size sent in between is among the possible sizes, so it is not
mistaken for proof. While the scheduler changes a node, the node is out of its table for a moment: the totals lack it,
so they prove nothing, and the node list shows it without an allocation, like an idle node. So an open node that seems
idle is read on its own. Its REST entry is all zero at that moment and does not count, except for a node with capability
0, if it is read twice. `used` and `available` of an entry are not read atomically: a container that starts in between
makes their sum wrong by its size, so a sum that is not a possible size counts only if it is read twice. A size that
comes into force, is replaced and comes again cannot be recognised: so do not send a size again while another one may
still be under way.
"""

from collections.abc import Iterable, Mapping, Sequence

from fallow_yarn.model.size import ZERO, Size
from fallow_yarn.rm.nodes import IN_SCHEDULER, Node, State

Possible = Mapping[str, frozenset[Size]]
"""The possible sizes of each node, capability among them; a node that is missing was never seen in the scheduler."""


def in_scheduler(nodes: Iterable[Node]) -> list[Node]:
    """The nodes that the scheduler has in its table."""
    return [node for node in nodes if node.state in IN_SCHEDULER]


def is_open(node: Node, possible: Possible) -> bool:
    """Whether the scheduler's size of the node may differ from its capability.

    While a node is decommissioned the ResourceManager itself changes its size with every heartbeat.
    """
    return node.state is State.DECOMMISSIONING or possible.get(node.node_id) != frozenset({node.capability})


def is_proven(nodes: Sequence[Node], possible: Possible, total: Size | None) -> bool:
    """Whether the totals prove that every capability is in force, and no open node seems idle."""
    counted = in_scheduler(nodes)
    if total is None or total != _sum(node.capability for node in counted):
        return False
    differences: list[Size] = []
    for node in counted:
        if not is_open(node, possible):
            continue
        sizes = possible.get(node.node_id)
        if sizes is None or node.state is State.DECOMMISSIONING or node.used == ZERO:
            return False
        differences += (_difference(size, node.capability) for size in sizes)
    return _one_sided(d.memory_mb for d in differences) and _one_sided(d.vcores for d in differences)


def is_consistent(nodes: Sequence[Node], read: Mapping[str, Size], total: Size | None) -> bool:
    """Whether the sizes read of some nodes, and the capabilities of the others, add up to the totals.

    True if there are no totals to compare with.
    """
    return total is None or total == _sum(read.get(node.node_id, node.capability) for node in in_scheduler(nodes))


def _sum(sizes: Iterable[Size]) -> Size:
    memory_mb = vcores = 0
    for size in sizes:
        memory_mb += size.memory_mb
        vcores += size.vcores
    return Size(memory_mb, vcores)


def _difference(left: Size, right: Size) -> Size:
    return Size(left.memory_mb - right.memory_mb, left.vcores - right.vcores)


def _one_sided(differences: Iterable[int]) -> bool:
    signs = {(difference > 0) - (difference < 0) for difference in differences}
    return not signs >= {-1, 1}
