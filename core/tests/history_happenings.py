"""What the histories are made of: a node, frameworks that promise what they were ever told, and what happens to them.

The model knows what each scheduler really works with and what it really promised. Configured sizes of NodeManagers and
sizes that others set are odd, so that they are never by chance a size that Fallow sent.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from core.tests.history_counts import Counts
from core.tests.history_frameworks import CALLS, FAR, NOTHING, Network, Scheduler, percent_of

from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.policy import PublishingPolicy, SwitchState
from fallow_core.model.sample import NodeSample
from fallow_core.planner.memory import Memory
from fallow_hookspecs import Resources

UNIT = Resources(1_000, 100_000)
CAPACITY = Resources(16_000, 9_000_000)
FLOOR = Resources(1_000, 300_000)
LASTS_SECONDS = 900


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


class Happenings:
    """The state of a world, and what may happen to it.

    `named`: rows of which a named event changed the size, until that is read back. `memory`: what outlives Fallow.
    `changed`: the rows that Fallow knows something new of.
    """

    def __init__(self, layout: Layout, policy: PublishingPolicy, node: str = "node") -> None:
        self.layout, self.policy, self.node = layout, policy, node
        self.latest = int(policy.in_flight_seconds) - 2
        self.now = 0.0
        says = "says" if layout.says_pending else "silent"
        self.keys = [RowKey(node, f"{says}/{c}", f"{c}{i}") for c, rows in layout.rows for i in range(rows)]
        self.clusters = sorted({key.cluster for key in self.keys})
        self.schedulers = {key: Scheduler() for key in self.keys}
        self.networks = {cluster: Network() for cluster in self.clusters}
        self.used = Resources(2_000, 1_000_000)
        self.sample, self.seen = NodeSample(), dict.fromkeys(self.keys, NOTHING)
        self.sampling, self.clock_off = True, 0.0
        self.samples_at = self.sampled_at = 0.0
        self.switches = dict.fromkeys(self.clusters, SwitchState.LEND)
        self.named: dict[RowKey, float] = dict.fromkeys(self.keys, 0.0)
        self.memory = Memory()
        self.greedy: Mapping[str, bool] = {}
        self.offers_last: int | None = LASTS_SECONDS
        self.counts = Counts()
        self.kill()

    def nothing(self, key: RowKey, much: int) -> None:
        """Time passes."""

    def promise(self, key: RowKey, much: int) -> None:
        self.schedulers[key].promise(much, self.now)

    def end(self, key: RowKey, much: int) -> None:
        self.schedulers[key].end(much)

    def load(self, key: RowKey, much: int) -> None:
        """What runs outside batch changes, and is measured at once, if that works."""
        self.used = percent_of(CAPACITY, much)
        self.samples_at = self.now

    def samples(self, key: RowKey, much: int) -> None:
        self.sampling = much < 60

    def clock(self, key: RowKey, much: int) -> None:
        """From now on samples say that they were taken at another time, or there are none of one resource."""
        self.clock_off = [0.0, 0.0, -2.0, -20.0, -1000.0, 0.5, 1000.0, math.nan][much % 8]

    def calls(self, key: RowKey, much: int) -> None:
        one_or_two = 1 + much // len(CALLS) % 2
        self.networks[key.cluster].next_calls = [(CALLS[much % len(CALLS)], much * self.latest // 100)] * one_or_two

    def reports(self, key: RowKey, much: int) -> None:
        network = self.networks[key.cluster]
        network.reports_get_lost, network.next_report_delay = much > 80, much

    def ages(self, key: RowKey, much: int) -> None:
        """The next report says of its age what cannot be true."""
        self.networks[key.cluster].age_is = [-0.5, -1000.0, math.nan, math.inf][much % 4]

    def repeats(self, key: RowKey, much: int) -> None:
        self.networks[key.cluster].repeats = much * self.latest // 100

    def register(self, key: RowKey, much: int) -> None:
        """The NodeManager starts anew."""
        self.schedulers[key].register()
        self.named[key] = self.now + 0.5

    def restart(self, key: RowKey, much: int) -> None:
        """The scheduler starts anew: all nodes register, and for a while it knows of no task that lives."""
        for each in self.keys:
            if each.cluster == key.cluster and not self.schedulers[each].gone:
                self.schedulers[each].register()
                self.schedulers[each].recovers_at = self.now + much // 5
                self.named[each] = self.now + 0.5

    def lose(self, key: RowKey, much: int) -> None:
        """The node is gone with all its tasks, until it registers."""
        self.schedulers[key].lose(self.now)
        self.named[key] = self.now + 0.5

    def resize(self, key: RowKey, much: int) -> None:
        """Somebody else sets a size; one of three with a deadline for what is above it."""
        if not self.schedulers[key].gone:
            size = percent_of(CAPACITY, much)
            odd = Resources(size.cpu_milli // 1000 * 1000 + 500, size.memory_bytes // 100_000 * 100_000 + 77_000)
            self.schedulers[key].set_by_others(odd, FAR if much % 3 else self.now + 1 + much // 2)
            self.named[key] = self.now + 0.5

    def switch(self, key: RowKey, much: int) -> None:
        self.switches[key.cluster] = (SwitchState.LEND, SwitchState.HOLD, SwitchState.DRAIN)[much % 3]

    def kill(self, *_: object) -> None:
        """Fallow dies and starts anew: it knows what it wrote down."""
        self.rows: dict[RowKey, Row] = {}
        self.changed: set[RowKey] = set()
        known, in_flight = self.memory.refreshed, self.memory.in_flight
        self.known_before = {key: in_flight.get(key, ()) for key in known if key.node == self.node}
        self.sample, self.watched_since = NodeSample(), self.now
        self.samples_at = self.wakes_at = self.now
        for network in self.networks.values():
            network.call, network.reports, network.asks_at = None, [], self.now

    def calm_down(self, used_percent: int, greedy: Mapping[str, bool]) -> None:
        """From now on nothing fails and nothing changes; some fill whatever they are given, the others have no work."""
        for key, scheduler in self.schedulers.items():
            if scheduler.gone:
                self.register(key, 0)
        for network in self.networks.values():
            network.next_calls, network.next_report_delay, network.reports_get_lost = [], 0, False
            network.repeats = network.age_is = None
        self.switches = dict.fromkeys(self.clusters, SwitchState.LEND)
        self.used = percent_of(CAPACITY, used_percent)
        self.sampling, self.clock_off, self.samples_at = True, 0.0, self.now
        self.greedy, self.offers_last = greedy, None
