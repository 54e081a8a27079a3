"""The ledger of all nodes over all clusters: one tick takes what calls brought, computes, and sends what is due."""

import logging
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, replace
from typing import TypeVar

from fallow_core.controller import remembering
from fallow_core.controller.departing import Departing, departing_account
from fallow_core.controller.floors import Floors
from fallow_core.controller.keeping import Keeping
from fallow_core.controller.leaving import Leaving, to_leave
from fallow_core.controller.switches import known_scopes, scopes, strictest
from fallow_core.controller.taking_back import NOTHING_SEEN, Seen, TakingBack
from fallow_core.controller.watched import Watched
from fallow_core.controller.withheld import Withheld
from fallow_core.errors import StateError
from fallow_core.ledger.due_offers import DueOffer, GrowthDelays, due_rows
from fallow_core.ledger.node_ledger import NodeInputs, NodeLedger, node_ledger
from fallow_core.ledger.rows import Row, RowKey, at_least
from fallow_core.log import event
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.policy import (
    AccountPolicy,
    ExitMode,
    PublishingMode,
    PublishingPolicy,
    SwitchState,
)
from fallow_core.model.sample import NodeSample
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_core.plugins.session import ClusterSession, Remembered
from fallow_core.state.publish_journal import Content, Journal, Original, Switch
from fallow_hookspecs import RESOURCE_NAMES, Node, Resources

log = logging.getLogger("fallow.controller")

T = TypeVar("T")

FORGET_SECONDS = 600.0
"""A row that only the journal knows is forgotten when its cluster reports for so long without naming it."""
EARLY_SECONDS = 0.05
"""Ticks are not exact: what is due so much later is sent now, and need not wait for another tick."""


