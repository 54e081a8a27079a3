"""One row of the ledger: one of a framework's nodes, what its scheduler was told, and what it may therefore promise.

The belief of a row is the most that the framework's scheduler may still promise there:

    belief = max(allocated, size in force, every size in flight)

A size is in flight from the moment it is sent. It leaves flight

- answered: with the first report, asked for after the answer, that shows the newest answered size in force; or, if a
  report shows another size `in_flight_seconds` after the answer, because somebody else changed it;
- unanswered: `in_flight_seconds` after its call ended, since it may be carried out until then;
- in any case when the framework says that the node is gone.

All functions return a new row; times are monotonic seconds.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from fallow_hookspecs import NodeState, ReportRow, ResourceName, Resources

ZERO = Resources(0, 0)


class RowKey(NamedTuple):
    """Which row: the node, the cluster (`framework/cluster`), and the framework's own name of its node."""

    node: str
    cluster: str
    framework_node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A size in flight. `answered_at`: the framework took it; `ended_at`: its call ended without an answer."""

    size: Resources
    sent_at: float
    answered_at: float | None = None
    ended_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is known of one row. `measured_at` is when the request of the newest report began.

    `resend`: the newest size sent did not arrive, or somebody else changed it. `foreign` is the size that somebody
    else set, for showing. `refreshed_at` is when the framework last took a size. `refusal`: why the framework did not
    take the newest size, since `refused_at`.
    """

    key: RowKey
    state: NodeState
    unit: Resources
    floor: Resources
    maximum: Resources | None
    allocated: Resources
    in_force: Resources | None
    measured_at: float
    started_at: float | None = None
    in_flight: tuple[Sent, ...] = ()
    resend: bool = False
    foreign: Resources | None = None
    refreshed_at: float | None = None
    refusal: str = ""
    refused_at: float | None = None

    def belief(self, resource: ResourceName) -> int:
        """The most that the framework's scheduler may promise of one resource."""
        sizes = [self.allocated, *(sent.size for sent in self.in_flight)]
        if self.in_force is not None:
            sizes.append(self.in_force)
        return max(size.amount(resource) for size in sizes)

    def newest(self, resource: ResourceName) -> int | None:
        """The newest size sent, or the one in force if nothing is in flight; `None` if neither is known."""
        size = self.in_flight[-1].size if self.in_flight else self.in_force
        return None if size is None else size.amount(resource)


def observed(row: Row | None, key: RowKey, report: ReportRow, now: float, in_flight_seconds: float) -> Row:
    """The row after a report. A report older than the newest one changes nothing; a missing size stays as it was."""
    asked_at = now - report.age_seconds
    if row is not None and asked_at < row.measured_at:
        return row
    before = row.in_force if row is not None else None
    seen = Row(
        key=key,
        state=report.state,
        unit=report.unit,
        floor=report.floor,
        maximum=report.maximum,
        allocated=report.allocated,
        in_force=report.in_force if report.in_force is not None else before,
        measured_at=asked_at,
        started_at=None if report.started_age_seconds is None else now - report.started_age_seconds,
    )
    if report.state is NodeState.GONE:
        return replace(seen, in_force=ZERO)
    if row is None:
        return seen
    seen = replace(
        seen,
        in_flight=row.in_flight,
        resend=row.resend,
        foreign=row.foreign,
        refreshed_at=row.refreshed_at,
        refusal=row.refusal,
        refused_at=row.refused_at,
    )
    if not seen.in_flight and before is not None and seen.in_force != before:
        return replace(seen, resend=True, foreign=seen.in_force)
    return _confirmed(seen, report.in_force, in_flight_seconds)


def _confirmed(row: Row, in_force: Resources | None, in_flight_seconds: float) -> Row:
    newest = next((sent for sent in reversed(row.in_flight) if sent.answered_at is not None), None)
    if newest is None or newest.answered_at is None or row.measured_at <= newest.answered_at or in_force is None:
        return row
    unanswered = tuple(sent for sent in row.in_flight if sent.answered_at is None)
    if in_force == newest.size:
        return replace(row, in_flight=unanswered, foreign=None)
    if row.measured_at <= newest.answered_at + in_flight_seconds:
        return row
    if any(sent.size == in_force for sent in unanswered):
        return replace(row, in_flight=unanswered)
    return replace(row, in_flight=unanswered, resend=True, foreign=in_force)


def expired(row: Row, now: float, in_flight_seconds: float) -> Row:
    """The row without the unanswered sizes that can no longer be carried out."""
    kept = tuple(s for s in row.in_flight if s.ended_at is None or now < s.ended_at + in_flight_seconds)
    return row if len(kept) == len(row.in_flight) else replace(row, in_flight=kept)


def sent(row: Row, size: Resources, now: float) -> Row:
    """The row after a size was handed to the framework: in flight until the framework shows otherwise."""
    return replace(row, in_flight=(*row.in_flight, Sent(size=size, sent_at=now)), resend=False)


def answered(row: Row, sent_at: float, size: Resources, now: float) -> Row:
    """The row after the framework took the size sent then, as `size`."""
    taken = (replace(s, size=size, answered_at=now) if s.sent_at == sent_at else s for s in row.in_flight)
    return replace(row, in_flight=tuple(taken), refreshed_at=now, refusal="", refused_at=None)


def refused(row: Row, sent_at: float, reason: str, now: float) -> Row:
    """The row after the framework said that it did not take the size sent then: it is not asked again at once."""
    kept = tuple(s for s in row.in_flight if s.sent_at != sent_at)
    return replace(row, in_flight=kept, refusal=reason, refused_at=now)


def unanswered(row: Row, sent_at: float, now: float) -> Row:
    """The row after the call of the size sent then ended without an answer: it may still be carried out."""
    ended = (replace(s, ended_at=now) if s.sent_at == sent_at else s for s in row.in_flight)
    return replace(row, in_flight=tuple(ended), resend=True)


def resumed(row: Row, sizes: Iterable[Resources], now: float) -> Row:
    """The row with sizes that an earlier process had in flight: all of them may still be carried out."""
    old = tuple(Sent(size=size, sent_at=now, ended_at=now) for size in sizes)
    return replace(row, in_flight=(*old, *row.in_flight))
