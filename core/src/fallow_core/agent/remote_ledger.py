"""What stands in the controller's place where it is elsewhere: the clusters here, their switches, and the ledger's row.

Capacity is computed here, from what is measured here. What accounts may have comes with the row, as long as it counts.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from fallow_core.controller.switches import known_scopes, scopes, strictest
from fallow_core.controller.watched import Watched
from fallow_core.ledger.entries import AccountEntry, NodeInputs, NodeLedger
from fallow_core.ledger.node_ledger import node_ledger
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.policy import NodePolicy, PublishingPolicy, SwitchState
from fallow_core.model.sample import NodeSample
from fallow_core.plugins.session import ClusterSession
from fallow_core.state.node_grant import GrantFile, NodeGrant
from fallow_core.state.publish_journal import Journal, Switch
from fallow_hookspecs import Node

REPORT_INTERVAL_SECONDS = 60.0
"""How often a plugin is asked what its framework has: many agents ask the same one."""


class Followed:
    """The clusters of one node and what counts for them. Every method belongs to the loop's thread.

    `names` are all that are configured. `ledgers` has this node's ledger alone.
    """

    def __init__(
        self, node: Node, names: Collection[str], policies: NodePolicies, journal: Journal, row_file: GrantFile
    ) -> None:
        self.node = node
        self.names = tuple(sorted(names))
        self.clusters: dict[str, ClusterSession] = {}
        self.journal = journal
        self.watched = Watched(policies)
        self.ledgers: dict[str, NodeLedger] = {}
        self.row_file = row_file
        self.row: NodeGrant | None = None

    def settle(self, now: float) -> None:
        """Take the results of calls."""
        for cluster in self.clusters.values():
            cluster.settle(now)

    def list_every(self, seconds: float) -> None:
        """How often tasks are listed from now on, if nothing calls for it before."""
        for cluster in self.clusters.values():
            cluster.list_every(seconds)

    def tick(self, sample: NodeSample, now: float, wall_now: float) -> NodeLedger:
        """The ledger of this node now; calls that are due are started."""
        for cluster in self.clusters.values():
            cluster.start_reads((self.node,), now)
        self.watched.look((self.node,), {self.node.name: sample}, now, wall_now)
        self.row = self.row_file.row(now, wall_now)
        name = self.node.name
        inputs = NodeInputs(
            node=name,
            now=now,
            sample=self.watched.samples[name],
            rows=(),
            accounts={},
            policy=_with_daemons(self.watched.policies_now[name].policy, self._daemons()),
            publishing=PublishingPolicy(),
        )
        self.ledgers[name] = ledger = _with_row(node_ledger(inputs), self.row)
        return ledger

    def switch(self, scope: str) -> Switch:
        """The switch of a scope, such as a cluster."""
        return self.journal.content.switches.get(scope, Switch())

    def switch_at(self, name: str) -> tuple[str, Switch]:
        """The switch that counts for a cluster here, and its scope."""
        pool = self.watched.pool(self.node.name)
        return strictest(self.journal.content.switches, scopes(name, self.node.name, pool))

    @property
    def scopes(self) -> list[str]:
        """All that can be switched here."""
        return known_scopes(self.names, [self.node.name], [p.name for p in self.watched.policies.pools])

    @property
    def may_pay(self) -> dict[str, int]:
        """What tasks of each account may still be terminated for overdraft, in bytes: nothing without a row that
        counts.
        """
        return {} if self.row is None else {name: account.may_pay for name, account in self.row.accounts.items()}

    @property
    def stopped(self) -> frozenset[str]:
        """The accounts of which nothing is to run here."""
        here = {name for name in self.names if self.switch_at(name)[1].state is SwitchState.STOP}
        by_row = set() if self.row is None else {name for name, each in self.row.accounts.items() if each.stopped}
        return frozenset(here | by_row)

    def set_switches(self, scopes: Iterable[str], state: SwitchState, who: str, why: str, wall_now: float) -> None:
        """Switch scopes; kept over restarts.

        :raises StateError: it cannot be written down; nothing changes.
        """
        content = self.journal.content
        switch = Switch(state=state, who=who, when=wall_now, why=why)
        self.journal.write(replace(content, switches={**content.switches, **dict.fromkeys(scopes, switch)}))

    def _daemons(self) -> int:
        return sum(len(cluster.daemons.get(self.node.name, ())) for cluster in self.clusters.values())


def _with_daemons(policy: NodePolicy, daemons: int) -> NodePolicy:
    """What is kept for each daemon, as part of what is kept at least: the ledger here has no rows to count them by."""
    cpu, memory = (
        replace(each, reserved=max(each.reserved, each.reserved_per_daemon * daemons))
        for each in (policy.cpu, policy.memory)
    )
    return replace(policy, cpu=cpu, memory=memory)


def _with_row(ledger: NodeLedger, row: NodeGrant | None) -> NodeLedger:
    """The ledger with what a controller says of the accounts; without a row there are none, and nobody is over."""
    if row is None:
        return ledger
    accounts = tuple(
        AccountEntry(
            cluster=name,
            weight=1,
            unit=1,
            allocated=account.allocated,
            in_force=account.target,
            pending=None,
            room=0,
            spare=0,
            wants=None,
            demand=None,
            limit=None,
            floor=account.floor,
            target=account.target,
        )
        for name, account in sorted(row.accounts.items())
    )
    allocated = sum(account.allocated for account in accounts)
    memory = replace(ledger.memory, accounts=accounts, allocated=allocated, overdraft=row.to_take_back)
    return replace(ledger, memory=memory)
