"""A day of noisy load in simulated time: which sizes Fallow sends, and which ones whoever sends every change.

Fallow here is its ledger and its timers (band, growth hold, one call in so many seconds), with their defaults and with
some that follow the load sooner. The other one sends, in the same rhythm, the capacity of that moment. Sizes are in
force at once.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from math import sin, tau
from random import Random
from typing import Final

from fallow_core.ledger import rows as ledger_rows
from fallow_core.ledger.node_ledger import NodeInputs, NodeLedger, node_ledger
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.policy import AccountPolicy, PublishingMode, PublishingPolicy
from fallow_core.model.sample import NodeSample, Usage
from fallow_core.planner.observations import ClusterObservation, NodeObservation, Observations
from fallow_core.planner.round import plan_round
from fallow_core.planner.state import PlannerState
from fallow_hookspecs import RESOURCE_NAMES, NodeState, ReportRow, ResourceName, Resources
from fallow_yarn.model.size import MIB_BYTES, Size, size_within

CLUSTER: Final = "yarn/day"
HOST: Final = Resources(48_000, 24 << 30)
UNIT: Final = Resources(1000, MIB_BYTES)
FLOOR: Final = Resources(1000, 1024 * MIB_BYTES)
DEFAULT: Final = PublishingPolicy(mode=PublishingMode.ENFORCE)
POLICIES: Final[Mapping[str, PublishingPolicy]] = {
    "Fallow": DEFAULT,
    "Fallow, band 10%, growthDelay 15s": replace(DEFAULT, dead_band_percent=10, growth_delay_seconds=15.0),
}
ROUND_SECONDS: Final = round(DEFAULT.publish_interval_seconds)
ROUNDS: Final = 86400 // ROUND_SECONDS


@dataclass(slots=True)
class Sent:
    """The sizes sent to one node: in which rounds, and which."""

    rounds: list[int] = field(default_factory=list)
    sizes: list[Size] = field(default_factory=list)

    def add(self, number: int, size: Size) -> None:
        """A size sent in a round."""
        self.rounds.append(number)
        self.sizes.append(size)

    def at(self, number: int) -> Size:
        """The size after a round; before the first one, that of the evening before."""
        return self.sizes[bisect_right(self.rounds, number) - 1]

    def sent_in(self, number: int) -> Size | None:
        """What was sent in a round."""
        i = bisect_right(self.rounds, number) - 1
        return self.sizes[i] if i >= 0 and self.rounds[i] == number else None


@dataclass(slots=True)
class NodeDay:
    """Of one node and policy: what was sent, and sums over the rounds, each resource as a share of the host.

    `lent`: of the capacity of that moment, what the scheduler had. `promised`: what it had beyond.
    """

    sent: Sent = field(default_factory=Sent)
    lent: dict[ResourceName, float] = field(default_factory=lambda: dict.fromkeys(RESOURCE_NAMES, 0.0))
    promised: dict[ResourceName, float] = field(default_factory=lambda: dict.fromkeys(RESOURCE_NAMES, 0.0))

    def judge(self, size: Resources, batch: Resources) -> None:
        """Count one round."""
        for name in RESOURCE_NAMES:
            amount, has = batch.amount(name), size.amount(name)
            self.lent[name] += min(has, amount) / HOST.amount(name)
            self.promised[name] += max(has - amount, 0) / HOST.amount(name)


def load(rng: Random) -> Iterator[Resources]:
    """What online services use on one host, round by round.

    A wave over the day, another level every half hour or so, noise that lasts (a minute of CPU, ten of memory) and
    noise that does not, and every other hour two minutes of much CPU.
    """
    cpu_wave, phase, level, peak_until = rng.uniform(0.08, 0.15), rng.gauss(0, 0.02), 0.0, -1
    slow = [0.0, 0.0]
    for number in range(ROUNDS):
        if rng.random() < ROUND_SECONDS / 1800:
            level = rng.uniform(-0.06, 0.06)
        if rng.random() < ROUND_SECONDS / 7200:
            peak_until = number + 120 // ROUND_SECONDS
        wave = sin(tau * (number / ROUNDS + phase - 0.25))
        for i, (seconds, sigma) in enumerate(((60, 0.02), (600, 0.01))):
            kept = 1 - ROUND_SECONDS / seconds
            slow[i] = kept * slow[i] + rng.gauss(0, sigma) * (1 - kept * kept) ** 0.5
        cpu = 0.22 + cpu_wave * wave + level + slow[0] + rng.gauss(0, 0.01) + 0.2 * (number < peak_until)
        memory = 0.25 + 0.04 * wave + level / 4 + slow[1] + rng.gauss(0, 0.001)
        yield Resources(
            *(int(max(x, 0.01) * HOST.amount(n)) for x, n in zip((cpu, memory), RESOURCE_NAMES, strict=True))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The days of some nodes: by the name of Fallow's policy, and of sending every change."""

    ours: Mapping[str, Sequence[NodeDay]]
    every: Sequence[NodeDay]


