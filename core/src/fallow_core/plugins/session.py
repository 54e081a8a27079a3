"""One cluster: its plugin instance, its rows, what it last said. Starts calls and takes their results; never waits."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from fallow_core.ledger import rows as ledger_rows
from fallow_core.ledger.implausible import wrong_partitions, wrong_pending, wrong_row, wrong_size, wrong_task
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.log import event, write
from fallow_core.model.listed import ListedTasks, listed
from fallow_core.model.policy import AccountPolicy, PublishingPolicy
from fallow_core.model.refused_inputs import RefusedInputs
from fallow_core.planner.observations import ClusterObservation
from fallow_core.plugins.answers import sifted
from fallow_core.plugins.instance import PluginInstance
from fallow_core.plugins.lanes import Call, Failure, LaneState
from fallow_core.plugins.session_reads import Reads
from fallow_core.plugins.size_changes import SizeCause, SizeChanges
from fallow_core.plugins.unseen_rows import UNSEEN_SECONDS, UnseenRows
from fallow_hookspecs import (
    Application,
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
    Task,
    TaskList,
)

if TYPE_CHECKING:
    from fallow_core.ledger.due_offers import DueOffer

log = logging.getLogger("fallow.cluster")

PUBLISH_TIMEOUT_SECONDS = 20.0
FORGET_SECONDS = 600.0
"""A row that only an earlier process or instance knew is forgotten when its cluster reports for so long without it."""
CALLS = ("report", "list_tasks", "offers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What an earlier process knew of a row: the sizes it had in flight, and when it last sent one, if it did.

    `ended_at`: by when its calls had ended. Times are monotonic.
    """

    in_flight: tuple[Resources, ...]
    ended_at: float
    refreshed_at: float | None


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


