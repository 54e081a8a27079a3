"""Limits and texts that several findings share."""

from collections.abc import Collection, Iterable

MANY_NODES = 1000
"""From this number of nodes on, the scheduler's work per node matters for its load."""

SHOWN_NODES = 10


def some_of(ids: Collection[str]) -> str:
    """The first few of many ids, and the number of the others."""
    listed = sorted(ids)
    more = f" and {len(listed) - SHOWN_NODES} more" if len(listed) > SHOWN_NODES else ""
    return (", ".join(listed[:SHOWN_NODES]) or "no node") + more


def short_names(names: Iterable[str]) -> set[str]:
    """The first labels of host names, in lower case; an address has none."""
    labels = (name.lower().partition(".")[0] for name in names if ":" not in name)
    return {label for label in labels if not label.isdigit()}
