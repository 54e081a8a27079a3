"""What is known of the nodes themselves: what was measured, since when it should have been, and their policy now."""

from collections.abc import Iterable, Mapping

from fallow_core.ledger.effective_policy import PolicyNow, lends_less, policy_now
from fallow_core.ledger.implausible import accepted
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.sample import NodeSample
from fallow_core.refused_inputs import Refused
from fallow_hookspecs import Node


class Watched:
    """The nodes as of the newest `look`. `samples`: the newest good readings. `policies_now`: the policy of each node.

    `since`: since when each node should have been measured. `refused`: readings and labels that cannot be true.
    """

    def __init__(self, policies: NodePolicies) -> None:
        self.policies = policies
        self.samples: dict[str, NodeSample] = {}
        self.policies_now: dict[str, PolicyNow] = {}
        self.since: dict[str, float] = {}
        self.refused = Refused("nodes")

    def pool(self, node: str) -> str:
        """The pool of a node, empty where it is in none or was never looked at."""
        found = self.policies_now.get(node)
        return "" if found is None else found.pool

    def look(self, nodes: Iterable[Node], samples: Mapping[str, NodeSample], now: float, wall_now: float) -> bool:
        """Take what was measured, and the policies of this time. Whether a schedule or a label lends less by now."""
        wrong: dict[str, str] = {}
        labels: dict[str, str] = {}
        less = False
        for node in nodes:
            self.since.setdefault(node.name, now)
            before = self.samples.get(node.name, NodeSample())
            self.samples[node.name], refused = accepted(before, samples.get(node.name, NodeSample()), now)
            wrong |= {f"{resource} of {node.name}": why for resource, why in refused.items()}
            old, new = self.policies_now.get(node.name), policy_now(self.policies, node.name, node.labels, wall_now)
            less |= old is not None and lends_less(old.policy, new.policy)
            labels |= {node.name: "; ".join(new.problems)} if new.problems else {}
            self.policies_now[node.name] = new
        self.refused.note("sample", wrong)
        self.refused.note("labels", labels)
        return less
