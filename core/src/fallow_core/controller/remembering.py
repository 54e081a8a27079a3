"""What the journal should say, from the rows as they are. Pure."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.state.publish_journal import Content, Original


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A row about to be sent a size. `started` tells one start of its daemon from another; empty where not seen."""

    row: Row
    due: DueOffer
    started: str = ""


def without_what_is_over(
    content: Content, rows: Iterable[Row], awaited: Collection[RowKey], clusters: Collection[str]
) -> Content:
    """The sizes in flight as the rows have them, and nothing of rows that are gone.

    What is known of `awaited` rows, and of clusters that are not among `clusters` now, stays. The sizes found first
    stay too: a node that is lost may come back with the size that it was last sent.
    """
    rows = tuple(rows)
    seen = {row.key for row in rows}

    def stays(key: RowKey) -> bool:
        return key in awaited or key.cluster not in clusters

    in_flight = {key: sizes for key, sizes in content.in_flight.items() if stays(key) and key not in seen}
    in_flight |= {row.key: tuple(sent.size for sent in row.in_flight) for row in rows if row.in_flight}
    refreshed = {key: when for key, when in content.refreshed.items() if stays(key) or key in seen}
    return replace(content, in_flight=in_flight, refreshed=refreshed)


def with_sizes(content: Content, sendings: Iterable[Sending], wall_now: float) -> Content:
    """The content once these sizes are in flight; of a row that is sent its first size, with the one found first."""
    in_flight, refreshed, originals = dict(content.in_flight), dict(content.refreshed), dict(content.originals)
    for sending in sendings:
        row = sending.row
        in_flight[row.key] = (*(sent.size for sent in row.in_flight), sending.due.size)
        refreshed[row.key] = wall_now
        original = _original(row, originals.get(row.key), sending.started)
        if original is not None:
            originals[row.key] = original
    return replace(content, in_flight=in_flight, refreshed=refreshed, originals=originals)


def _original(row: Row, known: Original | None, started: str) -> Original | None:
    """The size found first; that of a daemon that was started anew once it is seen in force."""
    if known is None:
        return None if row.in_force is None else Original(size=row.in_force, started=started)
    if not started or started == known.started:
        return known
    if not known.started:  # its process was not seen when the size was
        return replace(known, started=started)
    if row.in_force is not None and row.in_force == row.foreign:
        return Original(size=row.in_force, started=started)
    return known
