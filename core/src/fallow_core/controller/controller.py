"""Runs the rounds: takes what calls brought, lets the planner decide, writes down what is to survive, sends what is
due.
"""

import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from fallow_core.errors import StateError
from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.node_ledger import NodeLedger
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.log import event, write
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.policy import ExitMode, PublishingPolicy, SwitchState
from fallow_core.model.refused_inputs import RefusedInputs
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_core.planner import state as planner
from fallow_core.planner.memory import Acceptance, Change, Original
from fallow_core.planner.observations import NodeObservation, Observations
from fallow_core.planner.round import Round, plan_round
from fallow_core.planner.state import PlannerState
from fallow_core.planner.switches import Switch, no_longer_restored, restored
from fallow_core.planner.take_back import adopt
from fallow_core.plugins.session import ClusterSession, Remembered
from fallow_core.state.lost_files import LostFile
from fallow_core.state.publish_journal import Journal
from fallow_hookspecs import Node

log = logging.getLogger("fallow.controller")

UNKNOWN = "switches and the sizes found first cannot be read"


class Controller:
    """Owns the sessions of all clusters and the planner's state. Every method belongs to one thread.

    `clock` is monotonic, `wall_clock` seconds since 1970. `names` are all clusters that are configured, those included
    whose session is not there yet.
    """

    def __init__(
        self,
        nodes: tuple[Node, ...],
        names: Collection[str],
        policies: NodePolicies,
        publishing: PublishingPolicy,
        journal: Journal,
        take_back: TakeBackPolicy | None = None,
        *,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
    ) -> None:
        self.nodes = nodes
        self.clusters: dict[str, ClusterSession] = {}
        self.journal = journal
        self.journal_error = ""
        self._clock = clock
        self._wall_clock = wall_clock
        self.state = PlannerState(
            policies=policies,
            publishing=publishing,
            take_back=take_back or TakeBackPolicy(),
            names=frozenset(names),
            memory=journal.memory,
            awaited={key for key in journal.memory.known if key.cluster in names},
            unknown_until=clock() + publishing.in_flight_seconds if journal.lost or journal.cut_off else -math.inf,
            memory_unknown=UNKNOWN if journal.lost else "",
        )

    def configure(self, policies: NodePolicies, publishing: PublishingPolicy, take_back: TakeBackPolicy) -> None:
        """Another policy from now on, for all nodes and clusters."""
        self.state.policies, self.state.publishing, self.state.take_back = policies, publishing, take_back
        self.state.look_at_all()
        for cluster in self.clusters.values():
            cluster.configure(cluster.policy, publishing)

    def policy_changed(self) -> None:
        """A changed policy alone may cause overdraft, so for a while overdraft only drains."""
        self.state.settle(self._clock())

    def add_name(self, cluster: str) -> None:
        """A cluster is configured from now on; its session may come later. One that was being removed stays."""
        planner.add_cluster(self.state, cluster)

    def remove(self, cluster: str, mode: ExitMode) -> None:
        """A cluster is no longer configured. Its session goes on until its scheduler can promise nothing any more."""
        planner.remove_cluster(self.state, cluster, mode, self._clock())

    def add(self, cluster: ClusterSession) -> None:
        """Take a session in, with what an earlier process knew of its rows, or an earlier session."""
        now, wall_now, memory = self._clock(), self._wall_clock(), self.state.memory
        if cluster.name in self.clusters:
            old = self.clusters[cluster.name]
            old.settle(now)
            cluster.succeed(old, now)
        for key in self.state.awaited:
            if key.cluster == cluster.name:
                remembered = Remembered(
                    in_flight=memory.in_flight.get(key, ()),
                    ended_at=now,
                    refreshed_at=now - max(0.0, wall_now - memory.refreshed[key]) if key in memory.refreshed else None,
                )
                cluster.remember(key, remembered)
        self.clusters[cluster.name] = cluster

    @property
    def names(self) -> tuple[str, ...]:
        """The clusters that are configured."""
        return tuple(sorted(self.state.names))

    @property
    def ledgers(self) -> dict[str, NodeLedger]:
        """The ledger of each node that was computed."""
        return {name: node.ledger for name, node in self.state.nodes.items() if node.ledger is not None}

    @property
    def rows(self) -> list[Row]:
        """All rows of all clusters."""
        return [row for cluster in self.clusters.values() for row in cluster.rows.values()]

    @property
    def refused(self) -> RefusedInputs:
        """Readings and labels of nodes that cannot be true."""
        return self.state.refused

    def awaited(self, node: str) -> tuple[RowKey, ...]:
        """The rows of a node that an earlier process knew, and that nobody has reported since."""
        return tuple(sorted(key for key in self.state.awaited if key.node == node))

    def original(self, key: RowKey) -> Original | None:
        """The size that a row had before it was first changed; `None` if it was not, or nobody knows."""
        return self.state.originals.get(key)

    def budgets(self, node: str) -> Mapping[str, int]:
        """How many bytes of each cluster's tasks may be terminated for overdraft on a node."""
        found = self.state.nodes.get(node)
        return {} if found is None else found.budgets

    def switch(self, scope: str) -> Switch:
        """The switch of a scope, such as a cluster."""
        return self.state.memory.switches.get(scope, Switch())

    @property
    def restored(self) -> frozenset[str]:
        """The clusters that were restored: nothing of them is changed."""
        return restored(self.state.memory.switches)

    @property
    def scopes(self) -> list[str]:
        """All that can be switched, and what was once."""
        return self.state.scopes(node.name for node in self.nodes)

    def set_switch(self, scope: str, state: SwitchState, who: str, why: str) -> None:
        """Switch a scope; it takes effect with the next round and is kept over restarts.

        :raises StateError: it cannot be written down; nothing changes.
        """
        lifted = no_longer_restored(self.state.memory.switches, scope)
        self._set_switches((scope,), state, who, why, lifted)
        for name in (scope, *lifted):
            self.state.left_behind.pop(name, None)

    def restore(self, who: str) -> None:
        """Send every row the size found first, as soon as there is a report, and then nothing more; see `left`.

        It holds for all clusters, and over restarts, until they are switched to something else.

        :raises StateError: it cannot be written down; nothing changes.
        """
        names = sorted({*self.state.names, *self.state.removed})
        self._set_switches(names, SwitchState.RESTORED, who, "fallow restore")
        planner.restore(self.state, self._clock())

    def leave(self, mode: ExitMode) -> None:
        """From now on send only the sizes to leave behind, until the frameworks have taken them; see `left`.

        A cluster without rows was never sent any.
        """
        names = [name for name, cluster in self.clusters.items() if cluster.rows]
        planner.leave_behind(self.state, names, mode, self._clock())

    @property
    def left(self) -> bool:
        """Whether every size to leave behind was taken or refused."""
        return not self.state.left_behind

    def adopt(self, keys: Iterable[RowKey]) -> list[RowKey]:
        """Allow take-backs of what was allocated on these rows when Fallow first saw them."""
        return adopt(self.state, sorted(keys))

    def forget(self, cluster: str) -> list[RowKey]:
        """Let a removed cluster go at once; of another one, give up the rows that nobody has reported yet, and those
        that have neither a daemon nor a task on their host.

        Nothing that its scheduler may still promise there is believed any longer. Returns the rows.
        """
        forgotten = {key for key in self.state.awaited if key.cluster == cluster}
        if cluster in self.state.removed:
            forgotten |= self.clusters.pop(cluster).rows.keys()
            planner.forget_cluster(self.state, cluster)
        else:
            self.state.awaited -= forgotten
            self.state.unwritten |= forgotten
            if cluster in self.clusters:
                forgotten |= set(self.clusters[cluster].forget_unreported())
                forgotten |= set(self.clusters[cluster].give_up_unseen())
        self.state.look_at_all()
        return sorted(forgotten)

    def accept_lost_state(self, lost: Collection[LostFile], who: str, why: str) -> dict[Path, Path]:
        """Give up state files that cannot be read; those of the journal then keep no size from growing.

        :returns: the new name of each file.
        :raises StateError: it cannot be written down, or a file cannot be renamed; then it is still lost.
        """
        names = self.journal.accept(lost, Acceptance(who=who, when=self._wall_clock(), why=why))
        if not self.journal.lost:
            self.state.memory_unknown = ""
        self.state.look_at_all()
        return names

    def set_nodes(self, nodes: tuple[Node, ...]) -> None:
        """Lend these nodes from now on, and no others."""
        for name in {node.name for node in self.nodes} - {node.name for node in nodes}:
            planner.forget_node(self.state, name)
        self.nodes = nodes

    def tick(self, nodes: Mapping[str, NodeObservation]) -> None:
        """One round: results of calls, the planner's decisions, new calls. `nodes`: those with something new."""
        now = self._clock()
        for cluster in self.clusters.values():
            cluster.settle(now)
        clusters = {name: cluster.observation(now) for name, cluster in self.clusters.items()}
        news = Observations(now=now, wall_now=self._wall_clock(), nodes=nodes, clusters=clusters)
        decided = plan_round(self.state, news)
        write(decided.events)
        for name, due in self._recorded(decided).items():
            if due:
                self.clusters[name].publish(self.nodes, due, now)
        for name in decided.removed:
            del self.clusters[name]
        for cluster in self.clusters.values():
            cluster.start_reads(self.nodes, now)

    def _recorded(self, decided: Round) -> Mapping[str, Sequence[DueOffer]]:
        """What may be sent, once the round is written down. What cannot be written down may only shrink."""
        if decided.remember:
            try:
                self.journal.write(decided.remember)
            except StateError as error:
                self.journal_error = str(error)
                event(log, logging.ERROR, "journal_failed", reason=error)
                return decided.send_unrecorded
            self.journal_error = ""
        self.state.unwritten.clear()
        return decided.send

    def _set_switches(
        self, scopes: Collection[str], state: SwitchState, who: str, why: str, lifted: Iterable[str] = ()
    ) -> None:
        switch = Switch(state=state, who=who, when=self._wall_clock(), why=why)
        self.journal.write(Change(switches={**dict.fromkeys(lifted), **dict.fromkeys(scopes, switch)}))
        self.state.look_at_all()
        for scope in scopes:
            event(log, logging.INFO, "switched", scope=scope, state=state, who=who, why=why)
