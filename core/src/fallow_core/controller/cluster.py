"""One cluster: its plugin instance, its rows, what it last said. Starts calls and takes their results; never waits."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fallow_core.ledger import rows as ledger_rows
from fallow_core.ledger.publishing import Due
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.log import event
from fallow_core.model.policy import AccountPolicy, PublishingPolicy
from fallow_core.plugins.instance import PluginInstance
from fallow_core.plugins.lanes import Call, Failure, LaneState
from fallow_hookspecs import (
    Capabilities,
    CapacityReport,
    Daemon,
    Node,
    NodeState,
    Offer,
    OfferAnswer,
    Pending,
    Refusal,
    ReportRow,
    Resources,
    TaskList,
)

log = logging.getLogger("fallow.cluster")

REPORT_TIMEOUT_SECONDS = 20.0
PUBLISH_TIMEOUT_SECONDS = 20.0
LIST_TASKS_INTERVAL_SECONDS = 2.0
LIST_TASKS_TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What an earlier process knew of a row: the sizes it had in flight, and when it last sent one (monotonic)."""

    in_flight: tuple[Resources, ...] = ()
    refreshed_at: float | None = None


@dataclass(slots=True)
class Counts:
    """What happened since the start."""

    offers_sent: int = 0
    offers_refused: int = 0
    calls_failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Publishing:
    """A call with offers under way. `sent_at` names its sizes among those in flight."""

    call: Call[CapacityReport]
    sent_at: float
    keys: tuple[RowKey, ...]


