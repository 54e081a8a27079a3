"""One history, with the plain ledger, and with taking back where that is tried."""

from collections.abc import Iterable, Mapping

from core.tests.history_counts import Counts
from core.tests.history_frameworks import FAR
from core.tests.history_happenings import Layout, Step
from core.tests.history_world import TICK_SECONDS, World

from fallow_core.ledger.due_offers import DueOffer, GrowthDelays, due_rows
from fallow_core.ledger.entries import NodeLedger
from fallow_core.ledger.node_ledger import node_ledger
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.ledger.take_back import Situation, TakeBacks, step
from fallow_core.ledger.take_back_offers import with_take_backs
from fallow_core.model.policy import PublishingMode, PublishingPolicy
from fallow_core.model.take_back_policy import TakeBackPolicy

TAKING_BACK = TakeBackPolicy(
    mode=PublishingMode.ENFORCE, after_seconds={"memory": 4.0}, notice_seconds=10, blast_seconds=FAR
)
LARGEST_TASK = 600_000
MASTERS = 200_000


class History:
    """A world, driven as the controller of one node does."""

    def __init__(self, layout: Layout, policy: PublishingPolicy, taking_back: TakeBackPolicy | None = None) -> None:
        self.world = World(layout, policy)
        self._growth_delays: GrowthDelays = {}
        self._taking_back, self._takes, self._starts = taking_back, TakeBacks(), 1
        self._fitted: set[RowKey] = set()
        self._most_allocated = dict.fromkeys(self.world.clusters, 0)

    def live(self, steps: Iterable[Step]) -> None:
        """Each step, then its time."""
        for each in steps:
            self.world.begin(each)
            self.pass_time(each.seconds)

    def pass_time(self, seconds: int) -> None:
        """Seconds in which nothing else happens."""
        for _ in range(seconds):
            self.world.second()
            if self.world.now % TICK_SECONDS == 0:
                self._tick()
            if self._taking_back is not None:
                self._check_terminations(self._taking_back)

    def counted(self, what: str) -> Counts:
        """What was counted in this history."""
        return self.world.counted(what)

    def _tick(self) -> None:
        world = self.world
        if world.killed:
            self._growth_delays, self._takes, self._fitted, world.killed = {}, TakeBacks(), set(), False
            self._starts += 1
        world.expire()
        inputs = world.inputs()
        ledger = node_ledger(inputs)
        lasts = dict.fromkeys(world.clusters, world.offers_last)
        due = due_rows(ledger, inputs.rows, self._growth_delays, world.policy, world.now, lasts)
        if self._taking_back is not None:
            due = self._with_take_backs(due, ledger, world.shown(), self._taking_back)
        world.publish(due)

    # Taking back

    def _with_take_backs(
        self, due: list[DueOffer], ledger: NodeLedger, rows: Mapping[RowKey, Row], policy: TakeBackPolicy
    ) -> list[DueOffer]:
        world, limit = self.world, self.world.policy.degrade_after_seconds
        usage = world.sample.memory
        fresh = usage is not None and world.now - usage.measured_at < limit
        for cluster in world.clusters:
            allocated = sum(row.allocated.memory_bytes for key, row in rows.items() if key.cluster == cluster)
            self._most_allocated[cluster] = max(self._most_allocated[cluster], allocated)
        situations = {
            key: Situation(
                allowed=True,
                fresh=fresh and world.now - row.measured_at < limit,
                masters=min(MASTERS, row.allocated.memory_bytes),
                largest=LARGEST_TASK,
                cluster_allocated=self._most_allocated[key.cluster],
                arrived_sent_at=row.arrived_sent_at,
            )
            for key, row in rows.items()
        }
        self._takes, decisions = step(self._takes, ledger.memory, situations, policy, world.now)
        for entry in ledger.memory.rows:
            assert not decisions[entry.key].start or entry.key in self._fitted, f"{entry.key} was adopted"
            if entry.allocated <= max(entry.target, entry.floor):
                self._fitted.add(entry.key)
        return with_take_backs(due, rows.values(), {"memory": decisions}, world.now)

    def _check_terminations(self, policy: TakeBackPolicy) -> None:
        """What Fallow had ended stays within the blast radius, which each of its lives has anew, and spares masters."""
        for cluster in self.world.clusters:
            ended = [e for k, s in self.world.schedulers.items() if k.cluster == cluster for e in s.ended]
            own = [amount for amount, by_others, left in ended if not by_others]
            most = max(self._most_allocated[cluster] * policy.blast_percent // 100, LARGEST_TASK)
            assert sum(own) <= most * self._starts, f"{cluster}: {own} taken back, {most} would be within the radius"
            assert all(left >= MASTERS for amount, by_others, left in ended if amount and not by_others)
