"""Offers that are too small for anything that waits.

What an offer adds is of no use to a framework whose smallest pending request does not fit into it: its scheduler would
look at the node again and again, and others are kept from what is added. So it is not made, until it is large enough.
"""

from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.rows import ZERO, Row
from fallow_hookspecs import RESOURCE_NAMES, Capabilities, Pending, ResourceName, Resources


def too_small(due: DueOffer, row: Row, pending: Pending | None, capabilities: Capabilities | None) -> str:
    """Why an offer is not made, in words; empty where it is.

    It is made unless it does nothing but grow, by more than a unit (that much renews an offer), and from a size that is
    no less than its floor and than what is allocated. A resource that the framework does not heed keeps nothing away.
    """
    newest = row.newest_size
    if pending is None or pending.smallest is None or pending.total == ZERO or newest is None or due.take_back:
        return ""
    if not _only_grows(due.size, newest, row):
        return ""
    for name in RESOURCE_NAMES:
        if name == "cpu" and capabilities is not None and not capabilities.cpu.honoured:
            continue
        room, least = due.size.amount(name) - row.allocated.amount(name), pending.smallest.amount(name)
        if room < least:
            return f"too small for the smallest pending request: {_words(name, room)} free of {_words(name, least)}"
    return ""


def _only_grows(size: Resources, newest: Resources, row: Row) -> bool:
    grows = [size.amount(name) - newest.amount(name) for name in RESOURCE_NAMES]
    is_enough = all(
        newest.amount(name) >= max(row.floor.amount(name), row.allocated.amount(name)) for name in RESOURCE_NAMES
    )
    more = any(by > row.unit.amount(name) for by, name in zip(grows, RESOURCE_NAMES, strict=True))
    return min(grows) >= 0 and more and is_enough


def _words(name: ResourceName, value: int) -> str:
    return f"{value / 1000:.2f} cores" if name == "cpu" else f"{value / (1 << 30):.2f} GiB"
