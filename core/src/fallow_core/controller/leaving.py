"""Which sizes an orderly stop, or `fallow restore`, leaves behind. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from fallow_core.controller.journal import Original
from fallow_core.ledger.publishing import Due
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.policy import ExitMode
from fallow_hookspecs import NodeState, Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """Since then a cluster gets the sizes to leave behind, and no other."""

    mode: ExitMode
    since: float


def to_leave(rows: Iterable[Row], originals: Mapping[RowKey, Original], leaving: Leaving) -> list[Due]:
    """The rows whose size to leave behind was not sent, or did not arrive. What is refused stays as it is."""
    due = []
    for row in rows:
        size = _size(row, originals.get(row.key), leaving.mode)
        missing = size != row.newest_size or (row.resend and size != row.in_force)
        refused = row.refused_at is not None and row.refused_at >= leaving.since
        if size is not None and missing and not refused and row.state is NodeState.RUNNING:
            due.append(Due(key=row.key, size=size, urgent=True, why=f"the size to leave behind: {leaving.mode}"))
    return due


def _size(row: Row, original: Original | None, mode: ExitMode) -> Resources | None:
    """Never below the floor, unless it is below already; never a growth for the floor."""
    newest = row.newest_size
    if mode is ExitMode.FLOOR and newest is not None:
        return _by_resource(min, row.floor, newest)
    if mode is ExitMode.ORIGINAL and original is not None:
        return _by_resource(max, row.floor, original.size)
    return None


def _by_resource(choose: Callable[[int, int], int], one: Resources, other: Resources) -> Resources:
    return Resources(
        cpu_milli=choose(one.cpu_milli, other.cpu_milli), memory_bytes=choose(one.memory_bytes, other.memory_bytes)
    )
