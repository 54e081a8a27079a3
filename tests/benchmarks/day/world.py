"""The simulated day: nodes with loads, frameworks with demands, a network with troubles, Fallow, what is counted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from tests.benchmarks.day.calls import Call, Line, Report
from tests.benchmarks.day.fallow import Fallow, Seen
from tests.benchmarks.day.frameworks import FAR, GIB, NOTHING, UNIT, Framework, Kind, Update
from tests.benchmarks.day.judge import Tally, Want, fair_tasks

from fallow_core.ledger.capacity import batch_capacity
from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.policy import AccountPolicy, NodePolicy, PublishingMode, PublishingPolicy
from fallow_core.model.sample import NodeSample, Usage
from fallow_hookspecs import RESOURCE_NAMES, Resources

CAPACITY = Resources(64_000, 256 * GIB)
CONFIGURED = Resources(8_000, 32 * GIB)
TICK_SECONDS = 5
JUDGED_SECONDS = 30
FLUCTUATION_SECONDS = 60.0
TOLD_APART = Resources(0, 16 * UNIT.memory_bytes)
FLOOR = Resources(1000, GIB)
KINDS = (
    Kind(
        cluster="yarn/cpu",
        weight=2,
        task=Resources(2_000, 2 * GIB),
        task_seconds=180,
        says_pending=True,
        floor=FLOOR,
    ),
    Kind(
        cluster="yarn/memory",
        weight=1,
        task=Resources(1_000, 12 * GIB),
        task_seconds=400,
        says_pending=True,
        floor=FLOOR,
    ),
    Kind(
        cluster="yarn/mixed",
        weight=1,
        task=Resources(1_000, 4 * GIB),
        task_seconds=240,
        says_pending=False,
        floor=NOTHING,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """What a day is like. `load_seconds`: for how long a level of a node's load lasts on average. `restarts_a_day`: of
    Fallow, of each framework, and of each of its nodes.
    """

    seed: int = 0
    hours: float = 24.0
    nodes: int = 2
    kinds: tuple[Kind, ...] = KINDS
    trouble_percent: int = 8
    load_seconds: float = 1800.0
    restarts_a_day: float = 4.0
    far: float | None = FAR
    publishing: PublishingPolicy = field(default_factory=lambda: PublishingPolicy(mode=PublishingMode.ENFORCE))


class Load:
    """What runs outside batch on one node, of one resource: it steps to another level now and then, and fluctuates
    around it. Fluctuations last for about a minute; `noise_percent` is their standard deviation.
    """

    def __init__(self, capacity: int, noise_percent: float, level_seconds: float, rng: Random) -> None:
        self._capacity, self._noise, self._rng = capacity, noise_percent, rng
        self._level_seconds = level_seconds
        self._level = self._next = self._off = 0.0

    def used(self, now: float) -> int:
        """What is measured now, a tick after the last time."""
        if now >= self._next:
            self._level = self._rng.uniform(5, 45)
            self._next = now + self._rng.expovariate(1 / self._level_seconds)
        kept = math.exp(-TICK_SECONDS / FLUCTUATION_SECONDS)
        self._off = self._off * kept + self._rng.gauss(0, self._noise * math.sqrt(1 - kept * kept))
        percent = min(max(self._level + self._off, 0), 100)
        return int(self._capacity * percent / 100)


class World:
    """Everything, second by second."""

    def __init__(self, day: Day) -> None:
        self.day = day
        self.now = 0
        self.tally = Tally()
        rng = Random(day.seed)
        self._rng = Random(rng.random())
        self.nodes = [f"n{i}" for i in range(day.nodes)]
        self.frameworks = {k.cluster: Framework(k, day.nodes, CONFIGURED, Random(rng.random())) for k in day.kinds}
        self._lines = {k.cluster: Line(Random(rng.random()), day.trouble_percent) for k in day.kinds}
        self._loads = {
            node: [
                Load(CAPACITY.cpu_milli, 1.5, day.load_seconds, Random(rng.random())),
                Load(CAPACITY.memory_bytes, 0.5, day.load_seconds, Random(rng.random())),
            ]
            for node in self.nodes
        }
        self.fallow = Fallow(
            accounts={k.cluster: AccountPolicy(weight=k.weight) for k in day.kinds},
            floors={k.cluster: k.floor for k in day.kinds},
            publishing=day.publishing,
        )
        self._keys = {
            (k.cluster, node): RowKey(node, k.cluster, f"{node}:{k.cluster}") for k in day.kinds for node in self.nodes
        }
        self._managers = {
            self._keys[c, node]: m
            for c, f in self.frameworks.items()
            for node, m in zip(self.nodes, f.managers, strict=True)
        }
        self._named = dict.fromkeys(self._managers, 0.0)  # they register with a size of their own
        self._seen: dict[str, Seen] = {}
        self._batch: dict[str, Resources] = {}

    def run(self) -> Tally:
        """The whole day."""
        for _ in range(int(self.day.hours * 3600)):
            self._second()
        self.tally.take_backs = self.fallow.take_backs
        self.tally.ended = sum(f.ended_by_deadline for f in self.frameworks.values())
        self.tally.warned = sum(m.warned for m in self._managers.values())
        return self.tally

    def _second(self) -> None:
        self.now += 1
        self._restarts()
        for cluster, framework in self.frameworks.items():
            framework.step(self.now)
            self._end_call(self._lines[cluster])
            self._take_reports(cluster)
            self._ask(cluster)
        if self.now % TICK_SECONDS == 0:
            self._tick()
        if self.now % JUDGED_SECONDS == 0:
            self._judge()

    # What goes wrong

    def _restarts(self) -> None:
        often = self.day.restarts_a_day / 86400
        if self._rng.random() < often:
            self.fallow.restart()
            for line in self._lines.values():
                line.call, line.reports, line.asks_at = None, [], self.now + 2
        for cluster, framework in self.frameworks.items():
            if self._rng.random() < often:
                framework.restart(self.now)
                self._lines[cluster].down_until = self.now + 40
                self._named |= {self._keys[cluster, node]: self.now + 0.5 for node in self.nodes}
            if self._rng.random() < often:
                node = self._rng.randrange(len(self.nodes))
                framework.register(node, self.now)
                self._named[self._keys[cluster, self.nodes[node]]] = self.now + 0.5

    # The network

    def _end_call(self, line: Line) -> None:
        call = line.call
        if call is not None and call.ends_at <= self.now:
            line.call, line.asks_at = None, self.now
            self.fallow.ended(call.due, call.sent_at, answered=call.answered, now=self.now)

    def _ask(self, cluster: str) -> None:
        line = self._lines[cluster]
        if self.now < line.asks_at:
            return
        line.asks_at = self.now + self.fallow.publishing.report_interval_seconds
        delay = line.report_delay(self.now)
        if delay is not None:
            keys = [self._keys[cluster, node] for node in self.nodes]
            shown = {k: (self._managers[k].size, self._managers[k].shown(self.now)) for k in keys}
            line.reports.append(Report(self.now + delay, self.now, shown))

    def _take_reports(self, cluster: str) -> None:
        line = self._lines[cluster]
        for report in [r for r in line.reports if r.arrives_at <= self.now]:
            line.reports.remove(report)
            self.fallow.pending[cluster] = self.frameworks[cluster].pending()
            for key, (size, allocated) in report.shown.items():
                self.fallow.observe(key, size, allocated, report.asked_at, self.now)
                if report.asked_at >= self._named.get(key, report.asked_at):
                    self._named.pop(key, None)

    # Fallow

    def _tick(self) -> None:
        for node in self.nodes:
            used = [load.used(self.now) for load in self._loads[node]]
            usages = [
                Usage(measured_at=self.now, capacity=CAPACITY.amount(name), used=use, batch_used=0)
                for name, use in zip(RESOURCE_NAMES, used, strict=True)
            ]
            sample = NodeSample(cpu=usages[0], memory=usages[1])
            policy = NodePolicy()
            self._batch[node] = Resources(
                *(batch_capacity(u, policy.of(n)).batch for u, n in zip(usages, RESOURCE_NAMES, strict=True))
            )
            managers = {key: m for key, m in self._managers.items() if key.node == node}
            self._seen[node] = Seen(sample=sample, managers=managers)
        self._check_beliefs()
        for cluster, due in self.fallow.tick(self._seen, self._lines, self.now).items():
            self._send(due, self._lines[cluster])

    def _send(self, due: tuple[DueOffer, ...], line: Line) -> None:
        before = {d.key: self.fallow.rows[d.key] for d in due}
        self.fallow.send(due, self.now)
        fate = line.fate(self.now)
        line.call = Call(due, self.now, fate.ends_at, fate.answered)
        for d in due:
            self.tally.sizes_sent[d.key.cluster] += 1
            self.tally.causes[_cause(d, before[d.key])] += 1
            self._check_growth(d, before[d.key])
            if fate.taken_at is not None:
                update = Update(fate.taken_at, fate.carried_out_at, d.size, self.day.far, d.take_back.get("memory"))
                self._managers[d.key].take(update)

    # What is counted

    def _check_growth(self, due: DueOffer, before: Row) -> None:
        """What raises a belief fits with all that is believed; floors apart, above which sizes are told apart."""
        believed, batch = self.fallow.believed(due.key.node, self._seen[due.key.node]), self._batch[due.key.node]
        floor, allocated = self.fallow.floors[due.key.cluster], self._managers[due.key].allocated
        self.tally.grown_beyond += any(
            due.size.amount(n) > max(before.belief(n), allocated.amount(n), floor.amount(n) + TOLD_APART.amount(n))
            and believed.amount(n) > batch.amount(n) + TOLD_APART.amount(n)
            for n in RESOURCE_NAMES
        )

    def _check_beliefs(self) -> None:
        """No scheduler works with more than Fallow believes, unless it just registered a size of its own."""
        for key, row in self.fallow.rows.items():
            manager = self._managers[key]
            if key not in self._named:
                self.tally.more_than_believed += any(manager.size.amount(n) > row.belief(n) for n in RESOURCE_NAMES)

    def _judge(self) -> None:
        hour = (self.now - 1) // 3600
        self.tally.moments[hour] += 1
        clusters = list(self.frameworks)
        fair = dict.fromkeys(clusters, 0.0)
        for i, node in enumerate(self.nodes):
            batch = self._batch.get(node, NOTHING)
            frameworks = [self.frameworks[c] for c in clusters]
            wants = [Want(f.kind.weight, f.kind.task, f.wanted / len(self.nodes)) for f in frameworks]
            tasks = fair_tasks(_less_masters(batch, frameworks, i), wants)
            for cluster, much in zip(clusters, tasks, strict=True):
                fair[cluster] += much
            self._judge_lending(node, batch, [f.kind.task for f in frameworks], tasks)
        for cluster, framework in self.frameworks.items():
            self.tally.wanted[cluster, hour] += framework.wanted > 0
            self.tally.fair[cluster, hour] += fair[cluster]
            self.tally.got[cluster, hour] += framework.running

    def _judge_lending(self, node: str, batch: Resources, tasks: Sequence[Resources], fair: Sequence[float]) -> None:
        """Sizes against batch capacity, and what runs against what could run, each as the larger of both resources."""
        managers = self._seen[node].managers.values() if node in self._seen else ()
        for name in RESOURCE_NAMES:
            amount = max(batch.amount(name), 1)
            sizes = sum(m.size.amount(name) for m in managers)
            self.tally.lent += min(sizes / amount, 1)
            self.tally.possible += amount // UNIT.amount(name) * UNIT.amount(name) / amount
            self.tally.looked_at += 1
            self.tally.exposed[name] += max(sizes - amount, 0) / CAPACITY.amount(name)
        runs = max(sum(m.allocated.amount(n) for m in managers) / max(batch.amount(n), 1) for n in RESOURCE_NAMES)
        could = max(
            sum(t.amount(n) * f for t, f in zip(tasks, fair, strict=True)) / max(batch.amount(n), 1)
            for n in RESOURCE_NAMES
        )
        self.tally.used += min(runs, could)
        self.tally.usable += could


def _less_masters(batch: Resources, frameworks: Sequence[Framework], node: int) -> Resources:
    masters = [t.size for f in frameworks for t in f.managers[node].tasks if t.master]
    return Resources(
        max(batch.cpu_milli - sum(m.cpu_milli for m in masters), 0),
        max(batch.memory_bytes - sum(m.memory_bytes for m in masters), 0),
    )


def _cause(due: DueOffer, before: Row) -> str:
    """Why a size was sent, of each resource that was due, and whether that one falls or grows."""
    found = []
    for reason in due.why.split("; "):
        name = next((n for n in RESOURCE_NAMES if reason.startswith(n)), None)
        newest = before.newest(name) if name is not None else None
        direction = "" if name is None or newest is None else "falls: " if due.size.amount(name) < newest else "grows: "
        found.append(direction + reason.removeprefix(f"{name}: ").partition(":")[0])
    return " + ".join(sorted(set(found)))
