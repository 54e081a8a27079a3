"""Before no node of a cluster is as large as its largest task.

A framework that takes its maximum allocation from its largest node refuses tasks that ask for more than any node has.
So before sizes are sent that take the last node below the largest task that runs or waits, this is said, or one node
keeps that size: what it then has above its target stays believed, and counts as exposure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.rows import Row, RowKey, larger
from fallow_core.model.policy import KeepLargest
from fallow_hookspecs import RESOURCE_NAMES, NodeState, Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is due after that. `warning`: no node will be as large, or one is held at that size; empty otherwise."""

    due: tuple[DueOffer, ...]
    warning: str = ""


def keep_largest(
    due: Sequence[DueOffer],
    rows: Mapping[RowKey, Row],
    largest: Resources,
    mode: KeepLargest,
    elsewhere: Resources | None = None,
) -> Kept:
    """What is due of one cluster, with `rows` all that it has, and `largest` its largest task in each resource.

    While its largest node `elsewhere`, which is not lent from here, is as large, no node here has to be.
    A row that is being taken back is not held. The one is held for which that is the least, ties by name.
    """
    if elsewhere is not None and _fits(largest, elsewhere):
        return Kept(due=tuple(due))
    shrinking = [d for d in due if _is_large(rows[d.key], largest) and not _fits(largest, d.size)]
    sizes = {d.key: d.size for d in due}
    if not shrinking or any(
        _is_large(row, largest) and (key not in sizes or _fits(largest, sizes[key])) for key, row in rows.items()
    ):
        return Kept(due=tuple(due))
    candidates = [d for d in shrinking if not d.take_back]
    if mode is KeepLargest.WARN or not candidates:
        return Kept(due=tuple(due), warning=f"no node is as large as the largest task ({_words(largest)}) any more")
    held = min(candidates, key=lambda d: (_missing(largest, d.size), d.key))
    size = larger(held.size, largest)
    kept = [d for d in due if d.key != held.key]
    if size != rows[held.key].newest_size:
        kept.append(replace(held, size=size))
    warning = f"{held.key.framework_node} is held at {_words(size)}, as no other node is as large as the largest task"
    return Kept(
        due=tuple(sorted(kept, key=lambda d: (-d.size.memory_bytes, -d.size.cpu_milli, d.key))), warning=warning
    )


def _is_large(row: Row, largest: Resources) -> bool:
    size = row.newest_size
    return row.state is NodeState.RUNNING and size is not None and _fits(largest, size)


def _fits(task: Resources, size: Resources) -> bool:
    return all(task.amount(name) <= size.amount(name) for name in RESOURCE_NAMES)


def _missing(task: Resources, size: Resources) -> tuple[int, int]:
    memory, cpu = task.memory_bytes - size.memory_bytes, task.cpu_milli - size.cpu_milli
    return max(memory, 0), max(cpu, 0)


def _words(size: Resources) -> str:
    return f"{size.cpu_milli} milli-cores and {size.memory_bytes} bytes"