class Cluster:
    """State of one cluster, owned by the thread that ticks the controller.

    `name` is `framework/cluster`. `pending`, `capabilities` and `detail` are from the newest report, `daemons` from
    the newest task list of each node.
    """

    def __init__(self, instance: PluginInstance, policy: AccountPolicy, publishing: PublishingPolicy) -> None:
        self.name = instance.name
        self.instance = instance
        self.policy = policy
        self.rows: dict[RowKey, Row] = {}
        self.pending: Pending | None = None
        self.capabilities: Capabilities | None = None
        self.detail = ""
        self.reported_at: float | None = None
        self.published_at: float | None = None
        self.daemons: dict[str, tuple[Daemon, ...]] = {}
        self.counts = Counts()
        self._limits = publishing
        self._before: dict[RowKey, Remembered] = {}
        self._report: Call[CapacityReport] | None = None
        self._report_due_at: float | None = None
        self._lists: dict[str, Call[TaskList]] = {}
        self._list_due_at: dict[str, float] = {}
        self._publishing: _Publishing | None = None

    def remember(self, key: RowKey, before: "Remembered") -> None:
        """What an earlier process knew of a row: it counts from the row's first report on."""
        self._before[key] = before

    def started(self, key: RowKey) -> str:
        """What tells this start of a row's daemon from another one; empty where its process is not seen."""
        daemons = self.daemons.get(key.node, ())
        return next(
            (f"{d.process.pid}@{d.process.start_ticks}" for d in daemons if d.framework_node == key.framework_node), ""
        )

    @property
    def publishing(self) -> bool:
        """Whether a call with offers is under way."""
        return self._publishing is not None

    def may_publish(self, now: float) -> bool:
        """Whether a call with offers could start now."""
        health = self.instance.health().acts
        resting = health.next_try_at is not None and now < health.next_try_at
        return not self.publishing and not resting and health.state not in (LaneState.STALLED, LaneState.BROKEN)

    def settle(self, now: float) -> None:
        """Take the results of the calls that have ended."""
        if self._report is not None and self._report.done:
            self._take_report(self._report.outcome, now)
            self._report = None
        for node, call in [(n, c) for n, c in self._lists.items() if c.done]:
            del self._lists[node]
            self._take_tasks(node, call.outcome, now)
        if self._publishing is not None and self._publishing.call.done:
            self._take_answers(self._publishing, now)
            self._publishing = None
        limit = self._limits.in_flight_seconds
        self.rows = {key: ledger_rows.expired(row, now, limit) for key, row in self.rows.items()}

    def start_reads(self, nodes: tuple[Node, ...], now: float) -> None:
        """Start what is due to be read, as far as the reads lane is free."""
        if self._report is None and (self._report_due_at is None or now >= self._report_due_at):
            self._report = self.instance.start_report(nodes, REPORT_TIMEOUT_SECONDS)
            if self._report is not None:
                self._report_due_at = now + self._limits.report_interval_seconds
        for node in nodes:
            if node.name not in self._lists and now >= self._list_due_at.get(node.name, now):
                call = self.instance.start_list_tasks(node, LIST_TASKS_TIMEOUT_SECONDS)
                if call is not None:
                    self._lists[node.name] = call
                    self._list_due_at[node.name] = now + LIST_TASKS_INTERVAL_SECONDS

    def report_soon(self) -> None:
        """Ask the framework again with the next tick."""
        self._report_due_at = None

    def publish(self, nodes: tuple[Node, ...], due: Sequence[Due], now: float) -> None:
        """Send all that is due in one call; nothing happens if the acts lane is busy or backs off."""
        offers = tuple(Offer(node=d.key.node, framework_node=d.key.framework_node, total=d.size) for d in due)
        call = self.instance.start_publish(nodes, offers, PUBLISH_TIMEOUT_SECONDS)
        if call is None:
            return
        for d in due:
            self.rows[d.key] = ledger_rows.sent(self.rows[d.key], d.size, now)
            event(
                log,
                logging.INFO,
                "offer_sent",
                cluster=self.name,
                node=d.key.framework_node,
                **_size(d.size),
                why=d.why,
            )
        self.counts.offers_sent += len(due)
        self._publishing = _Publishing(call=call, sent_at=now, keys=tuple(d.key for d in due))
        self.published_at = now

    def _take_report(self, outcome: CapacityReport | Failure, now: float) -> None:
        if isinstance(outcome, Failure):
            self.counts.calls_failed += 1
            event(log, logging.WARNING, "report_failed", cluster=self.name, reason=outcome.reason)
            return
        self.reported_at = now
        self.pending = outcome.pending
        self.capabilities = outcome.capabilities
        self.detail = outcome.detail
        self._take_rows(outcome.rows, now)
        seen = {(row.node, row.framework_node) for row in outcome.rows}
        for key, row in list(self.rows.items()):
            forgotten = row.state is NodeState.GONE and not any((row.allocated.cpu_milli, row.allocated.memory_bytes))
            if forgotten and (key.node, key.framework_node) not in seen:
                del self.rows[key]

    def _take_rows(self, reported: Sequence[ReportRow], now: float) -> None:
        for report in reported:
            key = RowKey(report.node, self.name, report.framework_node)
            before = self.rows.get(key)
            row = ledger_rows.observed(before, key, report, now, self._limits.in_flight_seconds)
            if before is None:
                remembered = self._before.pop(key, Remembered())
                row = replace(ledger_rows.resumed(row, remembered.in_flight, now), refreshed_at=remembered.refreshed_at)
                event(log, logging.INFO, "node_seen", cluster=self.name, node=key.framework_node, state=row.state)
            elif row.state is not before.state:
                event(log, logging.INFO, "node_state", cluster=self.name, node=key.framework_node, state=row.state)
            if row.foreign is not None and (before is None or row.foreign != before.foreign):
                size = _size(row.foreign)
                event(
                    log, logging.WARNING, "size_changed_by_others", cluster=self.name, node=key.framework_node, **size
                )
            self.rows[key] = row

    def _take_tasks(self, node: str, outcome: TaskList | Failure, now: float) -> None:
        if isinstance(outcome, Failure):
            self.counts.calls_failed += 1
            event(log, logging.WARNING, "list_tasks_failed", cluster=self.name, node=node, reason=outcome.reason)
            return
        if outcome.daemons != self.daemons.get(node):
            pids = [daemon.process.pid for daemon in outcome.daemons]
            event(log, logging.INFO, "daemons_seen", cluster=self.name, node=node, pids=pids)
            self.daemons[node] = outcome.daemons
            self.report_soon()  # a daemon that starts registers with a size of its own

    def _take_answers(self, publishing: _Publishing, now: float) -> None:
        outcome = publishing.call.outcome
        if isinstance(outcome, Failure):
            self.counts.calls_failed += 1
            event(log, logging.WARNING, "offers_failed", cluster=self.name, reason=outcome.reason)
            answers: dict[tuple[str, str], OfferAnswer] = {}
        else:
            answers = {(answer.node, answer.framework_node): answer for answer in outcome.answers}
        for key in publishing.keys:
            if key in self.rows:
                answer = answers.get((key.node, key.framework_node))
                self.rows[key] = self._answered(self.rows[key], publishing.sent_at, answer, now)
        if not isinstance(outcome, Failure):
            self._take_rows(outcome.rows, now)
        self.report_soon()

    def _answered(self, row: Row, sent_at: float, answer: OfferAnswer | None, now: float) -> Row:
        if answer is None or answer.refusal is Refusal.FAILED:
            return ledger_rows.unanswered(row, sent_at, now)
        if answer.accepted is not None:
            return ledger_rows.answered(row, sent_at, answer.accepted, now)
        reason = answer.reason or str(answer.refusal)
        self.counts.offers_refused += 1
        event(log, logging.WARNING, "offer_refused", cluster=self.name, node=row.key.framework_node, reason=reason)
        return ledger_rows.refused(row, sent_at, reason, now)


def _size(size: Resources) -> dict[str, int]:
    return {"cpu_milli": size.cpu_milli, "memory_bytes": size.memory_bytes}
