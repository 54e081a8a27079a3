"""Which node sizes are in force: pure decisions over what the ResourceManager and its scheduler say.

A size change passes two queues. The call is answered when it is queued; then the ResourceManager's own record of the
node changes (`capability` in the node list), and only later, one node after the other, the scheduler's. Only the
scheduler's size limits what it promises. It shows in the REST entry of a node, and, for all nodes together, in the
cluster's totals. Reading every entry costs the ResourceManager half a second of CPU for 5,000 nodes, the totals next
to nothing. So the totals have to do, and single entries are read where they cannot.

**When the totals prove it.** Let a node's *possible* sizes be those that its scheduler may have now: the last one seen
there, and every size sent or seen as capability since. A node with one possible size, its capability, is *quiet*; the
others are *open*. That the totals equal the sum of the capabilities is not enough: of two open nodes one may still be
1 GiB above its capability and the other 1 GiB below. But if, for each resource, all possible sizes of all nodes lie on
one side of their capabilities, then a sum of differences of one sign is zero only if each is: every capability is in
force. Otherwise open nodes are read one by one, or all nodes if they are many; totals read after that show whether
the quiet ones are still what they were.

**Races.** The list of nodes is read before the totals. What is sent in between is among the possible sizes, so it
cannot pass for proof. While the scheduler changes a node it takes it out of its table for a moment: the totals then
lack the node, so nothing is proven; and the node list shows it with nothing allocated, just as if it were idle. So an
open node that seems idle is read on its own. A REST entry of such a moment is all zero, and counts as no answer, but
for a node whose capability is nothing, if it is read twice. `used` and `available` of an entry are not read in one
step: a container that starts between them makes their sum wrong by its size, so a sum that is no possible size counts
only if it is read twice. What none of this can tell is a size that comes into force, gives way to another, and comes
again: so whoever sends sizes must not send one again while a different one may still be on its way.
"""

from collections.abc import Iterable, Mapping, Sequence

from fallow_yarn.model.size import Size
from fallow_yarn.rm.nodes import IN_SCHEDULER, Node, State

Possible = Mapping[str, frozenset[Size]]
"""The possible sizes of each node, capability among them; a node that is missing was never seen in the scheduler."""

ZERO = Size(0, 0)


def in_scheduler(nodes: Iterable[Node]) -> list[Node]:
    """The nodes that the scheduler has in its table."""
    return [node for node in nodes if node.state in IN_SCHEDULER]


def is_open(node: Node, possible: Possible) -> bool:
    """Whether the scheduler may have another size for the node than its capability.

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
