"""The containers of one node: what its NodeManagers list, joined with the processes that are there. Pure.

A container that has processes is a task whatever its NodeManager says: one that restarted without recovery does not
know it, one that does not answer says nothing, and a daemon that a container left behind outlives its entry.
"""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Container as Ids
from dataclasses import dataclass, field, replace
from typing import Final

from fallow_hookspecs import TaskState
from fallow_yarn.model.container_id import ContainerId
from fallow_yarn.model.size import Size
from fallow_yarn.nm.containers import Answer, Container, Listing
from fallow_yarn.tasks.process_tree import Found

NOTHING: Final = Size(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A container, the NodeManager it belongs to, and since when it ends (on the caller's clock).

    `had_processes`: some were seen, now or before. `is_sized`: what it requested is known.
    """

    node_id: str
    container: Container
    had_processes: bool
    is_sized: bool = True
    ending_since: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at a node: what each NodeManager answered, and the containers that have processes.

    `at` and `ticks`: when the first was asked, on the caller's clock and on that of start times. `node_of` says which
    NodeManager started a container, by its processes; empty if they do not show it.
    """

    answers: Mapping[str, Answer]
    found: Mapping[str, Found]
    at: float
    ticks: int
    node_of: Callable[[Found], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The containers by id, when each NodeManager was asked for what is here of it, and what could not be told."""

    entries: Mapping[str, Entry] = field(default_factory=dict)
    asked_at: Mapping[str, float] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def after(before: Seen, look: Look, own_ids: Ids[str]) -> Seen:
    """What is known after a look. `own_ids`: all NodeManagers of this node, those that have ended too."""
    entries: dict[str, Entry] = {}
    for node_id, answer in look.answers.items():
        entries |= _listed(node_id, answer, look) if isinstance(answer, Listing) else _kept(node_id, look, before)
    for container_id, found in look.found.items():
        # A container that started after its NodeManager was asked will be listed the next time.
        if container_id not in entries and found.roots and found.roots[0].start_ticks < look.ticks:
            entry = before.entries.get(container_id) or _left_behind(container_id, look.node_of(found), own_ids)
            if entry is not None:
                entries[container_id] = replace(entry, container=replace(entry.container, state=TaskState.RUNNING))
    return Seen(
        entries={
            container_id: _dated(entry, before.entries.get(container_id), look)
            for container_id, entry in entries.items()
        },
        asked_at={
            node_id: look.at if isinstance(answer, Listing) else before.asked_at.get(node_id, look.at)
            for node_id, answer in look.answers.items()
        },
        problems=tuple(_problems(look, entries)),
    )


def _listed(node_id: str, listing: Listing, look: Look) -> dict[str, Entry]:
    """What a NodeManager lists, but for what has ended without a trace."""
    return {
        container_id: Entry(node_id=node_id, container=container, had_processes=container_id in look.found)
        for container_id, container in listing.containers.items()
        if not container.is_done or container_id in look.found
    }


def _kept(node_id: str, look: Look, before: Seen) -> dict[str, Entry]:
    """What a NodeManager that does not answer listed before, but for what has lost its processes."""
    return {
        container_id: replace(entry, had_processes=entry.had_processes or container_id in look.found)
        for container_id, entry in before.entries.items()
        if entry.node_id == node_id and (container_id in look.found or not entry.had_processes)
    }


def _left_behind(container_id: str, node_id: str, own_ids: Ids[str]) -> Entry | None:
    """A container that was never listed, if one of our NodeManagers started it."""
    parsed = ContainerId.parse(container_id)
    if parsed is None or node_id not in own_ids:
        return None
    container = Container(id=parsed, user="", state=TaskState.RUNNING, requested=NOTHING)
    return Entry(node_id=node_id, container=container, had_processes=True, is_sized=False)


def _dated(entry: Entry, before: Entry | None, look: Look) -> Entry:
    """With the time since when it ends: it was first seen to."""
    if entry.container.state is not TaskState.ENDING:
        return replace(entry, ending_since=None)
    since = None if before is None else before.ending_since
    return replace(entry, ending_since=look.at if since is None else since)


def _problems(look: Look, entries: Mapping[str, Entry]) -> Iterator[str]:
    for node_id, answer in look.answers.items():
        if not isinstance(answer, Listing):
            yield str(answer)
        elif answer.unreadable:
            yield f"{node_id}: {answer.unreadable} entries of its list of containers are not readable"
    for container_id, entry in entries.items():
        if not entry.is_sized:
            yield f"{container_id} runs on, but {entry.node_id} does not list it: what it requested is not known"
