"""What take-backs do to the sizes that are due. Pure.

The framework knows one deadline for a node, and every update without one moves it away. So while a take-back is under
way every update of its row carries what is left of the notice; and a resource that is not meant has to fit, or it would
be taken back too: it is sent at no less than what is allocated, and drains again when the take-back is over.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fallow_core.ledger.publishing import Due
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.ledger.take_back import Decision
from fallow_hookspecs import RESOURCE_NAMES, ResourceName, Resources

Decisions = Mapping[ResourceName, Mapping[RowKey, Decision]]


def with_take_backs(due: Iterable[Due], rows: Iterable[Row], decisions: Decisions, now: float) -> list[Due]:
    """The sizes that are due, with take-backs that start, run or are cancelled."""
    by_key = {d.key: d for d in due}
    for row in rows:
        own = {name: found[row.key] for name, found in decisions.items() if row.key in found}
        changed = {name: d for name, d in own.items() if d.start or d.cancel}
        running = {name: d for name, d in own.items() if d.state.active is not None}
        before = by_key.get(row.key)
        if row.newest_size is None or not (changed or (running and before is not None)):
            continue
        wanted = row.newest_size if before is None else before.size
        size = Resources(*(_size(row, wanted, name, own.get(name), bool(running)) for name in RESOURCE_NAMES))
        why = "; ".join(
            f"{name}: take-back {'starts' if d.start else 'is cancelled'}: {d.why}" for name, d in changed.items()
        )
        notice = {name: d.state.active.left_seconds(now) for name, d in running.items() if d.state.active is not None}
        by_key[row.key] = Due(
            key=row.key,
            size=_new(size, row),
            urgent=True,
            why=why or (before.why if before is not None else ""),
            take_back=notice,
        )
    return list(by_key.values())


def _size(row: Row, wanted: Resources, name: ResourceName, decision: Decision | None, running: bool) -> int:
    if decision is not None and decision.state.active is not None:
        return decision.state.active.size
    if decision is not None and decision.cancel:
        return max(wanted.amount(name), decision.fits)
    return max(wanted.amount(name), row.allocated.amount(name)) if running else wanted.amount(name)


def _new(size: Resources, row: Row) -> Resources:
    """Not a size that the framework has already, which is no update to it: a unit less, or more at the floor."""
    unit = row.unit.memory_bytes
    taken = {row.in_force, *(sent.size for sent in row.in_flight)}
    step = -unit if size.memory_bytes - unit >= row.floor.memory_bytes else unit
    while size in taken:
        size = replace(size, memory_bytes=size.memory_bytes + step)
    return size
