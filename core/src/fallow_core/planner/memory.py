"""The memory survives a restart: sizes in flight, the sizes found first, switches. A round returns its changes.
Pure.

The caller writes a change down before it sends the sizes that the change tells of.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from fallow_core.ledger.rows import Row, RowKey
from fallow_core.planner.switches import Switch
from fallow_hookspecs import RESOURCE_NAMES, Resources

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from fallow_core.ledger.due_offers import DueOffer

MOST_GONE = 16
"""More NodeManagers of one cluster than this are not away from one host and come back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """The size that a row had before Fallow first changed it. `started` tells one start of its daemon from another."""

    size: Resources
    started: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A person gave up a state file that could not be read: who, when (seconds since 1970) and why."""

    who: str
    when: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What to remember from now on, by row or scope; `None` where it is to be forgotten."""

    known: Mapping[RowKey, bool | None] = field(default_factory=dict)
    in_flight: Mapping[RowKey, tuple[Resources, ...] | None] = field(default_factory=dict)
    originals: Mapping[RowKey, Original | None] = field(default_factory=dict)
    refreshed: Mapping[RowKey, float | None] = field(default_factory=dict)
    switches: Mapping[str, Switch | None] = field(default_factory=dict)
    accepted: Mapping[str, Acceptance | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(getattr(self, each.name) for each in fields(self))


@dataclass(slots=True, kw_only=True)
class Memory:
    """The state that survives a restart. `known`: the rows that were reported. After a restart nothing grows beside
    them until they are reported again. `refreshed`: when a row was last sent a size, in seconds since 1970. `accepted`:
    the state files that a person gave up, by the name under which they are kept.
    """

    known: dict[RowKey, bool] = field(default_factory=dict)
    in_flight: dict[RowKey, tuple[Resources, ...]] = field(default_factory=dict)
    originals: dict[RowKey, Original] = field(default_factory=dict)
    refreshed: dict[RowKey, float] = field(default_factory=dict)
    switches: dict[str, Switch] = field(default_factory=dict)
    accepted: dict[str, Acceptance] = field(default_factory=dict)

    def apply(self, change: Change) -> None:
        """Take over a change."""
        for each in fields(change):
            kept: dict[Any, Any] = getattr(self, each.name)
            for key, value in getattr(change, each.name).items():
                if value is None:
                    kept.pop(key, None)
                else:
                    kept[key] = value


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A row that is about to be sent a size. `started` tells one start of its daemon from another; empty if unseen."""

    row: Row
    due: DueOffer
    started: str = ""


def change_of(
    memory: Memory,
    rows: Mapping[RowKey, Row | None],
    kept: Collection[RowKey],
    sendings: Iterable[Sending],
    wall_now: float,
    *,
    lends: bool,
    is_gone: Callable[[RowKey], bool],
) -> Change:
    """What differs from what is remembered.

    The size found first is kept when its row is gone: a node that is lost may come back with the size that it was last
    sent. Of such rows `MOST_GONE` are kept for each node and cluster, those found last: a NodeManager without a fixed
    port is a new row at each start, and the rows before never come back.

    :param rows: the rows that may have changed; `None` for one that is gone.
    :param kept: rows of which nothing is forgotten, as nobody has reported them yet, or their cluster is not
    configured.
    :param sendings: what is sent now: it counts as in flight from now on.
    :param lends: sizes are sent; otherwise rows that nobody resized need not be known after a restart.
    :param is_gone: whether the cluster of a row reports, and does not name it.
    """
    known: dict[RowKey, bool | None] = {}
    in_flight: dict[RowKey, tuple[Resources, ...] | None] = {}
    refreshed: dict[RowKey, float | None] = {}
    originals: dict[RowKey, Original | None] = {}
    for key, row in rows.items():
        sizes = () if row is None else tuple(sent.size for sent in row.in_flight)
        if (row is not None or key not in kept) and sizes != memory.in_flight.get(key, ()):
            in_flight[key] = sizes or None
        if row is not None and lends and key not in memory.known:
            known[key] = True
        if row is None and key not in kept:
            known |= dict.fromkeys({key} & memory.known.keys())
            refreshed |= dict.fromkeys({key} & memory.refreshed.keys())
    for sending in sendings:
        row = sending.row
        in_flight[row.key] = (*(sent.size for sent in row.in_flight), sending.due.size)
        refreshed[row.key] = wall_now
        before = memory.originals.get(row.key)
        original = _original(row, before, sending.started)
        if original is not None and original != before:
            originals[row.key] = original
    originals |= dict.fromkeys(_not_needed(memory, originals.keys() - memory.originals.keys(), is_gone))
    return Change(known=known, in_flight=in_flight, originals=originals, refreshed=refreshed)


def may_go_unrecorded(sending: Sending, memory: Memory) -> bool:
    """Whether a size may be sent although it could not be written down: it shrinks, and the original size is known."""
    newest = [(sending.row.newest(name), sending.due.size.amount(name)) for name in RESOURCE_NAMES]
    shrinks = all(old is not None and old >= new for old, new in newest)
    return shrinks and sending.row.key in memory.originals


def _not_needed(memory: Memory, found: Collection[RowKey], is_gone: Callable[[RowKey], bool]) -> Iterator[RowKey]:
    """The rows that are gone and too many, where new ones were found."""
    gone: dict[tuple[str, str], list[RowKey]] = {(key.node, key.cluster): [] for key in found}
    for key in memory.originals if gone else ():
        if (key.node, key.cluster) in gone and is_gone(key):
            gone[key.node, key.cluster].append(key)
    for keys in gone.values():
        yield from keys[:-MOST_GONE]


def _original(row: Row, known: Original | None, started: str) -> Original | None:
    """The size found first; that of a daemon that was started anew once it is seen in force."""
    if known is None:
        return None if row.in_force is None else Original(size=row.in_force, started=started)
    if not started or started == known.started:
        return known
    if not known.started:  # its process was not seen when the size was
        return Original(size=known.size, started=started)
    if row.in_force is not None and row.in_force == row.foreign:
        return Original(size=row.in_force, started=started)
    return known
