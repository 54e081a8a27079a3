"""Fallow in the simulated day: its rows and memory, driven as the controller does, without plugins and files."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.benchmarks.day.frameworks import MASTER, NOTHING, UNIT, NodeManager

from fallow_core.ledger import rows as ledger_rows
from fallow_core.ledger.due_offers import DueOffer, GrowthDelays, due_rows
from fallow_core.ledger.node_ledger import NodeInputs, NodeLedger, node_ledger
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.ledger.take_back import Situation, TakeBacks, step
from fallow_core.ledger.take_back_offers import with_take_backs
from fallow_core.model.policy import AccountPolicy, NodePolicy, PublishingMode, PublishingPolicy
from fallow_core.model.sample import NodeSample
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_hookspecs import NodeState, Pending, ReportRow, Resources

LASTS_SECONDS = 2**31 - 1


def shown_to_ledger(row: Row) -> Row:
    """What the ledger gets to see of a row: all of it, unless that is what is tried out."""
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What Fallow's agents see on one node: its sample, and of each row the framework's node with its tasks."""

    sample: NodeSample
    managers: Mapping[RowKey, NodeManager]


@dataclass(slots=True, kw_only=True)
class Fallow:
    """What it knows. `journal` is all that outlives it: the rows, and the sizes that each had in flight."""

    accounts: Mapping[str, AccountPolicy]
    floors: Mapping[str, Resources]
    publishing: PublishingPolicy = field(default_factory=lambda: PublishingPolicy(mode=PublishingMode.ENFORCE))
    taking_back: TakeBackPolicy = field(default_factory=lambda: TakeBackPolicy(mode=PublishingMode.ENFORCE))
    policy: NodePolicy = field(default_factory=NodePolicy)
    rows: dict[RowKey, Row] = field(default_factory=dict)
    journal: dict[RowKey, tuple[Resources, ...]] = field(default_factory=dict)
    pending: dict[str, Pending | None] = field(default_factory=dict)
    takes: TakeBacks = field(default_factory=TakeBacks)
    ledgers: dict[str, NodeLedger] = field(default_factory=dict)
    take_backs: int = 0
    _growth_delays: GrowthDelays = field(default_factory=dict)
    _before: dict[RowKey, tuple[Resources, ...]] = field(default_factory=dict)

    def restart(self) -> None:
        """It dies and starts anew: all that it knows is its journal."""
        self.rows, self.pending, self.ledgers = {}, {}, {}
        self.takes, self._growth_delays, self._before = TakeBacks(), {}, dict(self.journal)

    def observe(self, key: RowKey, size: Resources, allocated: Resources, asked_at: float, now: float) -> None:
        """A report about one row."""
        report = ReportRow(
            node=key.node,
            framework_node=key.framework_node,
            age_seconds=now - asked_at,
            state=NodeState.RUNNING,
            allocated=allocated,
            in_force=size,
            unit=UNIT,
            floor=self.floors[key.cluster],
        )
        before = self.rows.get(key)
        row = ledger_rows.observed(before, key, report, now, self.publishing.in_flight_seconds)
        if before is None:
            row = ledger_rows.resumed(row, self._before.get(key, ()), now)
        self.rows[key] = row
        self.journal[key] = tuple(sent.size for sent in row.in_flight)

    def due(self, node: str, seen: Seen, now: float) -> list[DueOffer]:
        """What is due on a node now."""
        rows = tuple(
            ledger_rows.at_least(shown_to_ledger(self.rows[key]), manager.allocated)
            for key, manager in seen.managers.items()
            if key in self.rows
        )
        inputs = NodeInputs(
            node=node,
            now=now,
            sample=seen.sample,
            rows=rows,
            awaited=tuple(key for key in self._before if key.node == node and key not in self.rows),
            accounts=self.accounts,
            pending=self.pending,
            policy=self.policy,
            publishing=self.publishing,
        )
        ledger = self.ledgers[node] = node_ledger(inputs)
        lasts = dict.fromkeys(self.accounts, LASTS_SECONDS)
        due = due_rows(ledger, rows, self._growth_delays, self.publishing, now, lasts)
        situations = {row.key: self._situation(row, seen, now) for row in rows}
        self.takes, decisions = step(self.takes, ledger.memory, situations, self.taking_back, now)
        self.take_backs += sum(d.start for d in decisions.values())
        return with_take_backs(due, rows, {"memory": decisions}, now)

    def _situation(self, row: Row, seen: Seen, now: float) -> Situation:
        cluster, tasks = row.key.cluster, seen.managers[row.key].tasks
        fresh = now - row.measured_at < self.publishing.degrade_after_seconds
        return Situation(
            allowed=True,
            fresh=fresh,
            masters=MASTER.memory_bytes * sum(t.master for t in tasks),
            largest=max((t.size.memory_bytes for t in tasks), default=0),
            cluster_allocated=sum(r.allocated.memory_bytes for r in self.rows.values() if r.key.cluster == cluster),
            arrived_sent_at=row.arrived_sent_at,
        )

    def believed(self, node: str, seen: Seen) -> Resources:
        """The sum of all beliefs on a node, by what is truly known, whatever rule of the ledger is switched off."""
        own = [ledger_rows.at_least(self.rows[k], m.allocated) for k, m in seen.managers.items() if k in self.rows]
        total = NOTHING
        for row in own:
            total = Resources(total.cpu_milli + row.belief("cpu"), total.memory_bytes + row.belief("memory"))
        return total

    def send(self, due: tuple[DueOffer, ...], now: float) -> None:
        """A call with these sizes begins."""
        for d in due:
            self.rows[d.key] = ledger_rows.sent(self.rows[d.key], d.size, now)
            self.journal[d.key] = tuple(sent.size for sent in self.rows[d.key].in_flight)

    def ended(self, due: tuple[DueOffer, ...], sent_at: float, *, answered: bool, now: float) -> None:
        """A call has ended."""
        for d in due:
            row = self.rows.get(d.key)
            if row is not None:
                end = ledger_rows.answered(row, sent_at, d.size, now) if answered else None
                self.rows[d.key] = end or ledger_rows.unanswered(row, sent_at, now)
