"""Histories of a node whose frameworks promise what they were ever told, with calls and reports that go wrong.

The model knows what each scheduler really works with and what it really promised. Each history is a list of steps:
something happens, then some seconds pass in which Fallow goes on as its controller does. Configured sizes of
NodeManagers and sizes that others set are odd, so that they are never by chance a size that Fallow sent.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from fallow_core.ledger import rows as ledger_rows
from fallow_core.ledger.level import Bounds, level
from fallow_core.ledger.node_ledger import NodeInputs, NodeLedger, node_ledger
from fallow_core.ledger.publishing import Due, Holds, due_rows
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.policy import AccountPolicy, Limit, NodePolicy, PublishingPolicy, ResourcePolicy, SwitchState
from fallow_core.model.sample import NodeSample, Usage
from fallow_hookspecs import RESOURCE_NAMES, NodeState, Pending, ReportRow, Resources

POLICY = PublishingPolicy(growth_hold_seconds=6.0)
LATEST = int(POLICY.in_flight_seconds) - 2
UNIT = Resources(1_000, 100)
CAPACITY = Resources(16_000, 9_000)
CONFIGURED = Resources(7_500, 4_321)
NOTHING = Resources(0, 0)
FLOOR = Resources(1_000, 300)
LASTS_SECONDS = 900
WHOLE_NODE = NodePolicy(cpu=ResourcePolicy(watermark_percent=100), memory=ResourcePolicy(watermark_percent=100))


class Step(NamedTuple):
    """Something that happens, to which row or cluster, how much of it, and the seconds that pass afterwards."""

    what: str
    which: int
    much: int
    seconds: int


class Layout(NamedTuple):
    """Clusters with how many rows each, floors or none, whether they say what is pending, a limit in percent."""

    rows: tuple[tuple[str, int], ...]
    floor: Resources
    says_pending: bool
    limit_percent: int | None


class Update(NamedTuple):
    """A size on its way: when the framework takes the call, and when its scheduler works with the size."""

    taken_at: float
    applied_at: float
    size: Resources


@dataclass
class Scheduler:
    """The framework's side of a row: what it works with, what it promised, and updates on their way."""

    size: Resources = CONFIGURED
    allocated: Resources = NOTHING
    gone: bool = False
    updates: list[Update] = field(default_factory=list)

    def take(self, update: Update) -> None:
        """The updates taken before are applied no later than this one, since they keep their order."""
        earlier = [u for u in self.updates if u.taken_at <= update.taken_at]
        later = [u for u in self.updates if u.taken_at > update.taken_at]
        earlier = [u._replace(applied_at=min(u.applied_at, update.applied_at)) for u in earlier]
        soonest = min((u.applied_at for u in later), default=update.applied_at)
        self.updates = [*earlier, update._replace(applied_at=min(update.applied_at, soonest)), *later]

    def carry_out(self, now: float) -> None:
        while self.updates and self.updates[0].applied_at <= now:
            update = self.updates.pop(0)
            self.size = self.size if self.gone else update.size

    def lose(self, now: float) -> None:
        """The node is gone: what was taken for it comes to nothing, a call that is taken later may not."""
        self.size = self.allocated = NOTHING
        self.gone = True
        self.updates = [u for u in self.updates if u.taken_at > now]

    def promise(self, percent: int) -> None:
        if not self.gone:
            self.allocated = _largest(self.allocated, _percent(self.size, percent))

    def end(self, percent: int) -> None:
        self.allocated = _percent(self.allocated, percent)


@dataclass
class Call:
    """A call with offers: it ends at that time, answered or not."""

    sizes: dict[RowKey, Resources]
    sent_at: float
    ends_at: float
    outcome: str


@dataclass
class Network:
    """How the next calls and the next report of one cluster fare, and what is under way."""

    next_calls: list[tuple[str, int]] = field(default_factory=list)
    next_report_delay: int = 0
    reports_get_lost: bool = False
    call: Call | None = None
    reports: list[tuple[float, float, dict[RowKey, ReportRow]]] = field(default_factory=list)
    asks_at: float = 0
    published_at: float = -100


CALLS = ("fine", "slow", "late in the scheduler", "lost", "carried out late", "refused")