class Controller:
    """Owns all rows. Every method belongs to one thread. `clock` is monotonic, `wall_clock` seconds since 1970.

    `names` are all clusters that are configured, those included whose instance is not there yet. `departing` are those
    that were removed and still count.
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
        self.names = tuple(sorted(names))
        self.clusters: dict[str, ClusterSession] = {}
        self.publishing = publishing
        self.journal = journal
        self.ledgers: dict[str, NodeLedger] = {}
        self.due: dict[RowKey, DueOffer] = {}
        self.floors = Floors()
        self.keeping = Keeping()
        self.withheld = Withheld()
        self.journal_error = ""
        self.taking_back = TakingBack(take_back or TakeBackPolicy())
        self.departing = Departing()
        self.watched = Watched(policies)
        self._clock = clock
        self._wall_clock = wall_clock
        self._growth_delays: GrowthDelays = {}
        self._leaving: dict[str, Leaving] = {}
        self._told: dict[RowKey, Resources] = {}
        self._awaited = {key for key in journal.content.refreshed if key.cluster in names}
        self._unknown_until = clock() + publishing.in_flight_seconds if journal.lost else -math.inf

    def configure(self, policies: NodePolicies, publishing: PublishingPolicy, take_back: TakeBackPolicy) -> None:
        """Another policy from now on, for all nodes and clusters."""
        self.watched.policies, self.publishing, self.taking_back.policy = policies, publishing, take_back
        for cluster in self.clusters.values():
            cluster.configure(cluster.policy, publishing)

    def name(self, cluster: str) -> None:
        """A cluster is configured from now on; its instance may come later. One that was about to depart stays."""
        if cluster in self.names:
            return
        self.names = tuple(sorted({*self.names, cluster}))
        if not self.departing.end(cluster):
            self._awaited |= {key for key in self.journal.content.refreshed if key.cluster == cluster}

    def remove(self, cluster: str, mode: ExitMode) -> None:
        """A cluster is configured no longer. It gets the size to leave behind, and then no other; its rows count until
        its scheduler can promise nothing any more. One that was restored keeps its sizes.
        """
        self.names = tuple(name for name in self.names if name != cluster)
        self._leaving.pop(cluster, None)
        if cluster in self.clusters:
            mode = ExitMode.KEEP if self._restored(cluster) else mode
            self.departing.begin(cluster, Leaving(mode=mode, since=self._clock()))
        else:
            self._awaited = {key for key in self._awaited if key.cluster != cluster}

    def may_succeed(self, cluster: str) -> bool:
        """Whether an instance may be added now: also beside none, and else when the older one rests."""
        return cluster not in self.clusters or self.clusters[cluster].may_be_succeeded(self._clock())

    def add(self, cluster: ClusterSession) -> None:
        """Take a cluster in, with what an earlier process knew of its rows, or an earlier instance."""
        now, wall_now, content = self._clock(), self._wall_clock(), self.journal.content
        if cluster.name in self.clusters:
            old = self.clusters[cluster.name]
            old.settle(now)
            cluster.succeed(old, now)
        for key in self._awaited:
            if key.cluster == cluster.name:
                remembered = Remembered(
                    in_flight=content.in_flight.get(key, ()),
                    ended_at=now,
                    refreshed_at=now - max(0.0, wall_now - content.refreshed[key]),
                )
                cluster.remember(key, remembered)
        self.clusters[cluster.name] = cluster

    @property
    def rows(self) -> list[Row]:
        """All rows of all clusters."""
        return [row for cluster in self.clusters.values() for row in cluster.rows.values()]

    def awaited(self, node: str) -> tuple[RowKey, ...]:
        """The rows of a node that an earlier process knew, and that nobody has reported since."""
        return tuple(sorted(key for key in self._awaited if key.node == node))

    def original(self, key: RowKey) -> Original | None:
        """The size that a row had before it was first changed."""
        return self.journal.content.originals.get(key)

    def switch(self, scope: str) -> Switch:
        """The switch of a scope, such as a cluster."""
        return self.journal.content.switches.get(scope, Switch())

    def switch_at(self, cluster: str, node: str) -> tuple[str, Switch]:
        """The scope and the switch that count for a cluster on a node: the strictest of those that match."""
        return strictest(self.journal.content.switches, scopes(cluster, node, self.watched.pool(node)))

    def stopped(self, node: str) -> frozenset[str]:
        """The clusters of which nothing is to run on a node."""
        return frozenset(name for name in self.names if self.switch_at(name, node)[1].state is SwitchState.STOP)

    @property
    def scopes(self) -> list[str]:
        """All that can be switched, and what was once."""
        pools = [pool.name for pool in self.watched.policies.pools]
        known = known_scopes(self.names, [node.name for node in self.nodes], pools)
        return [*known, *sorted(self.journal.content.switches.keys() - set(known) - self.departing.names)]

    def set_switch(self, scope: str, state: SwitchState, who: str, why: str) -> None:
        """Switch a scope; it takes effect with the next tick and is kept over restarts.

        :raises StateError: it cannot be written down; nothing changes.
        """
        self._set_switches((scope,), state, who, why)
        self._leaving.pop(scope, None)

    def restore(self, who: str) -> None:
        """Send every row the size found first, as soon as there is a report, and then nothing more; see `left`.

        It holds for all clusters, and over restarts, until they are switched to something else.

        :raises StateError: it cannot be written down; nothing changes.
        """
        names = sorted({*self.names, *self.departing.names})
        self._set_switches(names, SwitchState.RESTORED, who, "fallow restore")
        self._leaving = dict.fromkeys(names, Leaving(mode=ExitMode.ORIGINAL, since=self._clock()))
        self.departing.hold()

    def leave(self, mode: ExitMode) -> None:
        """From now on send only the sizes to leave behind, until the frameworks have taken them; see `left`.

        A cluster that was restored keeps its sizes; one without rows was never sent any.
        """
        sizes = Leaving(mode=mode, since=self._clock())
        self._leaving = {
            name: self._leaving[name] if self._restored(name) else sizes
            for name, cluster in self.clusters.items()
            if cluster.rows and (name in self._leaving or not self._restored(name))
        }

    @property
    def left(self) -> bool:
        """Whether every size to leave behind was taken or refused."""
        return not self._leaving

    def tick(self, samples: Mapping[str, NodeSample], seen: Mapping[str, Seen] = NOTHING_SEEN) -> None:
        """One round: results of calls, the ledger of each node, what is due, new calls.

        `samples` and `seen` go by node: what is measured there, and what is known of the tasks.
        """
        now = self._clock()
        for cluster in self.clusters.values():
            cluster.settle(now)
        self._forget_what_is_over()
        if self.watched.look(self.nodes, samples, now, self._wall_clock()):
            self.taking_back.settle(now)
        due: list[DueOffer] = []
        limits, lasts = self._limits(now), self._offers_last()
        pending = {name: cluster.pending for name, cluster in self.clusters.items()}
        shapes = {name: cluster.task_shape() for name, cluster in self.clusters.items()}
        rows, awaited = _by_node((row.key, row) for row in self.rows), _by_node((key, key) for key in self._awaited)
        for node in self.nodes:
            of_node = seen.get(node.name, Seen())
            at_work = (at_least(row, of_node.requested.get(row.key)) for row in rows[node.name])
            inputs = NodeInputs(
                node=node.name,
                now=now,
                sample=self.watched.samples[node.name],
                watched_since=self.watched.since[node.name],
                rows=self.floors.step(node.name, at_work, of_node.floors_given_up),
                unsure=of_node.unsure,
                awaited=tuple(sorted(awaited[node.name])),
                accounts={name: self._account(cluster, node.name) for name, cluster in self.clusters.items()},
                pending=pending,
                shapes=shapes,
                policy=self.watched.policies_now[node.name].policy,
                publishing=self.publishing,
            )
            ledger = node_ledger(inputs)
            self.ledgers[node.name] = ledger
            found = due_rows(ledger, inputs.rows, self._growth_delays, limits, now, lasts)
            found = self.withheld.step(node.name, found, self.clusters)
            due += self.taking_back.step(found, ledger, inputs, self.clusters, of_node.tasks)
        due = self.keeping.step(due, self.clusters, [task for of_node in seen.values() for task in of_node.tasks])
        self.due = {d.key: d for d in due if self._is_published(d.key)}
        if self.publishing.mode is PublishingMode.OBSERVE:
            self._tell_due()
        # Last those that depart: what the others are sent now is not in the ledger yet.
        for cluster in sorted(self.clusters.values(), key=lambda cluster: cluster.name in self.departing.names):
            self._publish(cluster, now)
            cluster.start_reads(self.nodes, now)
        self._depart(seen, now)

    def _is_published(self, key: RowKey) -> bool:
        """Whether the ledger's sizes are for this row, or only the end of a take-back."""
        others = key.cluster in self.departing.names or self._restored(key.cluster)
        return not others or key in self.taking_back.cancelling

    def _depart(self, seen: Mapping[str, Seen], now: float) -> None:
        """Let those go that were removed and can promise nothing any more."""
        lends = self.publishing.mode is PublishingMode.ENFORCE
        others = {c.started(key) for name, c in self.clusters.items() if name in self.names for key in c.rows} - {""}
        for name in self.departing.names - self._leaving.keys():
            cluster = self.clusters[name]
            here = [row for row in cluster.rows.values() if row.key.node in self.ledgers]
            rows = [at_least(row, seen.get(row.key.node, Seen()).requested.get(row.key)) for row in here]
            is_known = cluster.reported_at is not None and not any(key.cluster == name for key in self._awaited)
            why = self.departing.look(cluster, rows, others, now, is_known=is_known, lends=lends)
            if not (why or cluster.publishing or self._to_depart(cluster)):
                self.departing.end(name)
                del self.clusters[name]
                self._awaited = {key for key in self._awaited if key.cluster != name}
                self.taking_back.forget(name)
                event(log, logging.INFO, "cluster_removed", cluster=name)

    def _restored(self, cluster: str) -> bool:
        return self.switch(cluster).state is SwitchState.RESTORED

    def _set_switches(self, scopes: Collection[str], state: SwitchState, who: str, why: str) -> None:
        content = self.journal.content
        switch = Switch(state=state, who=who, when=self._wall_clock(), why=why)
        self.journal.write(replace(content, switches={**content.switches, **dict.fromkeys(scopes, switch)}))
        for scope in scopes:
            event(log, logging.INFO, "switched", scope=scope, state=state, who=who, why=why)

    def _limits(self, now: float) -> PublishingPolicy:
        """After the journal was lost nothing grows before whatever was in flight has arrived."""
        if now >= self._unknown_until:
            return self.publishing
        hold = max(self.publishing.growth_delay_seconds, self.publishing.in_flight_seconds)
        return replace(self.publishing, growth_delay_seconds=hold)

    def _account(self, cluster: ClusterSession, node: str) -> AccountPolicy:
        """The policy of a cluster on a node now."""
        if cluster.name in self.departing.names:
            return departing_account(cluster.policy)
        scope, switch = self.switch_at(cluster.name, node)
        return replace(cluster.policy, switch=switch.state, switched="" if scope == cluster.name else scope)

    def _offers_last(self) -> dict[str, int | None]:
        return {
            name: cluster.capabilities.offer_lasts_seconds if cluster.capabilities is not None else None
            for name, cluster in self.clusters.items()
        }

    def _tell_due(self) -> None:
        """Log what is not sent, once for each change beyond the dead band."""
        for d in self.due.values():
            told = self._told.get(d.key)
            if told is None or self._beyond_dead_band(told, d.size):
                self._told[d.key] = d.size
                names = {"cluster": d.key.cluster, "node": d.key.framework_node}
                event(log, logging.INFO, "offer_not_sent", mode="observe", **names, **asdict(d.size), why=d.why)

    def _beyond_dead_band(self, told: Resources, size: Resources) -> bool:
        changes = ((told.amount(name), size.amount(name)) for name in RESOURCE_NAMES)
        return any(abs(new - old) * 100 > old * self.publishing.dead_band_percent for old, new in changes)

    def _publish(self, cluster: ClusterSession, now: float) -> None:
        if cluster.reported_at is None:  # an instance that has just succeeded another one knows no node yet
            return
        due = [d for d in self.due.values() if d.key.cluster == cluster.name]
        if self.publishing.mode is PublishingMode.OBSERVE and cluster.name not in self._leaving:
            due = [d for d in due if d.key in self.taking_back.cancelling]
        if cluster.name in self._leaving:
            due = self._to_leave(cluster)
        elif cluster.name in self.departing.names:
            due = due or self._to_depart(cluster)
        urgent = cluster.name in self._leaving or any(d.urgent for d in due)
        if due and cluster.may_publish(now) and self._is_time(cluster, urgent, now):
            self._send(cluster, due, now)

    def _to_leave(self, cluster: ClusterSession) -> list[DueOffer]:
        if cluster.publishing or cluster.reported_at is None:
            return []
        due = to_leave(cluster.rows.values(), self.journal.content.originals, self._leaving[cluster.name])
        if not due:
            del self._leaving[cluster.name]
        return due

    def _to_depart(self, cluster: ClusterSession) -> list[DueOffer]:
        if cluster.publishing or self.publishing.mode is PublishingMode.OBSERVE:
            return []
        rows = {row.key: row for row in self.rows}
        return self.departing.due(cluster, rows, self.journal.content.originals, self.ledgers)

    def _is_time(self, cluster: ClusterSession, urgent: bool, now: float) -> bool:
        limits = self.publishing
        pause = limits.urgent_interval_seconds if urgent else limits.publish_interval_seconds
        return cluster.published_at is None or now - cluster.published_at >= pause - EARLY_SECONDS

    def _send(self, cluster: ClusterSession, due: list[DueOffer], now: float) -> None:
        """Write down what is about to be in flight, then send it. What cannot be written down may only shrink."""
        sendings = [remembering.Sending(row=cluster.rows[d.key], due=d, started=cluster.started(d.key)) for d in due]
        if not self._write(remembering.with_sizes(self.journal.content, sendings, self._wall_clock())):
            due = [s.due for s in sendings if self.original(s.row.key) is not None and _shrinks(s.row, s.due.size)]
        if due:
            cluster.publish(self.nodes, due, now)

    def _forget_what_is_over(self) -> None:
        silent = {name for name, cluster in self.clusters.items() if cluster.reported_for_seconds >= FORGET_SECONDS}
        for name in silent:
            self.clusters[name].forget(self.clusters[name].inherited)
        rows = self.rows
        known = {row.key for row in rows}
        self._awaited = {key for key in self._awaited - known if key.cluster not in silent}
        self._growth_delays = {key: hold for key, hold in self._growth_delays.items() if key[0] in known}
        self._told = {key: size for key, size in self._told.items() if key in known}
        content = remembering.without_what_is_over(self.journal.content, rows, self._awaited, self.names)
        if content != self.journal.content:
            self._write(content)

    def _write(self, content: Content) -> bool:
        try:
            self.journal.write(content)
        except StateError as error:
            self.journal_error = str(error)
            event(log, logging.ERROR, "journal_failed", reason=error)
            return False
        self.journal_error = ""
        return True


def _by_node(keyed: Iterable[tuple[RowKey, T]]) -> defaultdict[str, list[T]]:
    """What belongs to the rows of each node, so that a round looks at each row once, however many nodes there are."""
    found: defaultdict[str, list[T]] = defaultdict(list)
    for key, value in keyed:
        found[key.node].append(value)
    return found


def _shrinks(row: Row, size: Resources) -> bool:
    newest = [(row.newest(name), size.amount(name)) for name in RESOURCE_NAMES]
    return all(old is not None and old >= new for old, new in newest)
