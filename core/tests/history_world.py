"""The world of the histories: time passes, calls and reports come and go, and Fallow's rows follow; what must hold."""

import math
from dataclasses import replace

from core.tests.history_checks import NAMED, check_growth, exposure
from core.tests.history_counts import Counts
from core.tests.history_frameworks import NOTHING, Call, Network, Update, fate
from core.tests.history_happenings import CAPACITY, UNIT, Happenings, Step

from fallow_core.ledger import rows as ledger_rows
from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.implausible import accepted, wrong_row
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.policy import AccountPolicy, Limit, NodePolicy, ResourcePolicy
from fallow_core.model.sample import NodeSample, Usage
from fallow_hookspecs import RESOURCE_NAMES, NodeState, Pending, ReportRow

TICK_SECONDS = 3
WHOLE_NODE = NodePolicy(cpu=ResourcePolicy(watermark_percent=100), memory=ResourcePolicy(watermark_percent=100))


class World(Happenings):
    """One node. Its driver calls `begin` with a step, `second`, and `send` with what Fallow sends."""

    def begin(self, step: Step) -> None:
        """What the step says happens."""
        happens = getattr(self, step.what)
        key = self.keys[step.which % len(self.keys)]
        if step.what in NAMED:
            used, before = self.used, [exposure(self, self.shown(), name) for name in RESOURCE_NAMES]
            happens(key, step.much)
            for name, exposed in zip(RESOURCE_NAMES, before, strict=True):
                rise = exposure(self, self.shown(), name) - exposed
                sizes = sum(s.size.amount(name) for k, s in self.schedulers.items() if k in self.named)
                assert rise <= max(sizes, self.used.amount(name) - used.amount(name))
                if rise > 0:
                    self.counts.expose(NAMED[step.what], 100 * rise / CAPACITY.amount(name))
        else:
            happens(key, step.much)
        self.counts.tried[f"steps: {step.what}"] += 1
        self.wakes_at = self.now
        self.check()

    def second(self) -> bool:
        """One second passes; whether the node was measured. Rows that changed are in `changed`."""
        self.now += 1
        if self.now < self.wakes_at and not self.greedy:
            return False
        for key, scheduler in self.schedulers.items():
            scheduler.carry_out(self.now)
            if self.greedy:
                scheduler.end(90)
                scheduler.promise(100 if self.greedy[key.cluster] else 0, self.now)
        for cluster, network in self.networks.items():
            self._end_call(network)
            self._take_reports(network)
            self._ask(cluster, network)
        measured = self._measure()
        self.check()
        self.wakes_at = self._next()
        return measured

    def _next(self) -> float:
        """When something happens next by itself."""
        times = [self.samples_at]
        for scheduler in self.schedulers.values():
            times += [update.applied_at for update in scheduler.updates[:1]]
            times.append(scheduler.ends_at)
        for network in self.networks.values():
            times.append(network.asks_at)
            times += [arrives_at for arrives_at, _, _ in network.reports]
            times += [network.call.ends_at] if network.call is not None else []
        return min(times)

    def _measure(self) -> bool:
        if self.now < self.samples_at:
            return False
        self.samples_at = self.now + self.policy.report_interval_seconds
        if not self.sampling:
            return False
        at = self.now + self.clock_off
        usage = {
            name: Usage(
                measured_at=self.now if math.isnan(at) else at,
                capacity=CAPACITY.amount(name),
                used=self.used.amount(name),
                batch_used=0,
            )
            for name in RESOURCE_NAMES
            if name == "memory" or not math.isnan(at)
        }
        self.sample, _ = accepted(self.sample, NodeSample(**usage), self.now)
        self.seen = {key: scheduler.allocated for key, scheduler in self.schedulers.items()}
        self.sampled_at = self.now
        return True

    def _end_call(self, network: Network) -> None:
        call = network.call
        if call is None or call.ends_at > self.now:
            return
        network.call, network.asks_at = None, self.now
        for key, size in call.sizes.items():
            row = self.rows[key]
            if call.outcome == "answered":
                self._put(ledger_rows.answered(row, call.sent_at, size, self.now))
            elif call.outcome == "refused":
                self._put(ledger_rows.refused(row, call.sent_at, "no", self.now))
            else:
                self._put(ledger_rows.unanswered(row, call.sent_at, self.now))

    def _ask(self, cluster: str, network: Network) -> None:
        if self.now < network.asks_at:
            return
        network.asks_at = self.now + self.policy.report_interval_seconds
        if network.reports_get_lost:
            return
        asked_at = self.now + 0.25
        shown = {key: self._report(key) for key in self.keys if key.cluster == cluster}
        if network.age_is is not None:
            shown = {key: replace(report, age_seconds=network.age_is) for key, report in shown.items()}
        arrives_at = asked_at + 0.25 + network.next_report_delay
        network.reports.append((arrives_at, asked_at, shown))
        if network.repeats is not None:
            network.reports.append((arrives_at + network.repeats, asked_at, shown))
        network.next_report_delay, network.age_is, network.repeats = 0, None, None

    def _report(self, key: RowKey) -> ReportRow:
        scheduler = self.schedulers[key]
        return ReportRow(
            node=key.node,
            framework_node=key.framework_node,
            age_seconds=0,
            state=NodeState.GONE if scheduler.gone else NodeState.RUNNING,
            allocated=scheduler.allocated if self.now >= scheduler.recovers_at else NOTHING,
            in_force=scheduler.size,
            unit=UNIT,
            floor=self.layout.floor,
        )

    def _take_reports(self, network: Network) -> None:
        arrived = [report for report in network.reports if report[0] <= self.now]
        network.reports = [report for report in network.reports if report[0] > self.now]
        for _, asked_at, shown in arrived:
            for key, report in shown.items():
                true = report.age_seconds == 0
                aged = replace(report, age_seconds=self.now - asked_at) if true else report
                if not wrong_row(aged):
                    self._observe(key, aged)
                if true and asked_at >= self.named.get(key, math.inf) and self._tells_all(key, asked_at):
                    del self.named[key]

    def _tells_all(self, key: RowKey, asked_at: float) -> bool:
        """Whether the scheduler knew its tasks again by then, or they were seen on the node since the event."""
        return asked_at >= self.schedulers[key].recovers_at or self.sampled_at >= self.named[key]

    def _observe(self, key: RowKey, report: ReportRow) -> None:
        before = self.rows.get(key)
        row = ledger_rows.observed(before, key, report, self.now, self.policy.in_flight_seconds)
        if before is None:
            row = ledger_rows.resumed(row, self.known_before.get(key, ()), self.now)
        self._put(row)

    def _put(self, row: Row) -> None:
        before = self.rows.get(row.key)
        self.rows[row.key] = row
        if before is None or not ledger_rows.differ_by_age_alone(before, row):
            self.changed.add(row.key)

    # Fallow

    def shown(self) -> dict[RowKey, Row]:
        """The rows with what was seen on the node."""
        return {key: ledger_rows.at_least(row, self.seen[key]) for key, row in self.rows.items()}

    def policies(self) -> dict[str, AccountPolicy]:
        """What the operator decided about each cluster."""
        limit = Limit(percent=self.layout.limit_percent)
        return {
            cluster: AccountPolicy(weight=weight, cpu_limit=limit, memory_limit=limit)
            for weight, cluster in enumerate(self.clusters, start=1)
        }

    def pending(self, cluster: str) -> Pending | None:
        """What a cluster says is pending."""
        if not self.layout.says_pending:
            return None
        return Pending(total=CAPACITY if self.greedy.get(cluster, True) else NOTHING)

    def expire(self) -> None:
        """Sizes for nodes that are gone are given up."""
        for before in list(self.rows.values()):
            self._put(ledger_rows.expired(before, self.now, self.policy.in_flight_seconds))

    def send(self, due: list[DueOffer]) -> None:
        """A call to one cluster begins."""
        network = self.networks[due[0].key.cluster]
        assert network.call is None, "a second call while one is under way"
        before = self.shown()
        for d in due:
            self._put(ledger_rows.sent(self.rows[d.key], d.size, self.now))
        check_growth(self, due, before)
        kind, delay = network.next_calls.pop() if network.next_calls else ("fine", 0)
        of_call = fate(kind, self.now, delay)
        if network.repeats is not None:
            of_call = of_call.repeated(self.now + 1 + network.repeats)
            network.repeats = None
        network.call = Call({d.key: d.size for d in due}, self.now, of_call.ends_at, of_call.outcome)
        network.published_at = self.now
        self.wakes_at = self.now
        self.counts.tried[f"calls: {kind}"] += 1
        for taken_at, applied_at in of_call.carried_out:
            for d in due:
                self.schedulers[d.key].take(Update(taken_at, applied_at, d.size, d.take_back.get("memory")))

    def check(self) -> None:
        """No scheduler works with more, and none has promised more, than Fallow believes; named events apart."""
        for key, row in self.rows.items():
            if key not in self.named:
                scheduler, seen = self.schedulers[key], self.seen[key]
                for name in RESOURCE_NAMES:
                    belief = max(row.belief(name), seen.amount(name))
                    assert scheduler.size.amount(name) <= belief, f"{key} works with more {name} than believed"
                    assert scheduler.allocated.amount(name) <= belief, f"{key} promised more {name} than believed"

    def counted(self, what: str) -> Counts:
        """What was counted in this history, as one of those."""
        ended = [by_others for scheduler in self.schedulers.values() for amount, by_others, _ in scheduler.ended]
        self.counts.tried[what] += 1
        self.counts.tried["rows of which Fallow had tasks ended"] += ended.count(False)
        self.counts.tried["rows of which others had tasks ended"] += ended.count(True)
        return self.counts
