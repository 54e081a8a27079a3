"""Which pending requests a node can serve, where a framework's nodes are in partitions, as by YARN's node labels."""

from collections.abc import Callable, Iterable, Mapping

from fallow_core.ledger.rows import ZERO, Row
from fallow_hookspecs import Pending, Resources


def servable(pending: Pending | None, by_partition: Mapping[str, Pending], rows: Iterable[Row]) -> Pending | None:
    """The pending requests that these rows can serve; `None` if that is unknown.

    :param pending: those of the whole framework. It is the answer where a row can serve all partitions.
    :param by_partition: the part of each partition; one that is missing is unknown.
    :param rows: the rows of one cluster on one node.
    """
    of_rows = [row.partitions for row in rows]
    if not of_rows or not all(of_rows):
        return pending
    names = sorted({name for partitions in of_rows for name in partitions})
    if not by_partition.keys() >= set(names):
        return None
    parts = [by_partition[name] for name in names]
    return parts[0] if len(parts) == 1 else _sum(parts)


def elsewhere(pending: Pending | None, here: Pending | None) -> Resources:
    """What is pending in partitions that these rows cannot serve; nothing where either is unknown."""
    if pending is None or here is None:
        return ZERO
    return Resources(
        max(0, pending.total.cpu_milli - here.total.cpu_milli),
        max(0, pending.total.memory_bytes - here.total.memory_bytes),
    )


def _sum(parts: list[Pending]) -> Pending:
    """A request that is not known in one part may be smaller, or larger, than those of the others."""
    waiting = [part for part in parts if part.total != ZERO] or parts[:1]
    smallest = [part.smallest for part in waiting if part.smallest is not None]
    largest = [part.largest for part in waiting if part.largest is not None]
    return Pending(
        total=Resources(sum(p.total.cpu_milli for p in parts), sum(p.total.memory_bytes for p in parts)),
        smallest=_each(min, smallest) if len(smallest) == len(waiting) else None,
        largest=_each(max, largest) if len(largest) == len(waiting) else None,
        detail=", ".join(part.detail for part in parts if part.detail),
    )


def _each(choose: Callable[[Iterable[int]], int], sizes: list[Resources]) -> Resources:
    return Resources(choose([s.cpu_milli for s in sizes]), choose([s.memory_bytes for s in sizes]))
