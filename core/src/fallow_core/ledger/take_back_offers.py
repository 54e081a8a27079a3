"""What take-backs do to the sizes that are due. Pure.

The framework knows one deadline for a node, and every update without one moves it away. So while a take-back is under
way its row is left alone; where a size has to be sent again it carries what is left of the notice. A resource that is
not meant has to fit, or it would be taken back too: it is sent at no less than the scheduler may have promised, and
drains again when the take-back is over.

A start or a cancel is due until a size was sent after it: at the moment of the decision a call may be under way.
"""

import math
from collections.abc import Iterable, Mapping

from fallow_core.ledger.due_offers import DueOffer, moved
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.ledger.take_back import Active, Decision
from fallow_hookspecs import RESOURCE_NAMES, ResourceName, Resources

Decisions = Mapping[ResourceName, Mapping[RowKey, Decision]]


def with_take_backs(due: Iterable[DueOffer], rows: Iterable[Row], decisions: Decisions, now: float) -> list[DueOffer]:
    """The sizes that are due, with take-backs that start, run or are cancelled."""
    by_key = {d.key: d for d in due}
    for row in rows:
        own = {name: found[row.key] for name, found in decisions.items() if row.key in found}
        active = {name: d.state.active for name, d in own.items() if d.state.active is not None}
        untold = {name: d for name, d in own.items() if _is_untold(d, row)}
        before = by_key.get(row.key)
        if row.newest_size is None or not (active or untold) or (_is_refused(row, untold) and before is None):
            continue
        if not untold and not (row.resend and before is not None):
            by_key.pop(row.key, None)
            continue
        wanted = row.newest_size if before is None else before.size
        size = Resources(*(_size(row, wanted, name, active, untold) for name in RESOURCE_NAMES))
        why = "; ".join(
            f"{name}: take-back {'starts' if name in active else 'is cancelled'}: {d.why}" for name, d in untold.items()
        )
        by_key[row.key] = DueOffer(
            key=row.key,
            # A size that the framework has already would be no update to it. A take-back is exact, as a unit less could
            # end one more task: how its size becomes an update is the plugin's part.
            size=size if active else moved(size, row, (row.in_force, *(sent.size for sent in row.in_flight))),
            urgent=True,
            why=why or (before.why if before is not None else ""),
            take_back={name: a.left_seconds(now) for name, a in active.items()},
        )
    return list(by_key.values())


def cancels(rows: Iterable[Row], decisions: Decisions) -> frozenset[RowKey]:
    """The rows with a take-back that was cancelled, of which the framework has not been told."""
    return frozenset(
        row.key
        for row in rows
        for found in decisions.values()
        if row.key in found and found[row.key].state.active is None and _is_untold(found[row.key], row)
    )


def _decided_at(decision: Decision) -> float | None:
    """When the newest start or cancel was decided."""
    active = decision.state.active
    return decision.state.cancelled_at if active is None else active.ordered_at


def _is_untold(decision: Decision, row: Row) -> bool:
    """Whether the framework was sent nothing since a start or a cancel."""
    decided_at = _decided_at(decision)
    sent_at = max(row.arrived_sent_at, *(sent.sent_at for sent in row.in_flight), -math.inf)
    return decided_at is not None and sent_at < decided_at


def _is_refused(row: Row, untold: Mapping[ResourceName, Decision]) -> bool:
    """Whether the framework refused what was untold: then it is asked again when the row is due anyway."""
    decided = [at for d in untold.values() if (at := _decided_at(d)) is not None]
    return row.refused_at is not None and bool(decided) and row.refused_at >= max(decided)


def _size(
    row: Row,
    wanted: Resources,
    name: ResourceName,
    active: Mapping[ResourceName, Active],
    untold: Mapping[ResourceName, Decision],
) -> int:
    if name in active:
        return active[name].size
    if active:
        return max(wanted.amount(name), row.belief(name))
    return max(wanted.amount(name), untold[name].fits) if name in untold else wanted.amount(name)
