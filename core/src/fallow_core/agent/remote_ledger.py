"""The ledger of a node whose controller is elsewhere: its sessions here, their switches, and what was granted.

Capacity is computed here, from what is measured here. What accounts may have comes with the grant, while it counts.
"""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from fallow_core.ledger.entries import AccountEntry, NodeLedger
from fallow_core.ledger.node_ledger import node_ledger
from fallow_core.log import write
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.policy import PublishingPolicy, SwitchState
from fallow_core.model.refused_inputs import RefusedInputs
from fallow_core.model.sample import NodeSample
from fallow_core.planner.memory import Acceptance, Change
from fallow_core.planner.node_state import NodeState, ledger_inputs, new_node, note_labels, take_in, take_policy
from fallow_core.planner.observations import NodeObservation
from fallow_core.planner.switches import Switch, known_scopes, no_longer_restored, restored, scopes, strictest
from fallow_core.plugins.session import ClusterSession
from fallow_core.state.lost_files import LostFile
from fallow_core.state.node_grant import GrantFile, NodeGrant
from fallow_core.state.publish_journal import Journal
from fallow_hookspecs import Node

REPORT_INTERVAL_SECONDS = 60.0
"""How often a plugin is asked what its framework has: many agents ask the same one."""


class RemoteLedger:
    """The clusters of one node and what counts for them. Every method belongs to the loop's thread.

    `names` are all that are configured. `ledgers` has this node's ledger. `refused`: readings and labels that cannot be
    true.
    """

    def __init__(
        self, node: Node, names: Collection[str], policies: NodePolicies, journal: Journal, row_file: GrantFile
    ) -> None:
        self.node = node
        self.names = tuple(sorted(names))
        self.clusters: dict[str, ClusterSession] = {}
        self.journal = journal
        self.policies = policies
        self.refused = RefusedInputs("nodes")
        self.ledgers: dict[str, NodeLedger] = {}
        self.row_file = row_file
        self.row: NodeGrant | None = None
        self._state: NodeState | None = None

    def configure(self, policies: NodePolicies, names: Collection[str]) -> None:
        """Other policies and clusters from now on."""
        self.policies, self.names = policies, tuple(sorted(names))

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
        name = self.node.name
        daemons = sum(len(cluster.daemons.get(name, ())) for cluster in self.clusters.values())
        observed = NodeObservation(sample=sample, labels=self.node.labels, daemons=daemons)
        if self._state is None:
            self._state = new_node(self.policies, name, observed, now, wall_now)
        write(take_in(self._state, observed, self.refused, now))
        take_policy(self._state, self.policies, wall_now)
        write(note_labels(self._state, self.refused))
        self.row = self.row_file.row(now, wall_now)
        ledger = _with_grant(node_ledger(ledger_inputs(self._state, PublishingPolicy(), now)), self.row)
        self.ledgers[name] = ledger
        return ledger

    def pool(self, node: str) -> str:
        """The pool of this node; empty where it is in none or was never looked at."""
        return next(iter(self.pools(node)), "")

    def pools(self, _node: str) -> tuple[str, ...]:
        """The pools that this node matches, of which the first one counts."""
        return () if self._state is None else self._state.policy.pools

    def switch_at(self, cluster: str, node: str) -> tuple[str, Switch]:
        """The scope and the switch that count for a cluster here."""
        return strictest(self._switches, scopes(cluster, node, self.pool(node)))

    def switch(self, scope: str) -> Switch:
        """The switch of a scope, such as a cluster."""
        return self._switches.get(scope, Switch())

    @property
    def restored(self) -> frozenset[str]:
        """The clusters that were restored, here or by the controller: nothing of them is changed."""
        return restored(self._switches)

    @property
    def _switches(self) -> dict[str, Switch]:
        by_controller = Switch(state=SwitchState.RESTORED, who="its controller")
        return {**self.journal.memory.switches, **dict.fromkeys(self.row_file.restored, by_controller)}

    @property
    def scopes(self) -> list[str]:
        """All that can be switched here."""
        return known_scopes(self.names, [self.node.name], [pool.name for pool in self.policies.pools])

    @property
    def may_pay(self) -> dict[str, int]:
        """How many bytes of each account's tasks may be terminated for overdraft: none without a grant that counts."""
        if self.row is None:
            return {}
        return {name: account.may_pay for name, account in self.row.accounts.items()}

    @property
    def stopped(self) -> frozenset[str]:
        """The accounts of which nothing is to run here."""
        granted = {} if self.row is None else self.row.accounts
        here = {name for name in self.names if self.switch_at(name, self.node.name)[1].state is SwitchState.STOP}
        return frozenset(here | {name for name, each in granted.items() if each.stopped})

    def accept_lost_state(self, lost: Collection[LostFile], who: str, why: str, wall_now: float) -> dict[Path, Path]:
        """Give up state files that cannot be read.

        :returns: the new name of each file.
        :raises StateError: it cannot be written down, or a file cannot be renamed; then it is still lost.
        """
        return self.journal.accept(lost, Acceptance(who=who, when=wall_now, why=why))

    def set_switches(self, scopes: Collection[str], state: SwitchState, who: str, why: str, wall_now: float) -> None:
        """Switch scopes; kept over restarts.

        :raises StateError: it cannot be written down; nothing changes.
        """
        switch = Switch(state=state, who=who, when=wall_now, why=why)
        lifted = [name for scope in scopes for name in no_longer_restored(self.journal.memory.switches, scope)]
        self.journal.write(Change(switches={**dict.fromkeys(lifted), **dict.fromkeys(scopes, switch)}))


def _with_grant(ledger: NodeLedger, grant: NodeGrant | None) -> NodeLedger:
    """The ledger with what a controller says of the accounts; without a grant there are none, and nobody is over."""
    if grant is None:
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
        for name, account in sorted(grant.accounts.items())
    )
    allocated = sum(account.allocated for account in accounts)
    memory = replace(ledger.memory, accounts=accounts, allocated=allocated, overdraft=grant.to_take_back)
    return replace(ledger, memory=memory)
