"""What the agent acts on: the results of the last round, brought up to date with the newest sample. Pure.

The agent does not wait for a round: a round writes files and may be slow just when memory runs out. Only capacity is
computed anew for each sample, since limits of CPU follow the use outside batch. Accounts, rows and overdraft stay as
the last round found them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fallow_core.ledger.capacity import batch_capacity
from fallow_core.ledger.entries import NodeLedger, ResourceLedger
from fallow_core.ledger.implausible import wrong_usage
from fallow_core.model.policy import NodePolicy
from fallow_core.model.sample import NodeSample


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRound:
    """The results of the last round for one node.

    `may_pay`: by cluster, the bytes of memory that overdraft may still cost its tasks. `stopped`: the clusters that may
    run nothing on the node.
    """

    ledger: NodeLedger
    may_pay: Mapping[str, int] = field(default_factory=dict)
    stopped: frozenset[str] = frozenset()

    def ledger_at(self, sample: NodeSample, policy: NodePolicy, now: float) -> NodeLedger:
        """The ledger with the capacity of a newer sample, under the node's policy of this moment."""
        cpu, memory = (_remeasured(each, sample, policy, now) for each in (self.ledger.cpu, self.ledger.memory))
        return replace(self.ledger, cpu=cpu, memory=memory)


def _remeasured(ledger: ResourceLedger, sample: NodeSample, policy: NodePolicy, now: float) -> ResourceLedger:
    last, usage = ledger.capacity, sample.of(ledger.resource)
    if last is None or usage is None or wrong_usage(ledger.resource, usage, now):
        return ledger
    # What the last round reserved includes the share of each daemon, which only the round can count.
    of_resource = replace(policy.of(ledger.resource), reserved=last.reserved)
    return replace(ledger, capacity=batch_capacity(usage, of_resource, last.counted))
