"""Words and measures that several findings share."""

from collections.abc import Collection, Iterable

MANY_NODES = 1000
"""From so many nodes on, what the scheduler does for each of them shows in its load."""

SHOWN_NODES = 10


def some_of(ids: Collection[str]) -> str:
    """The first few of many ids, and how many more there are."""
    listed = sorted(ids)
    more = f" and {len(listed) - SHOWN_NODES} more" if len(listed) > SHOWN_NODES else ""
    return (", ".join(listed[:SHOWN_NODES]) or "no node") + more


def short_names(names: Iterable[str]) -> set[str]:
    """The first labels of host names, in lower case; an address has none."""
    labels = (name.lower().partition(".")[0] for name in names if ":" not in name)
    return {label for label in labels if not label.isdigit()}