def simulate(count: int) -> Simulated:
    """A day of so many nodes."""
    with ProcessPoolExecutor() as processes:
        ours = {name: list(processes.map(_ours, range(count), [policy] * count)) for name, policy in POLICIES.items()}
        return Simulated(ours=ours, every=list(processes.map(_every, range(count))))


def _ours(seed: int, policy: PublishingPolicy) -> NodeDay:
    key = RowKey("node", CLUSTER, "node")
    row, day = _reported(None, key, FLOOR, 0.0, policy), NodeDay()
    publishing = replace(policy, mode=PublishingMode.ENFORCE)
    state = PlannerState(policies=NodePolicies(), publishing=publishing, names=frozenset({CLUSTER}))
    for number, used in enumerate(load(Random(seed))):
        now = float(number * ROUND_SECONDS)
        cluster = ClusterObservation(policy=AccountPolicy(), rows={key: row}, changed=(key,), reported=True)
        nodes = {key.node: NodeObservation(sample=_sample(used, now))}
        found = plan_round(state, Observations(now=now, wall_now=now, nodes=nodes, clusters={CLUSTER: cluster}))
        state.memory.apply(found.remember)
        for d in found.send.get(CLUSTER, ()):
            row = ledger_rows.answered(ledger_rows.sent(row, d.size, now), now, d.size, now)
            day.sent.add(number, _size(d.size))
        row = _reported(row, key, row.newest_size or FLOOR, now + ROUND_SECONDS / 2, policy)
        ledger = state.nodes[key.node].ledger
        assert ledger is not None
        day.judge(row.in_force or FLOOR, _batch(ledger))
    return day


def _every(seed: int) -> NodeDay:
    row, day = _reported(None, RowKey("node", CLUSTER, "node"), FLOOR, 0.0, DEFAULT), NodeDay()
    last: Size | None = None
    for number, used in enumerate(load(Random(seed))):
        now = float(number * ROUND_SECONDS)
        inputs = NodeInputs(node="node", now=now, sample=_sample(used, now), rows=(row,), accounts={})
        batch = _batch(node_ledger(inputs))
        wanted = Resources(*(max(batch.amount(n), FLOOR.amount(n)) for n in RESOURCE_NAMES))
        if _size(wanted) != last:
            last = _size(wanted)
            day.sent.add(number, last)
        day.judge(Resources(last.vcores * 1000, last.memory_mb * MIB_BYTES), batch)
    return day


def _sample(used: Resources, now: float) -> NodeSample:
    usages = [
        Usage(measured_at=now, capacity=HOST.amount(n), used=used.amount(n), batch_used=0) for n in RESOURCE_NAMES
    ]
    return NodeSample(cpu=usages[0], memory=usages[1])


def _batch(ledger: NodeLedger) -> Resources:
    return Resources(*(capacity.batch for r in (ledger.cpu, ledger.memory) if (capacity := r.capacity)))


def _reported(row: Row | None, key: RowKey, size: Resources, now: float, policy: PublishingPolicy) -> Row:
    """The row after a report; batch has most of the size allocated."""
    allocated = Resources(size.cpu_milli * 3 // 4, size.memory_bytes * 3 // 4)
    report = ReportRow(
        node=key.node,
        framework_node=key.framework_node,
        age_seconds=0.0,
        state=NodeState.RUNNING,
        allocated=allocated,
        in_force=size,
        unit=UNIT,
        floor=FLOOR,
    )
    return ledger_rows.observed(row, key, report, now, policy.in_flight_seconds)


def _size(amount: Resources) -> Size:
    return size_within(cpu_milli=amount.cpu_milli, memory_bytes=amount.memory_bytes, vcore_milli=UNIT.cpu_milli)
