"""What take-backs do to the sizes that are due. Pure.

A row with a take-back drains like any other one. When its notice is over, its next offer says besides the size down to
what the framework terminates tasks now. That is due until something was sent after the decision: when it was made a
call may have been under way.
"""

import math
from collections.abc import Iterable, Mapping

from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.ledger.take_back import Active, Decision
from fallow_hookspecs import RESOURCE_NAMES, ResourceName, Resources

Decisions = Mapping[ResourceName, Mapping[RowKey, Decision]]


def with_take_backs(due: Iterable[DueOffer], rows: Iterable[Row], decisions: Decisions) -> list[DueOffer]:
    """The sizes that are due, with what is taken back now."""
    by_key = {d.key: d for d in due}
    for row in rows:
        own = {name: found[row.key] for name, found in decisions.items() if row.key in found}
        active = {name: d.state.active for name, d in own.items() if d.state.active is not None}
        untold = {name: a for name, a in active.items() if _is_untold(a, row)}
        before = by_key.get(row.key)
        newest = row.newest_size
        if newest is None or not untold or (_is_refused(row, untold.values()) and before is None):
            continue
        size = newest if before is None else before.size
        by_key[row.key] = DueOffer(
            key=row.key,
            size=Resources(*(_size(size, name, untold) for name in RESOURCE_NAMES)),
            urgent=True,
            why="; ".join(f"{name}: the notice of a take-back is over" for name in untold),
            take_back={name: a.size for name, a in untold.items()},
        )
    return list(by_key.values())


def _is_untold(active: Active, row: Row) -> bool:
    """Whether the framework was sent nothing since the notice was over."""
    sent_at = max(row.arrived_sent_at, *(sent.sent_at for sent in row.in_flight), -math.inf)
    return active.ordered_at is not None and sent_at < active.ordered_at


def _is_refused(row: Row, untold: Iterable[Active]) -> bool:
    """Whether the framework refused what was untold: then it is asked again when the row is due anyway."""
    decided = [a.ordered_at for a in untold if a.ordered_at is not None]
    return row.refused_at is not None and bool(decided) and row.refused_at >= max(decided)


def _size(size: Resources, name: ResourceName, untold: Mapping[ResourceName, Active]) -> int:
    """One resource of the size: never above what is taken back to."""
    wanted = size.amount(name)
    return min(wanted, untold[name].size) if name in untold else wanted