class ClusterSession:
    """State of one cluster, owned by the thread that ticks the controller.

    `name` is `framework/cluster`. `pending`, `largest_elsewhere`, `applications`, `capabilities` and `detail` are from
    the newest report, `daemons` from the newest task list of each node, `lists` is what is known of tasks there.
    `failing` says of each of `CALLS` that failed the last time, why. `refused` is what of the newest answers cannot be
    true. `inherited` are the rows of an older instance that this one's framework has not named yet.
    """

    def __init__(self, instance: PluginInstance, policy: AccountPolicy, publishing: PublishingPolicy) -> None:
        self.name = instance.name
        self.instance = instance
        self.policy = policy
        self.rows: dict[RowKey, Row] = {}
        self.pending: Pending | None = None
        self.pending_by_partition: Mapping[str, Pending] = {}
        self.largest_elsewhere: Resources | None = None
        self.capabilities: Capabilities | None = None
        self.detail = ""
        self.first_reported_at: float | None = None
        self.reported_at: float | None = None
        self.published_at: float | None = None
        self.applications: tuple[Application, ...] = ()
        self.daemons: dict[str, tuple[Daemon, ...]] = {}
        self.lists: dict[str, ListedTasks] = {}
        self.counts = Counts()
        self.failing: dict[str, str] = {}
        self.refused = RefusedInputs(instance.name)
        self.inherited: frozenset[RowKey] = frozenset()
        self._changed: set[RowKey] = set()
        self._limits = publishing
        self._before: dict[RowKey, Remembered] = {}
        self._reads = Reads(instance, publishing.report_interval_seconds)
        self._publishing: _Publishing | None = None
        self._size_changes = SizeChanges()
        self._unseen = UnseenRows()

    def remember(self, key: RowKey, before: Remembered) -> None:
        """What an earlier process knew of a row: it counts from the row's first report on."""
        self._before[key] = before

    def configure(self, policy: AccountPolicy, publishing: PublishingPolicy) -> None:
        """Another policy from now on."""
        self.policy = policy
        self._limits = publishing
        self._reads.report_interval_seconds = publishing.report_interval_seconds

    def may_be_succeeded(self, now: float) -> bool:
        """Whether no call with offers is under way, or only one that is past its time."""
        return self._publishing is None or self._publishing.call.done or self._publishing.call.overdue(now)

    def succeed(self, old: "ClusterSession", now: float) -> None:
        """Go on from an older instance of the same cluster: with its rows and what they believe, and with what is known
        of its tasks. A call that is still under way there may be carried out as long as any without an answer.
        """
        for row in old.rows.values():
            self._put(_ended(row, now))
        self.inherited = frozenset(self.rows)
        self.pending, self.applications = old.pending, old.applications
        self.pending_by_partition = old.pending_by_partition
        self.daemons, self.lists, self.counts = old.daemons, old.lists, old.counts
        self.published_at = old.published_at

    def observation(self, now: float) -> ClusterObservation:
        """What a round has to know of this cluster; the changes count from the next one on."""
        changed, self._changed = self._changed, set()
        return ClusterObservation(
            policy=self.policy,
            rows=self.rows,
            changed=changed,
            reported=self.reported_at is not None,
            silent=self._is_silent(),
            may_publish=self.may_publish(now),
            publishing=self.publishing,
            published_at=self.published_at,
            pending=self.pending,
            pending_by_partition=self.pending_by_partition,
            capabilities=self.capabilities,
            largest_elsewhere=self.largest_elsewhere,
            daemons=self.daemons,
        )

    @property
    def reported_for_seconds(self) -> float:
        """The time between the first and the newest report."""
        if self.first_reported_at is None or self.reported_at is None:
            return 0.0
        return self.reported_at - self.first_reported_at

    @property
    def publishing(self) -> bool:
        """Whether a call with offers is under way."""
        return self._publishing is not None

    def may_publish(self, now: float) -> bool:
        """Whether a call with offers could start now."""
        health = self.instance.health().acts
        resting = health.next_try_at is not None and now < health.next_try_at
        return not self.publishing and not resting and health.state is not LaneState.BROKEN

    def settle(self, now: float) -> None:
        """Take the results of the calls that have ended."""
        if (report := self._reads.report()) is not None:
            self._take_report(report, now)
        for node, tasks in self._reads.task_lists():
            self._take_tasks(node, tasks, now)
        if self._publishing is not None and self._publishing.call.done:
            self._take_answers(self._publishing, now)
            self._publishing = None
        for row in [row for row in self.rows.values() if row.state is NodeState.GONE and row.in_flight]:
            self._put(ledger_rows.expired(row, now, self._limits.in_flight_seconds))
        if self._is_silent():
            self.forget_unreported()
        health = self.instance.health()
        for lane, state in (("reads", health.reads.state), ("acts", health.acts.state)):
            if state is LaneState.STALLED:
                event(log, logging.WARNING, "lane_stalled", cluster=self.name, lane=lane)

    def start_reads(self, nodes: tuple[Node, ...], now: float) -> None:
        """Start what is due to be read, as far as the reads lane is free."""
        self._reads.start(nodes, now)

    def list_every(self, seconds: float) -> None:
        """How often tasks are listed from now on."""
        self._reads.list_interval_seconds = seconds

    def list_soon(self) -> None:
        """List tasks with the next start of reads: something came or went."""
        self._reads.list_soon()

    def publish(self, nodes: tuple[Node, ...], due: "Sequence[DueOffer]", now: float) -> None:
        """Send all that is due in one call, the largest first; nothing happens if the acts lane takes no call."""
        due = sorted(due, key=lambda d: (-d.size.memory_bytes, -d.size.cpu_milli, d.key))
        offers = tuple(
            Offer(node=d.key.node, framework_node=d.key.framework_node, total=d.size, take_back=d.take_back)
            for d in due
        )
        call = self.instance.start_publish(nodes, offers, PUBLISH_TIMEOUT_SECONDS)
        if call is None:
            return
        for d in due:
            self._put(ledger_rows.sent(self.rows[d.key], d.size, now))
            self._event(logging.INFO, "offer_sent", d.key, **asdict(d.size), why=d.why)
        self.counts.offers_sent += len(due)
        self._publishing = _Publishing(call=call, sent_at=now, keys=tuple(d.key for d in due))
        self.published_at = now

    def _take_report(self, outcome: CapacityReport | Failure, now: float) -> None:
        if isinstance(outcome, Failure):
            self._note_failure("report", outcome)
            return
        self.failing.pop("report", None)
        self.first_reported_at = now if self.first_reported_at is None else self.first_reported_at
        self.reported_at = now
        by_partition = outcome.pending_by_partition
        why = "" if outcome.pending is None else wrong_pending(outcome.pending)
        why = why or wrong_partitions(by_partition)
        write(self.refused.note("pending", {"the cluster": why} if why else {}))
        self.pending = None if why else outcome.pending
        self.pending_by_partition = {} if why else by_partition
        elsewhere = outcome.largest_elsewhere
        why = "" if elsewhere is None else wrong_size("largest_elsewhere", elsewhere)
        write(self.refused.note("largest node elsewhere", {"the cluster": why} if why else {}))
        self.largest_elsewhere = None if why else elsewhere
        self.applications = outcome.applications
        self.capabilities = outcome.capabilities
        self.detail = outcome.detail
        rows, wrong = sifted(outcome.rows, ReportRow, wrong_row, lambda row: row.framework_node)
        write(self.refused.note("report", wrong))
        self._take_rows(rows, outcome.scheduler_start, now)
        seen = {RowKey(row.node, self.name, row.framework_node) for row in rows}
        self.inherited -= seen
        self._forget([key for key, row in self.rows.items() if key not in seen and _is_over(row)])

    def _take_rows(self, reported: Sequence[ReportRow], scheduler_start: str, now: float) -> None:
        for report in reported:
            key = RowKey(report.node, self.name, report.framework_node)
            if key in self._unseen.given_up:
                report = replace(report, state=NodeState.GONE, allocated=ledger_rows.ZERO)
            before = self.rows.get(key)
            row = ledger_rows.observed(before, key, report, now, self._limits.in_flight_seconds)
            if before is None:
                row = self._resumed(row)
                self._event(logging.INFO, "node_seen", key, state=row.state)
            elif row.state is not before.state:
                self._event(logging.INFO, "node_state", key, state=row.state)
            self._put(self._explained(before, row, scheduler_start, now))

    def _explained(self, before: Row | None, row: Row, scheduler_start: str, now: float) -> Row:
        """The row with the reason for a size in force that is none of those in flight; it is logged once."""
        cause = self._size_changes.cause(before, row, scheduler_start, now)
        if cause is None or row.in_force is None:
            return row
        if cause is SizeCause.OTHERS:
            self._event(logging.WARNING, "size_changed_by_others", row.key, **asdict(row.in_force))
        else:
            self._event(logging.INFO, "size_in_force", row.key, **asdict(row.in_force), why=cause)
        return replace(row, foreign_why=cause)

    def _put(self, row: Row) -> None:
        """Replace a row; whether it changed in more than its age is noted for the next round."""
        before = self.rows.get(row.key)
        self.rows[row.key] = row
        if before is None or not ledger_rows.differ_by_age_alone(before, row):
            self._changed.add(row.key)

    def _forget(self, keys: Iterable[RowKey]) -> None:
        """Rows that are no longer there."""
        for key in keys:
            self.rows.pop(key, None)
            self._size_changes.forget(key)
            self._unseen.forget(key)
            self._changed.add(key)
        self.inherited = self.inherited & self.rows.keys()

    def forget_unreported(self) -> list[RowKey]:
        """Forget the rows of an older instance that this one's framework has not named. Returns them."""
        keys = sorted(self.inherited)
        self._forget(keys)
        return keys

    def give_up_unseen(self) -> list[RowKey]:
        """Give up the rows that have neither a daemon nor a task on their host, whatever the framework says of them."""
        return self._given_up(self._unseen.give_up_missing(), "a person said so")

    def _given_up(self, keys: Sequence[RowKey], why: str) -> list[RowKey]:
        for key in keys:
            self._put(ledger_rows.given_up(self.rows[key]))
            self._event(logging.WARNING, "row_given_up", key, why=why)
        return list(keys)

    def _is_silent(self) -> bool:
        """Whether the framework has reported for long enough to have named all its nodes."""
        return self.reported_for_seconds >= FORGET_SECONDS

    def _resumed(self, row: Row) -> Row:
        before = self._before.pop(row.key, None)
        if before is None:
            return row
        return replace(ledger_rows.resumed(row, before.in_flight, before.ended_at), refreshed_at=before.refreshed_at)

    def _take_tasks(self, node: str, outcome: TaskList | Failure, now: float) -> None:
        if isinstance(outcome, Failure):
            self._note_failure("list_tasks", outcome)
            return
        self.failing.pop("list_tasks", None)
        tasks, wrong = sifted(outcome.tasks, Task, wrong_task, lambda task: task.id)
        early = {"all tasks": "it is from a time to come"} if outcome.age_seconds < 0 else {}
        write(self.refused.note(f"list on {node}", early or wrong))
        if early:
            return
        if wrong:
            reason = "; ".join(f"task {name} is refused: {why}" for name, why in list(wrong.items())[:3])
            outcome = replace(outcome, tasks=tasks, complete=False, incomplete_reason=reason)
        self.lists[node] = listed(self.lists.get(node), outcome, now)
        if outcome.daemons != self.daemons.get(node):
            pids = [daemon.process.pid for daemon in outcome.daemons]
            event(log, logging.INFO, "daemons_seen", cluster=self.name, node=node, pids=pids)
            if node in self.daemons:
                self._size_changes.note_daemons(self.daemons[node], outcome.daemons, now)
            self.daemons[node] = outcome.daemons
            self._reads.report_soon()  # a daemon that starts registers with a size of its own
        rows = [key for key in self.rows if key.node == node]
        unseen = self._unseen.note(rows, outcome.daemons, outcome.tasks, now)
        self._given_up(unseen, f"no daemon and no task of it was seen for {UNSEEN_SECONDS:.0f} s")

    def _take_answers(self, publishing: _Publishing, now: float) -> None:
        outcome = publishing.call.outcome
        answers: dict[tuple[str, str], OfferAnswer] = {}
        rows: tuple[ReportRow, ...] = ()
        scheduler_start = ""
        if isinstance(outcome, Failure):
            self._note_failure("offers", outcome)
        else:
            self.failing.pop("offers", None)
            answers = {(answer.node, answer.framework_node): answer for answer in outcome.answers}
            rows, _ = sifted(outcome.rows, ReportRow, wrong_row, lambda row: row.framework_node)
            scheduler_start = outcome.scheduler_start
        for key in publishing.keys:
            if key in self.rows:
                answer = answers.get((key.node, key.framework_node))
                self._put(self._answered(self.rows[key], publishing.sent_at, answer, now))
        self._take_rows(rows, scheduler_start, now)
        self._reads.report_soon()

    def _answered(self, row: Row, sent_at: float, answer: OfferAnswer | None, now: float) -> Row:
        if answer is None:
            return ledger_rows.unanswered(row, sent_at, now)
        if answer.accepted is not None and (why := wrong_size("accepted", answer.accepted)):
            self._event(logging.WARNING, "answer_refused", row.key, why=why)
            return ledger_rows.unanswered(row, sent_at, now)
        if answer.accepted is not None:
            return ledger_rows.answered(row, sent_at, answer.accepted, now)
        reason = answer.reason or str(answer.refusal or "no reason was given")
        if answer.refusal is Refusal.FAILED:
            self._event(logging.WARNING, "offer_failed", row.key, reason=reason)
            return ledger_rows.unanswered(row, sent_at, now)
        self.counts.offers_refused += 1
        self._event(logging.WARNING, "offer_refused", row.key, reason=reason)
        return ledger_rows.refused(row, sent_at, reason, now, unknown=answer.refusal is Refusal.UNKNOWN_NODE)

    def _note_failure(self, call: str, failure: Failure) -> None:
        self.failing[call] = failure.reason
        self.counts.calls_failed += 1
        event(log, logging.WARNING, f"{call}_failed", cluster=self.name, reason=failure.reason)

    def _event(self, level: int, name: str, key: RowKey, **fields: object) -> None:
        event(log, level, name, cluster=self.name, node=key.framework_node, **fields)


def _ended(row: Row, now: float) -> Row:
    """The row after the last call of an instance, which is not waited for any longer."""
    for sent in row.in_flight:
        if sent.ended_at is None:
            row = ledger_rows.unanswered(row, sent.sent_at, now)
    return row


def _is_over(row: Row) -> bool:
    """Whether nothing is left of a node: it is gone, empty, and nothing is on its way to it."""
    return row.state is NodeState.GONE and row.allocated == ledger_rows.ZERO and not row.in_flight