class World:
    """Frameworks, a network, and Fallow driven as its controller drives it. `check` holds at every moment."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.now = 0.0
        self.keys = [RowKey("node", f"yarn/{c}", f"{c}{i}") for c, rows in layout.rows for i in range(rows)]
        self.clusters = sorted({key.cluster for key in self.keys})
        self.schedulers = {key: Scheduler() for key in self.keys}
        self.networks = {cluster: Network() for cluster in self.clusters}
        self.used = Resources(2_000, 1_000)
        self.sampled_at = 0.0
        self.sampling = True
        self.switches = dict.fromkeys(self.clusters, SwitchState.LEND)
        self.named: dict[RowKey, float] = {}
        self.journal: dict[RowKey, tuple[Resources, ...]] = {}
        self.greedy: Mapping[str, bool] = {}
        self.offers_last: int | None = LASTS_SECONDS
        self.calls_made = 0
        self.kill()

    def do(self, step: Step) -> None:
        """The step's own method, then its time."""
        getattr(self, step.what)(self.keys[step.which % len(self.keys)], step.much)
        self.check()
        self.pass_time(step.seconds)

    # What happens

    def nothing(self, key: RowKey, much: int) -> None:
        """Time passes."""

    def promise(self, key: RowKey, much: int) -> None:
        self.schedulers[key].promise(much)

    def end(self, key: RowKey, much: int) -> None:
        self.schedulers[key].end(much)

    def load(self, key: RowKey, much: int) -> None:
        self.used = _percent(CAPACITY, much)

    def samples(self, key: RowKey, much: int) -> None:
        self.sampling = much < 60

    def calls(self, key: RowKey, much: int) -> None:
        one_or_two = 1 + much // len(CALLS) % 2
        self.networks[key.cluster].next_calls = [(CALLS[much % len(CALLS)], much * LATEST // 100)] * one_or_two

    def reports(self, key: RowKey, much: int) -> None:
        network = self.networks[key.cluster]
        network.reports_get_lost, network.next_report_delay = much > 80, much

    def register(self, key: RowKey, much: int) -> None:
        """The NodeManager starts anew, with the size it is configured with; tasks live on."""
        self.schedulers[key].gone = False
        self.schedulers[key].size = CONFIGURED
        self.named[key] = self.now + 0.5

    def lose(self, key: RowKey, much: int) -> None:
        """The node is gone with all its tasks, until it registers."""
        self.schedulers[key].lose(self.now)
        self.named[key] = self.now + 0.5

    def resize(self, key: RowKey, much: int) -> None:
        """Somebody else sets a size."""
        if not self.schedulers[key].gone:
            size = _percent(CAPACITY, much)
            odd = Resources(size.cpu_milli // 1000 * 1000 + 500, size.memory_bytes // 100 * 100 + 77)
            self.schedulers[key].size = odd
            self.named[key] = self.now + 0.5

    def switch(self, key: RowKey, much: int) -> None:
        self.switches[key.cluster] = (SwitchState.LEND, SwitchState.HOLD, SwitchState.DRAIN)[much % 3]

    def kill(self, *_: object) -> None:
        """Fallow dies and starts anew: it knows its journal."""
        self.rows: dict[RowKey, Row] = {}
        self.holds: Holds = {}
        self.known_before = dict(self.journal)
        for network in self.networks.values():
            network.call = None
            network.reports = []
            network.asks_at = self.now

    def calm_down(self, used_percent: int, greedy: Mapping[str, bool]) -> None:
        """From now on nothing fails and nothing changes; some fill whatever they are given, the others have no work."""
        for key, scheduler in self.schedulers.items():
            if scheduler.gone:
                self.register(key, 0)
        for network in self.networks.values():
            network.next_calls, network.next_report_delay, network.reports_get_lost = [], 0, False
        self.switches = dict.fromkeys(self.clusters, SwitchState.LEND)
        self.used = _percent(CAPACITY, used_percent)
        self.sampling = True
        self.greedy = greedy
        self.offers_last = None

    def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1
            for key, scheduler in self.schedulers.items():
                scheduler.carry_out(self.now)
                if self.greedy:
                    scheduler.end(90)
                    scheduler.promise(100 if self.greedy[key.cluster] else 0)
            for cluster in self.clusters:
                self._end_call(cluster)
                self._take_reports(cluster)
                self._ask(cluster)
            self.check()
            if self.sampling:
                self.sampled_at = self.now
            if self.now % 3 == 0:
                self._publish()

    # Fallow

    def inputs(self) -> NodeInputs:
        usage = {
            name: Usage(
                measured_at=self.sampled_at,
                capacity=CAPACITY.amount(name),
                used=self.used.amount(name),
                batch_used=0,
            )
            for name in RESOURCE_NAMES
        }
        limit = Limit(percent=self.layout.limit_percent)
        policies = {
            cluster: AccountPolicy(weight=weight, switch=self.switches[cluster], cpu_limit=limit, memory_limit=limit)
            for weight, cluster in enumerate(self.clusters, start=1)
        }
        pending: dict[str, Pending | None] = {}
        if self.layout.says_pending:
            greedy = Pending(total=CAPACITY)
            idle = Pending(total=NOTHING)
            pending = {c: greedy if self.greedy.get(c, True) else idle for c in self.clusters}
        return NodeInputs(
            node="node",
            now=self.now,
            sample=NodeSample(**usage),
            rows=tuple(self.rows.values()),
            awaited=tuple(self.known_before.keys() - self.rows.keys()),
            accounts=policies,
            pending=pending,
            policy=WHOLE_NODE,
            publishing=POLICY,
        )

    def _publish(self) -> None:
        limit = POLICY.in_flight_seconds
        self.rows = {key: ledger_rows.expired(row, self.now, limit) for key, row in self.rows.items()}
        inputs = self.inputs()
        ledger = node_ledger(inputs)
        due = due_rows(
            ledger, inputs.rows, self.holds, POLICY, self.now, dict.fromkeys(self.clusters, self.offers_last)
        )
        for cluster in self.clusters:
            network = self.networks[cluster]
            own = [d for d in due if d.key.cluster == cluster]
            pause = POLICY.urgent_interval_seconds if any(d.urgent for d in own) else POLICY.publish_interval_seconds
            if own and network.call is None and self.now - network.published_at >= pause:
                self._send(own, network, ledger)

    def _send(self, due: list[Due], network: Network, ledger: NodeLedger) -> None:
        before = self.rows
        for d in due:
            self.journal[d.key] = (*(s.size for s in self.rows[d.key].in_flight), d.size)
        self.rows = self.rows | {d.key: ledger_rows.sent(self.rows[d.key], d.size, self.now) for d in due}
        self._check_growth(due, before, ledger)
        calls, delay = network.next_calls.pop() if network.next_calls else ("fine", 0)
        fate = _fate(calls, self.now, delay)
        network.call = Call({d.key: d.size for d in due}, self.now, fate.ends_at, fate.outcome)
        network.published_at = self.now
        self.calls_made += 1
        if fate.taken_at is not None:
            for d in due:
                self.schedulers[d.key].take(Update(fate.taken_at, fate.applied_at, d.size))

    def _end_call(self, cluster: str) -> None:
        network, call = self.networks[cluster], self.networks[cluster].call
        if call is None or call.ends_at > self.now:
            return
        network.call = None
        network.asks_at = self.now
        for key, size in call.sizes.items():
            row = self.rows[key]
            if call.outcome == "answered":
                self.rows[key] = ledger_rows.answered(row, call.sent_at, size, self.now)
            elif call.outcome == "refused":
                self.rows[key] = ledger_rows.refused(row, call.sent_at, "no", self.now)
            else:
                self.rows[key] = ledger_rows.unanswered(row, call.sent_at, self.now)

    def _ask(self, cluster: str) -> None:
        network = self.networks[cluster]
        if self.now < network.asks_at:
            return
        network.asks_at = self.now + POLICY.report_interval_seconds
        if not network.reports_get_lost:
            asked_at = self.now + 0.25
            shown = {key: self._report(key) for key in self.keys if key.cluster == cluster}
            network.reports.append((asked_at + 0.25 + network.next_report_delay, asked_at, shown))
            network.next_report_delay = 0

    def _report(self, key: RowKey) -> ReportRow:
        scheduler = self.schedulers[key]
        return ReportRow(
            node=key.node,
            framework_node=key.framework_node,
            age_seconds=0,
            state=NodeState.GONE if scheduler.gone else NodeState.RUNNING,
            allocated=scheduler.allocated,
            in_force=scheduler.size,
            unit=UNIT,
            floor=self.layout.floor,
        )

    def _take_reports(self, cluster: str) -> None:
        network = self.networks[cluster]
        arrived = [report for report in network.reports if report[0] <= self.now]
        network.reports = [report for report in network.reports if report[0] > self.now]
        for _, asked_at, shown in arrived:
            for key, report in shown.items():
                self._observe(key, replace(report, age_seconds=self.now - asked_at))
                if asked_at >= self.named.get(key, asked_at):
                    self.named.pop(key, None)

    def _observe(self, key: RowKey, report: ReportRow) -> None:
        before = self.rows.get(key)
        row = ledger_rows.observed(before, key, report, self.now, POLICY.in_flight_seconds)
        if before is None:
            row = ledger_rows.resumed(row, self.known_before.get(key, ()), self.now)
        if not row.in_flight and key in self.journal:
            self.journal[key] = ()
        self.rows[key] = row

    # What must hold

    def check(self) -> None:
        """No scheduler works with more, and none has promised more, than Fallow believes; named events apart."""
        for key, row in self.rows.items():
            if key not in self.named:
                scheduler = self.schedulers[key]
                for name in RESOURCE_NAMES:
                    belief = row.belief(name)
                    assert scheduler.size.amount(name) <= belief, f"{key} works with more {name} than believed"
                    assert scheduler.allocated.amount(name) <= belief, f"{key} promised more {name} than believed"

    def _check_growth(self, due: list[Due], before: Mapping[RowKey, Row], ledger: NodeLedger) -> None:
        """What grows fits into batch capacity with all that is believed, and no input that made it grow is stale."""
        for d in due:
            row = before[d.key]
            assert min(d.size.cpu_milli, d.size.memory_bytes) >= 0
            for name in RESOURCE_NAMES:
                newest = row.newest(name)
                assert newest is not None
                moved = UNIT.amount(name) * (1 + len(row.in_flight))  # sizes at the floor are told apart upwards
                if d.size.amount(name) <= max(newest, row.floor.amount(name) + moved):
                    continue
                capacity = ledger.of(name).capacity
                assert capacity is not None
                believed = sum(r.belief(name) for r in self.rows.values())
                assert believed <= capacity.batch, (
                    f"{d.key} grows: {believed} of {name} believed, {capacity.batch} there"
                )
                assert self.now - self.sampled_at < POLICY.degrade_after_seconds, "grows on an old sample"
                assert self.now - row.measured_at < POLICY.degrade_after_seconds, "grows on an old report"
                assert self.known_before.keys() <= self.rows.keys(), "grows while not all rows are known"
                assert self.switches[d.key.cluster] is SwitchState.LEND, "grows although switched off"


class Fate(NamedTuple):
    """What becomes of a call: when it ends and how, when it is taken, if ever, and when the scheduler applies it."""

    ends_at: float
    outcome: str
    taken_at: float | None = None
    applied_at: float = 0


def _fate(calls: str, now: float, delay: int) -> Fate:
    match calls:
        case "slow":
            taken_at = now + delay if delay % 2 else now
            return Fate(now + 1 + delay, "answered", taken_at, taken_at)
        case "late in the scheduler":
            return Fate(now + 1, "answered", now, now + 1 + delay)
        case "lost":
            return Fate(now + 1, "unanswered")
        case "carried out late":
            return Fate(now + 1, "unanswered", now + 1 + delay, now + 1 + delay)
        case "refused":
            return Fate(now + 1, "refused")
        case _:
            return Fate(now + 1, "answered", now, now)


def lived(layout: Layout, steps: list[Step]) -> World:
    """The world after these steps."""
    note("\n".join(["In short:", *(str(step) for step in steps if step != Step("nothing", 0, 0, 0))]))
    world = World(layout)
    for step in steps:
        world.do(step)
    return world


def _percent(size: Resources, percent: int) -> Resources:
    return Resources(size.cpu_milli * percent // 100, size.memory_bytes * percent // 100)


def _largest(one: Resources, other: Resources) -> Resources:
    return Resources(max(one.cpu_milli, other.cpu_milli), max(one.memory_bytes, other.memory_bytes))


LAYOUTS = st.builds(
    Layout,
    rows=st.sampled_from([(("a", 1), ("b", 1)), (("a", 1), ("b", 2)), (("a", 1), ("b", 1), ("c", 1))]),
    floor=st.sampled_from([FLOOR, NOTHING]),
    says_pending=st.booleans(),
    limit_percent=st.sampled_from([None, 60]),
)
HAPPENS = [
    "nothing",
    *("promise",) * 6,
    *("end",) * 3,
    *("load",) * 4,
    *("calls",) * 8,
    *("reports",) * 3,
    *("samples", "register", "register", "lose", "resize", "switch", "kill"),
]
STEP = st.builds(
    Step,
    what=st.sampled_from(HAPPENS),
    which=st.integers(0, 3),
    much=st.integers(0, 100),
    seconds=st.integers(0, 15),
)


@pytest.fixture(scope="module", autouse=True)
def counts(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """How much was tried, printed at the end."""
    counter: Counter[str] = Counter()
    yield counter
    counted = ", ".join(f"{number} {what}" for what, number in counter.items())
    capture = request.config.pluginmanager.get_plugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        print(f"\nledger histories: {counted}")


# Sizes on their way that random steps seldom bring together. Cluster a: at half load 1500, at a quarter 2200.
TWO_CLUSTERS = Layout(rows=(("a", 1), ("b", 1)), floor=NOTHING, says_pending=False, limit_percent=None)
AT_HALF_LOAD = Step("load", 0, 50, 60)
LOST_BUT_CARRIED_OUT_51_SECONDS_LATER = Step("calls", 0, 88, 0)
LOST_BUT_CARRIED_OUT_5_SECONDS_LATER = Step("calls", 0, 10, 0)
ONE_APPLIED_56_SECONDS_LATER = Step("calls", 0, 98, 0)
TWO_APPLIED_53_SECONDS_LATER = Step("calls", 0, 92, 0)
GROWTH_AND_ITS_UNDOING = [AT_HALF_LOAD, TWO_APPLIED_53_SECONDS_LATER, Step("load", 0, 25, 20), Step("load", 0, 50, 60)]
BACK_TO_A_SIZE_OF_A_LOST_CALL = [
    AT_HALF_LOAD,
    LOST_BUT_CARRIED_OUT_5_SECONDS_LATER,
    Step("reports", 0, 90, 0),
    Step("load", 0, 25, 12),
    TWO_APPLIED_53_SECONDS_LATER,
    Step("load", 0, 10, 9),
    ONE_APPLIED_56_SECONDS_LATER,
    Step("load", 0, 25, 3),
    Step("reports", 0, 0, 60),
]
LOST_GROWTH = [AT_HALF_LOAD, LOST_BUT_CARRIED_OUT_51_SECONDS_LATER, Step("load", 0, 25, 10), Step("load", 0, 50, 0)]
KILLED_AFTER_LOST_GROWTH = [*LOST_GROWTH, Step("kill", 0, 0, 60)]
GONE_AFTER_LOST_GROWTH = [*LOST_GROWTH, Step("lose", 0, 0, 5), Step("register", 0, 0, 60)]


@pytest.mark.timeout(300)
@example(layout=TWO_CLUSTERS, steps=GROWTH_AND_ITS_UNDOING)
@example(layout=TWO_CLUSTERS, steps=BACK_TO_A_SIZE_OF_A_LOST_CALL)
@example(layout=TWO_CLUSTERS, steps=KILLED_AFTER_LOST_GROWTH)
@example(layout=TWO_CLUSTERS, steps=GONE_AFTER_LOST_GROWTH)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(layout=LAYOUTS, steps=st.lists(STEP, min_size=50, max_size=90))
def test_nothing_is_lent_twice(counts: Counter[str], layout: Layout, steps: list[Step]) -> None:
    world = lived(layout, steps)
    counts.update({"histories": 1, "calls": world.calls_made})


@pytest.mark.timeout(300)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    layout=LAYOUTS,
    steps=st.lists(STEP, min_size=20, max_size=40),
    used_percent=st.integers(0, 95),
    first=st.integers(0, 2),
    busy=st.tuples(*(st.booleans(),) * 3),
)
def test_then_everybody_gets_a_fair_share_and_comes_to_rest(
    counts: Counter[str],
    layout: Layout,
    steps: list[Step],
    used_percent: int,
    first: int,
    busy: tuple[bool, bool, bool],
) -> None:
    """At first one cluster alone has work and may take everything, then all that are busy."""
    world = lived(layout, steps)
    alone = world.clusters[first % len(world.clusters)]
    world.calm_down(used_percent, {cluster: cluster == alone for cluster in world.clusters})
    world.pass_time(200)
    world.greedy = dict(zip(world.clusters, busy, strict=False))
    world.pass_time(700)
    published_at = {cluster: network.published_at for cluster, network in world.networks.items()}
    ledger = node_ledger(world.inputs())
    for name in RESOURCE_NAMES:
        of = ledger.of(name)
        assert of.capacity is not None
        room = -(-CAPACITY.amount(name) * POLICY.drain_step_percent // 100 // UNIT.amount(name)) * UNIT.amount(name)
        bounds = []
        for account in of.accounts:
            idle = 0 if layout.says_pending else max(room, account.floor)
            wants = of.capacity.capacity if world.greedy[account.cluster] else idle
            limit = (layout.limit_percent or 100) * of.capacity.batch // 100
            bounds.append(Bounds(weight=account.weight, lower=account.floor, upper=min(wants, limit)))
        for account, fair in zip(of.accounts, level(of.capacity.batch, bounds), strict=True):
            # What an account cannot use for want of the other resource it need not have.
            if world.greedy[account.cluster] and account.cut_by is None:
                short = POLICY.band_percent * fair // 100 + 2 * UNIT.amount(name)
                assert account.allocated >= fair - short, f"{account.cluster} starves of {name}: fair is {fair}"
    world.pass_time(200)
    assert published_at == {cluster: network.published_at for cluster, network in world.networks.items()}
    counts.update({"histories that come to rest": 1})
