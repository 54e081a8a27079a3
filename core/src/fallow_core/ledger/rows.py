"""One row of the ledger: one of a framework's nodes, what its scheduler was told, and what it may therefore promise.

The belief of a row is the most that the framework's scheduler may still promise there:

    belief = max(allocated, size in force, every size in flight)

A size is in flight from the moment it is sent. It leaves flight

- answered: with the first report, asked for after the answer, that shows the newest answered size in force or the node
  gone; or with any report asked for `in_flight_seconds` after the answer: somebody else changed it. A report that
  shows a size that is in flight twice does not say which of them was carried out, so it settles neither;
- unanswered: with the first report asked for `in_flight_seconds` after its call ended: it may be carried out until
  then, and without a report nobody knows whether it was.

On a node that is gone only what is allocated counts. All functions return a new row; times are monotonic seconds.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from fallow_core.model.host_limit import HostLimit
from fallow_hookspecs import NodeState, ReportRow, ResourceName, Resources

ZERO = Resources(0, 0)


class RowKey(NamedTuple):
    """Which row: the node, the cluster (`framework/cluster`), and the framework's own name of its node."""

    node: str
    cluster: str
    framework_node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A size in flight. `ended_at`: when its call ended. `answered`: the framework took it; else nobody knows."""

    size: Resources
    sent_at: float
    ended_at: float | None = None
    answered: bool = False

    def over(self, time: float) -> bool:
        """Whether its call had ended before then."""
        return self.ended_at is not None and self.ended_at < time

    def of_call(self, sent_at: float) -> bool:
        """Whether it was sent by the call under way that started then; one taken over may be of the same moment."""
        return self.sent_at == sent_at and self.ended_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is known of one row. `measured_at` is when the request of the newest report began.

    `partitions`: those whose pending requests it can serve; empty: all. `resend`: the newest size sent did not arrive,
    or somebody else changed it. `foreign` is a size in force that is none of ours; `foreign_why` says how it may have
    come there, in words. `limits`: what this host allows its daemon. `last_sent` is the newest size that was sent and
    not refused: a plugin may send it again by itself. `arrived_sent_at` is when the newest size that was seen in force
    was sent; what is in flight from before is believed, and no longer the newest. `refreshed_at` is when the framework
    last took a size. `refusal`: why the framework did not take the newest size, since `refused_at`; `unknown`: it did
    not know the node then.
    """

    key: RowKey
    state: NodeState
    unit: Resources
    floor: Resources
    allocated: Resources
    measured_at: float
    in_force: Resources | None = None
    maximum: Resources | None = None
    started_at: float | None = None
    partitions: tuple[str, ...] = ()
    limits: tuple[HostLimit, ...] = ()
    in_flight: tuple[Sent, ...] = ()
    resend: bool = False
    foreign: Resources | None = None
    foreign_why: str = ""
    last_sent: Resources | None = None
    arrived_sent_at: float = -math.inf
    refreshed_at: float | None = None
    refusal: str = ""
    refused_at: float | None = None
    unknown: bool = False

    def belief(self, resource: ResourceName) -> int:
        """The most that the framework's scheduler may promise of one resource."""
        most = self.allocated.amount(resource)
        if self.state is NodeState.GONE:
            return most
        if self.in_force is not None:
            most = max(most, self.in_force.amount(resource))
        for sent in self.in_flight:
            most = max(most, sent.size.amount(resource))
        return most

    @property
    def newest_size(self) -> Resources | None:
        """The newest size sent, or the one in force if that has arrived; `None` if neither is known."""
        newest = self.in_flight[-1] if self.in_flight else None
        return newest.size if newest is not None and newest.sent_at > self.arrived_sent_at else self.in_force

    @property
    def may_be_armed(self) -> bool:
        """Whether somebody else's deadline may be running: more is allocated than the size in force, and no size was
        sent yet.
        """
        if self.in_force is None or self.in_flight or self.last_sent is not None:
            return False
        return larger(self.allocated, self.in_force) != self.in_force

    def most(self, resource: ResourceName) -> tuple[int | None, HostLimit | None]:
        """What it may be sized to in whole units, by the framework and the host; the limit of the host if that decides.

        `None`: there is no bound.
        """
        unit = self.unit.amount(resource)
        most = None if self.maximum is None else self.maximum.amount(resource) // unit * unit
        limit = min((each for each in self.limits if each.resource == resource), key=lambda e: e.amount, default=None)
        if limit is None or (most is not None and most <= limit.amount):
            return most, None
        return limit.amount // unit * unit, limit

    def newest(self, resource: ResourceName) -> int | None:
        """One resource of `newest_size`."""
        size = self.newest_size
        return None if size is None else size.amount(resource)


def observed(row: Row | None, key: RowKey, report: ReportRow, now: float, in_flight_seconds: float) -> Row:
    """The row after a report. A report older than the newest one changes nothing; a missing size stays as it was."""
    asked_at = now - report.age_seconds
    if row is not None and asked_at < row.measured_at:
        return row
    if row is None:
        row = Row(
            key=key,
            state=report.state,
            unit=report.unit,
            floor=report.floor,
            allocated=report.allocated,
            measured_at=asked_at,
        )
    gone = report.state is NodeState.GONE
    in_force = ZERO if gone else report.in_force
    seen = replace(
        row,
        state=report.state,
        unit=report.unit,
        floor=ZERO if gone else report.floor,
        maximum=ZERO if gone else report.maximum,
        allocated=report.allocated,
        measured_at=asked_at,
        in_force=row.in_force if in_force is None else in_force,
        started_at=None if report.started_age_seconds is None else now - report.started_age_seconds,
        partitions=report.partitions,
    )
    if row.unknown and row.refused_at is not None and asked_at > row.refused_at and seen.state is NodeState.RUNNING:
        seen = replace(seen, refused_at=None, unknown=False)  # it knows the node by now
    return seen if in_force is None else _settled(seen, row.in_force, in_force, in_flight_seconds)


