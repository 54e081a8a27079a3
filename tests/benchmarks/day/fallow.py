"""Fallow in the simulated day: its planner and its rows, without plugins and files."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.benchmarks.day.calls import Line
from tests.benchmarks.day.frameworks import MASTER, NOTHING, UNIT, NodeManager

from fallow_core.ledger import rows as ledger_rows
from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.node_ledger import NodeLedger
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.policy import AccountPolicy, PublishingMode, PublishingPolicy
from fallow_core.model.sample import NodeSample
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_core.planner.memory import Memory
from fallow_core.planner.observations import ClusterObservation, NodeObservation, Observations, TaskSums
from fallow_core.planner.round import plan_round
from fallow_core.planner.state import PlannerState
from fallow_hookspecs import Capabilities, NodeState, Pending, ReportRow, ResourceCapability, Resources

UNCHARGED = ResourceCapability(honoured=True, takes_back=True, take_back_charged=False)
CAN = Capabilities(cpu=UNCHARGED, memory=UNCHARGED, offer_lasts_seconds=2**31 - 1)


def shown_to_planner(row: Row) -> Row:
    """What the planner gets to see of a row: all of it, unless that is what is tried out."""
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What Fallow's agents see on one node: its sample, and of each row the framework's node with its tasks."""

    sample: NodeSample
    managers: Mapping[RowKey, NodeManager]


@dataclass(slots=True, kw_only=True)
class Fallow:
    """What it knows. `memory` is all that outlives it."""

    accounts: Mapping[str, AccountPolicy]
    floors: Mapping[str, Resources]
    publishing: PublishingPolicy = field(default_factory=lambda: PublishingPolicy(mode=PublishingMode.ENFORCE))
    taking_back: TakeBackPolicy = field(default_factory=lambda: TakeBackPolicy(mode=PublishingMode.ENFORCE))
    policies: NodePolicies = field(default_factory=NodePolicies)
    memory: Memory = field(default_factory=Memory)
    rows: dict[RowKey, Row] = field(default_factory=dict)
    pending: dict[str, Pending | None] = field(default_factory=dict)
    take_backs: int = 0
    _changed: set[RowKey] = field(default_factory=set)
    _state: PlannerState | None = None

    @property
    def state(self) -> PlannerState:
        """What the planner remembers in this life."""
        if self._state is None:
            self._state = PlannerState(
                policies=self.policies,
                publishing=self.publishing,
                take_back=self.taking_back,
                names=frozenset(self.accounts),
                memory=self.memory,
                awaited=set(self.memory.refreshed),
            )
        return self._state

    @property
    def ledgers(self) -> dict[str, NodeLedger]:
        """The ledger of each node."""
        return {name: node.ledger for name, node in self.state.nodes.items() if node.ledger is not None}

    def restart(self) -> None:
        """It dies and starts anew: all that it knows is its memory."""
        self.rows, self.pending, self._changed, self._state = {}, {}, set(), None

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
            row = ledger_rows.resumed(row, self.memory.in_flight.get(key, ()), now)
        self._put(row)

    def tick(
        self, seen: Mapping[str, Seen], lines: Mapping[str, Line], now: float
    ) -> Mapping[str, tuple[DueOffer, ...]]:
        """One round: what is sent to each cluster now."""
        nodes = {
            name: NodeObservation(
                sample=node.sample, tasks={key: _tasks(m) for key, m in node.managers.items() if key in self.rows}
            )
            for name, node in seen.items()
        }
        clusters = {name: self._cluster(name, line) for name, line in lines.items()}
        self._changed = set()
        found = plan_round(self.state, Observations(now=now, wall_now=now, nodes=nodes, clusters=clusters))
        self.memory.apply(found.remember)
        self.state.unwritten.clear()
        self.take_backs += sum(event.name == "take_back_starts" for event in found.events)
        return found.send

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
            self._put(ledger_rows.sent(self.rows[d.key], d.size, now))

    def ended(self, due: tuple[DueOffer, ...], sent_at: float, *, answered: bool, now: float) -> None:
        """A call has ended."""
        for d in due:
            row = self.rows.get(d.key)
            if row is not None:
                end = ledger_rows.answered(row, sent_at, d.size, now) if answered else None
                self._put(end or ledger_rows.unanswered(row, sent_at, now))

    def _put(self, row: Row) -> None:
        self.rows[row.key] = row
        self._changed.add(row.key)

    def _cluster(self, name: str, line: Line) -> ClusterObservation:
        return ClusterObservation(
            policy=self.accounts[name],
            rows={key: shown_to_planner(row) for key, row in self.rows.items() if key.cluster == name},
            changed=[key for key in self._changed if key.cluster == name],
            reported=name in self.pending,
            may_publish=line.call is None,
            publishing=line.call is not None,
            published_at=line.call.sent_at if line.call is not None else None,
            pending=self.pending.get(name),
            capabilities=CAN,
        )


def _tasks(manager: NodeManager) -> TaskSums:
    sizes = [task.size for task in manager.tasks]
    masters = sum(task.master for task in manager.tasks)
    return TaskSums(
        requested=manager.allocated,
        masters=Resources(MASTER.cpu_milli * masters, MASTER.memory_bytes * masters),
        largest=Resources(
            max((size.cpu_milli for size in sizes), default=0), max((size.memory_bytes for size in sizes), default=0)
        ),
    )
