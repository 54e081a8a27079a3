"""Which sizes an orderly stop, `fallow restore`, or the removal of a cluster leaves behind."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.node_ledger import NodeLedger
from fallow_core.ledger.rows import ZERO, Row, RowKey, larger
from fallow_core.model.policy import ExitMode
from fallow_core.planner.memory import Original
from fallow_core.planner.state import SizesLeftBehind
from fallow_hookspecs import RESOURCE_NAMES, NodeState, ResourceName, Resources

UNSEEN_SECONDS = 600.0
"""A node that nobody has named for so long, and whose daemon is not seen, is no longer there."""


def to_leave(rows: Iterable[Row], originals: Mapping[RowKey, Original], sizes: SizesLeftBehind) -> list[DueOffer]:
    """The rows whose size to leave behind was not sent, or did not arrive. What is refused stays as it is."""
    due = []
    for row in rows:
        size = _size(row, originals.get(row.key), sizes.mode)
        missing = size != row.newest_size or (row.resend and size != row.in_force)
        refused = row.refused_at is not None and row.refused_at >= sizes.since
        if size is not None and missing and not refused and row.state is NodeState.RUNNING:
            due.append(DueOffer(key=row.key, size=size, urgent=True, why=f"the size to leave behind: {sizes.mode}"))
    return due


def within_room(
    due: Iterable[DueOffer], rows: Mapping[RowKey, Row], ledgers: Mapping[str, NodeLedger]
) -> list[DueOffer]:
    """The same for a cluster that leaves others behind: it grows out of what nobody may promise. `rows`: of all."""
    beliefs = {(key, name): row.belief(name) for key, row in rows.items() for name in RESOURCE_NAMES}
    found = []
    for d in due:
        size = Resources(*(_room(d.size, rows[d.key], ledgers[d.key.node], beliefs, name) for name in RESOURCE_NAMES))
        if size != rows[d.key].newest_size or rows[d.key].resend:
            beliefs |= {(d.key, name): max(beliefs[d.key, name], size.amount(name)) for name in RESOURCE_NAMES}
            found.append(replace(d, size=size))
    return found


def _room(
    size: Resources,
    row: Row,
    node: NodeLedger,
    beliefs: Mapping[tuple[RowKey, ResourceName], int],
    resource: ResourceName,
) -> int:
    newest, wanted = row.newest(resource), size.amount(resource)
    if newest is None or wanted <= newest:
        return wanted
    ledger = node.of(resource)
    batch = 0 if ledger.capacity is None else ledger.capacity.batch
    others = sum(
        belief
        for (key, name), belief in beliefs.items()
        if name == resource and key.node == row.key.node and key != row.key
    )
    others = max(others, ledger.believed - row.belief(resource))  # tasks are seen that no framework tells of
    unit = row.unit.amount(resource)
    return min(wanted, max(newest, (batch - others) // unit * unit))


def still_counts(row: Row, daemon: str, others: Collection[str], now: float, *, lends: bool) -> str:
    """Why a row of a cluster that is no longer configured stays in the ledger; empty if it need not.

    Nobody else may be lent what its scheduler may still promise. `lends`: sizes are sent at all. `daemon`: its process,
    empty where none is seen. `others`: the daemons of the clusters that are configured; the same one may be among them
    if the cluster was given another name.
    """
    name = row.key.framework_node
    if not daemon and now - row.measured_at >= UNSEEN_SECONDS:
        return ""
    if row.in_flight:
        return f"a size is on its way to {name}"
    if daemon in others:
        return ""
    if row.allocated != ZERO:
        return f"tasks run on {name}"
    if lends and any(row.belief(resource) > row.floor.amount(resource) for resource in RESOURCE_NAMES):
        return f"its scheduler may still start tasks on {name}"
    return ""


def _size(row: Row, original: Original | None, mode: ExitMode) -> Resources | None:
    """Never below the floor, unless it is below already; never a growth for the floor."""
    newest = row.newest_size
    if mode is ExitMode.FLOOR and newest is not None:
        return Resources(min(row.floor.cpu_milli, newest.cpu_milli), min(row.floor.memory_bytes, newest.memory_bytes))
    if mode is ExitMode.ORIGINAL and original is not None:
        return larger(row.floor, original.size)
    return None