def _settled(row: Row, before: Resources | None, in_force: Resources, in_flight_seconds: float) -> Row:
    """The row without the sizes in flight that a report settles; says whether somebody else was at work.

    `before` and `in_force`: what was in force by the report before and by this one.
    """
    gone = row.state is NodeState.GONE
    newest = next((s for s in reversed(row.in_flight) if s.answered), None)
    told_apart = newest is not None and [s.size for s in row.in_flight].count(newest.size) == 1
    shown = gone or (newest is not None and newest.size == in_force and told_apart)
    arrived = newest is not None and newest.over(row.measured_at) and shown
    kept = tuple(
        s for s in row.in_flight if not (s.answered and arrived) and not s.over(row.measured_at - in_flight_seconds)
    )
    if newest is not None and arrived:
        return replace(row, in_flight=kept, foreign=None, arrived_sent_at=newest.sent_at)
    if gone:
        return replace(row, in_flight=kept, foreign=None)
    if row.state is NodeState.DRAINING:  # the framework takes it out, and sizes it as it likes
        return replace(row, in_flight=kept)
    lost = newest is not None and newest not in kept
    ours = any(s.size == in_force for s in row.in_flight)
    if not ours and before is not None and (lost or before != in_force):
        foreign = None if in_force == row.last_sent else in_force
        return replace(row, in_flight=kept, resend=True, foreign=foreign, refusal="", refused_at=None)
    return replace(row, in_flight=kept)


def differ_by_age_alone(one: Row, other: Row) -> bool:
    """Whether two states of a row say the same, whenever they were reported."""
    return one is other or replace(one, measured_at=other.measured_at, started_at=other.started_at) == other


def at_least(row: Row, seen: Resources | None) -> Row:
    """The row with no less allocated than the tasks seen on the node were promised, whatever the framework says."""
    if seen is None:
        return row
    says = row.allocated
    if seen.cpu_milli <= says.cpu_milli and seen.memory_bytes <= says.memory_bytes:
        return row
    return replace(row, allocated=larger(says, seen))


def larger(one: Resources, other: Resources) -> Resources:
    """The larger amount of each resource."""
    return Resources(max(one.cpu_milli, other.cpu_milli), max(one.memory_bytes, other.memory_bytes))


def expired(row: Row, now: float, in_flight_seconds: float) -> Row:
    """The row of a node that is gone without the sizes that can no longer be carried out: no report may tell of it."""
    if row.state is not NodeState.GONE or not row.in_flight:
        return row
    return replace(row, in_flight=tuple(s for s in row.in_flight if not s.over(now - in_flight_seconds)))


def sent(row: Row, size: Resources, now: float) -> Row:
    """The row after a size was handed to the framework: in flight until the framework shows otherwise."""
    return replace(row, in_flight=(*row.in_flight, Sent(size=size, sent_at=now)), resend=False)


def answered(row: Row, sent_at: float, size: Resources, now: float) -> Row:
    """The row after the framework took the size sent then, as `size`."""
    taken = (replace(s, size=size, ended_at=now, answered=True) if s.of_call(sent_at) else s for s in row.in_flight)
    return replace(row, in_flight=tuple(taken), last_sent=size, refreshed_at=now, refusal="", refused_at=None)


def refused(row: Row, sent_at: float, reason: str, now: float, *, unknown: bool = False) -> Row:
    """The row after the framework said that it did not take the size sent then: it is not asked again at once.

    :param unknown: it does not know the node, as after its own start; it is asked once more as soon as it reports the
        node as running.
    """
    kept = tuple(s for s in row.in_flight if not s.of_call(sent_at))
    return replace(row, in_flight=kept, refusal=reason, refused_at=now, unknown=unknown and not row.refusal)


def given_up(row: Row) -> Row:
    """The row of a node without a daemon: nothing can start there, whatever its framework has promised."""
    return replace(row, state=NodeState.GONE, allocated=ZERO, in_force=ZERO, floor=ZERO, maximum=ZERO, in_flight=())


def unanswered(row: Row, sent_at: float, now: float) -> Row:
    """The row after the call of the size sent then ended without an answer: it may still be carried out.

    An earlier unanswered one of the same size says nothing more.
    """
    sizes = [s.size for s in row.in_flight if s.of_call(sent_at)]
    kept = (s for s in row.in_flight if s.answered or s.ended_at is None or s.size not in sizes)
    ended = (replace(s, ended_at=now) if s.of_call(sent_at) else s for s in kept)
    return replace(row, in_flight=tuple(ended), resend=True, last_sent=sizes[-1] if sizes else row.last_sent)


def resumed(row: Row, sizes: Iterable[Resources], now: float) -> Row:
    """The row with sizes that an earlier process had in flight: all of them may still be carried out, or none."""
    old = tuple(Sent(size=size, sent_at=now, ended_at=now) for size in sizes)
    return replace(row, in_flight=(*old, *row.in_flight), resend=row.resend or bool(old))
