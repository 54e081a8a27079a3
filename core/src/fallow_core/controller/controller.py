"""The ledger of all nodes over all clusters: one tick takes what calls brought, computes, and sends what is due."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from fallow_core.controller.cluster import Cluster, Remembered
from fallow_core.controller.journal import Journal, Original, Switch
from fallow_core.errors import StateError
from fallow_core.ledger.node_ledger import NodeInputs, NodeLedger, node_ledger
from fallow_core.ledger.publishing import Due, Holds, due_rows
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.log import event
from fallow_core.model.policy import ExitMode, NodePolicy, PublishingMode, PublishingPolicy, SwitchState
from fallow_core.model.sample import NodeSample
from fallow_hookspecs import RESOURCE_NAMES, Node, NodeState, Resources

log = logging.getLogger("fallow.controller")


class Controller:
    """Owns all rows. Every method belongs to one thread. `clock` is monotonic, `wall_clock` seconds since 1970."""

    def __init__(
        self,
        nodes: tuple[Node, ...],
        node_policy: NodePolicy,
        publishing: PublishingPolicy,
        journal: Journal,
        *,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
    ) -> None:
        self.nodes = nodes
        self.clusters: dict[str, Cluster] = {}
        self.publishing = publishing
        self.journal = journal
        self.ledgers: dict[str, NodeLedger] = {}
        self.due: dict[RowKey, Due] = {}
        self.journal_error = ""
        self._node_policy = node_policy
        self._clock = clock
        self._wall_clock = wall_clock
        self._holds: Holds = {}
        self._leaving: dict[str, ExitMode] = {}
        self._told: dict[RowKey, Resources] = {}

    def add(self, cluster: Cluster) -> None:
        """Take a cluster in, with what an earlier process knew of its rows."""
        now, wall_now = self._clock(), self._wall_clock()
        for key in self.journal.in_flight.keys() | self.journal.refreshed.keys():
            if key.cluster == cluster.name:
                refreshed = self.journal.refreshed.get(key)
                remembered = Remembered(
                    in_flight=self.journal.in_flight.get(key, ()),
                    refreshed_at=None if refreshed is None else now - max(0.0, wall_now - refreshed),
                )
                cluster.remember(key, remembered)
        self.clusters[cluster.name] = cluster

    @property
    def rows(self) -> list[Row]:
        """All rows of all clusters."""
        return [row for cluster in self.clusters.values() for row in cluster.rows.values()]

    def switch(self, cluster: str) -> Switch:
        """The switch of a cluster."""
        return self.journal.switches.get(cluster, Switch())

    def set_switch(self, cluster: str, state: SwitchState, who: str, why: str) -> None:
        """Switch a cluster; it takes effect with the next tick and is kept over restarts.

        :raises StateError: it cannot be written down.
        """
        self.journal.switches[cluster] = Switch(state=state, who=who, when=self._wall_clock(), why=why)
        self._leaving.pop(cluster, None)
        self.journal.save()
        event(log, logging.INFO, "switched", cluster=cluster, state=state, who=who, why=why)

    def tick(self, samples: Mapping[str, NodeSample]) -> None:
        """One round: results of calls, the ledger of each node, what is due, new calls."""
        now = self._clock()
        for cluster in self.clusters.values():
            cluster.settle(now)
        due: list[Due] = []
        for node in self.nodes:
            inputs = self._inputs(node, samples.get(node.name, NodeSample()), now)
            ledger = node_ledger(inputs)
            self.ledgers[node.name] = ledger
            due += due_rows(ledger, inputs.rows, self._holds, self.publishing, now, self._offers_last())
        self._note_due(due)
        for cluster in self.clusters.values():
            self._publish(cluster, [d for d in due if d.key.cluster == cluster.name], now)
            cluster.start_reads(self.nodes, now)
        self._tidy()

    def leave(self, mode: ExitMode) -> None:
        """From now on send only the sizes to leave behind, until the frameworks have taken them; see `left`."""
        self._leaving = dict.fromkeys(self.clusters, mode)

    @property
    def left(self) -> bool:
        """Whether every size to leave behind was taken."""
        return not self._leaving

    def original(self, key: RowKey) -> Original | None:
        """The size that a row had before it was first changed."""
        return self.journal.originals.get(key)

    def _to_leave(self, cluster: Cluster, mode: ExitMode) -> list[Due]:
        """The rows whose size to leave behind was not sent, or did not arrive."""
        due = []
        for row in cluster.rows.values():
            size = self._size_to_leave(row, mode)
            newest = row.in_flight[-1].size if row.in_flight else row.in_force
            if row.state is NodeState.RUNNING and size is not None and (size != newest or row.resend):
                due.append(Due(key=row.key, size=size, urgent=True, why=f"onExit or restore: {mode}"))
        return due

    def _size_to_leave(self, row: Row, mode: ExitMode) -> Resources | None:
        original = self.original(row.key)
        if mode is ExitMode.FLOOR and row.in_force is not None:
            return _by_resource(min, row.floor, row.in_force)
        if mode is ExitMode.ORIGINAL and original is not None:
            return _by_resource(max, row.floor, original.size)
        return None

    def _inputs(self, node: Node, sample: NodeSample, now: float) -> NodeInputs:
        return NodeInputs(
            node=node.name,
            now=now,
            sample=sample,
            rows=tuple(row for row in self.rows if row.key.node == node.name),
            accounts={
                name: replace(cluster.policy, switch=self.switch(name).state) for name, cluster in self.clusters.items()
            },
            pending={name: cluster.pending for name, cluster in self.clusters.items()},
            policy=self._node_policy,
            publishing=self.publishing,
        )

    def _offers_last(self) -> dict[str, int | None]:
        return {
            name: cluster.capabilities.offer_lasts_seconds if cluster.capabilities is not None else None
            for name, cluster in self.clusters.items()
        }

    def _note_due(self, due: list[Due]) -> None:
        """Keep what is due for showing; in observe mode tell it, once for each change beyond the band."""
        self.due = {d.key: d for d in due}
        if self.publishing.mode is PublishingMode.ENFORCE:
            return
        for d in due:
            told = self._told.get(d.key)
            if told is None or self._beyond_band(told, d.size):
                self._told[d.key] = d.size
                size = {"cpu_milli": d.size.cpu_milli, "memory_bytes": d.size.memory_bytes}
                node = d.key.framework_node
                event(log, logging.INFO, "offer_not_sent", mode="observe", node=node, **size, why=d.why)

    def _beyond_band(self, told: Resources, size: Resources) -> bool:
        changes = ((told.amount(name), size.amount(name)) for name in RESOURCE_NAMES)
        return any(abs(new - old) * 100 > old * self.publishing.band_percent for old, new in changes)

    def _publish(self, cluster: Cluster, due: list[Due], now: float) -> None:
        if not cluster.may_publish(now):
            return
        if cluster.name in self._leaving:
            if leaving := self._to_leave(cluster, self._leaving[cluster.name]):
                self._send(cluster, leaving, now)
            else:
                del self._leaving[cluster.name]
        elif due and self._may_lend(cluster) and self._is_time(cluster, any(d.urgent for d in due), now):
            self._send(cluster, due, now)

    def _may_lend(self, cluster: Cluster) -> bool:
        enforced = self.publishing.mode is PublishingMode.ENFORCE
        return enforced and self.switch(cluster.name).state is not SwitchState.RESTORED

    def _is_time(self, cluster: Cluster, urgent: bool, now: float) -> bool:
        limits = self.publishing
        pause = limits.urgent_interval_seconds if urgent else limits.publish_interval_seconds
        return cluster.published_at is None or now - cluster.published_at >= pause

    def _send(self, cluster: Cluster, due: list[Due], now: float) -> None:
        """Write down what is about to be in flight, then send it. What cannot be written down may only shrink."""
        on_disk = set(self.journal.originals)
        for d in due:
            row = cluster.rows[d.key]
            self._note_original(row, cluster.started(d.key))
            self.journal.in_flight[d.key] = (*(sent.size for sent in row.in_flight), d.size)
            self.journal.refreshed[d.key] = self._wall_clock()
        if not self._save():
            due = [d for d in due if d.key in on_disk and _shrinks(cluster.rows[d.key], d.size)]
        if due:
            cluster.publish(self.nodes, due, now)

    def _note_original(self, row: Row, started: str) -> None:
        """Remember the size found first; that of a daemon that was started anew once it is seen in force."""
        known = self.journal.originals.get(row.key)
        if row.in_force is None:
            return
        if known is None or (started not in ("", known.started) and row.in_force == row.foreign):
            self.journal.originals[row.key] = Original(size=row.in_force, started=started)

    def _tidy(self) -> None:
        """Let the journal and the growth holds forget what is over."""
        rows = self.rows
        over = [row.key for row in rows if not row.in_flight and row.key in self.journal.in_flight]
        if over:
            for key in over:
                del self.journal.in_flight[key]
            self._save()
        known = {row.key for row in rows}
        self._holds = {key: hold for key, hold in self._holds.items() if key[0] in known}

    def _save(self) -> bool:
        try:
            self.journal.save()
        except StateError as error:
            self.journal_error = str(error)
            event(log, logging.ERROR, "journal_failed", reason=error)
            return False
        self.journal_error = ""
        return True


def _by_resource(choose: Callable[[int, int], int], one: Resources, other: Resources) -> Resources:
    return Resources(
        cpu_milli=choose(one.cpu_milli, other.cpu_milli), memory_bytes=choose(one.memory_bytes, other.memory_bytes)
    )


def _shrinks(row: Row, size: Resources) -> bool:
    return all(
        newest is not None and newest >= size.amount(name)
        for name, newest in ((name, row.newest(name)) for name in RESOURCE_NAMES)
    )
