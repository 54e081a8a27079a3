"""Tracks the containers of one node: joins what its NodeManagers list with the processes found. Pure.

A container with processes is a task even if its NodeManager does not list it: a NodeManager that restarted without
recovery forgets it, one that does not answer lists nothing, and a daemon that a container started outlives its entry.
"""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Container as Ids
from dataclasses import dataclass, field, replace

from fallow_hookspecs import TaskState
from fallow_yarn.model.container_id import ContainerId
from fallow_yarn.model.size import ZERO
from fallow_yarn.nm.containers import Answer, Container, Listing
from fallow_yarn.tasks.process_tree import Processes


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A container, the NodeManager it belongs to, and since when it is terminating (on the caller's clock).

    `had_processes`: processes of it were found, now or earlier. `is_sized`: its requested size is known.
    """

    node_id: str
    container: Container
    had_processes: bool
    is_sized: bool = True
    ending_since: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One observation of a node: what each NodeManager answered, and the containers that have processes.

    `at` and `ticks`: when the first NodeManager was asked, on the caller's clock and on that of start times. `node_of`
    determines which NodeManager started a container, from its processes; empty if they do not show it.
    """

    answers: Mapping[str, Answer]
    found: Mapping[str, Processes]
    at: float
    ticks: int
    node_of: Callable[[Processes], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedContainers:
    """The containers by id, when each NodeManager gave its list, and why the list is incomplete."""

    entries: Mapping[str, Entry] = field(default_factory=dict)
    asked_at: Mapping[str, float] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def tracked(before: TrackedContainers, observed: Observation, own_ids: Ids[str]) -> TrackedContainers:
    """What is known after a observed. `own_ids`: all NodeManagers of this node, those that have ended too."""
    entries: dict[str, Entry] = {}
    for node_id, answer in observed.answers.items():
        entries |= (
            _listed(node_id, answer, observed) if isinstance(answer, Listing) else _kept(node_id, observed, before)
        )
    for container_id, found in observed.found.items():
        # A container that started after its NodeManager was asked will be listed the next time.
        if container_id not in entries and found.roots and found.roots[0].start_ticks < observed.ticks:
            entry = before.entries.get(container_id) or _left_behind(container_id, observed.node_of(found), own_ids)
            if entry is not None:
                entries[container_id] = replace(entry, container=replace(entry.container, state=TaskState.RUNNING))
    return TrackedContainers(
        entries={
            container_id: _dated(entry, before.entries.get(container_id), observed)
            for container_id, entry in entries.items()
        },
        asked_at={
            node_id: observed.at if isinstance(answer, Listing) else before.asked_at.get(node_id, observed.at)
            for node_id, answer in observed.answers.items()
        },
        problems=tuple(_problems(observed, entries)),
    )


def _listed(node_id: str, listing: Listing, observed: Observation) -> dict[str, Entry]:
    """The containers that a NodeManager lists, without those that are done and have no process."""
    return {
        container_id: Entry(node_id=node_id, container=container, had_processes=container_id in observed.found)
        for container_id, container in listing.containers.items()
        if not container.is_done or container_id in observed.found
    }


def _kept(node_id: str, observed: Observation, before: TrackedContainers) -> dict[str, Entry]:
    """The containers that a silent NodeManager listed before, without those whose processes have ended."""
    return {
        container_id: replace(entry, had_processes=entry.had_processes or container_id in observed.found)
        for container_id, entry in before.entries.items()
        if entry.node_id == node_id and (container_id in observed.found or not entry.had_processes)
    }


def _left_behind(container_id: str, node_id: str, own_ids: Ids[str]) -> Entry | None:
    """The entry of a container that was never listed, if one of our NodeManagers started it."""
    parsed = ContainerId.parse(container_id)
    if parsed is None or node_id not in own_ids:
        return None
    container = Container(id=parsed, user="", state=TaskState.RUNNING, requested=ZERO)
    return Entry(node_id=node_id, container=container, had_processes=True, is_sized=False)


def _dated(entry: Entry, before: Entry | None, observed: Observation) -> Entry:
    """The entry with the time at which the container was first seen terminating."""
    if entry.container.state is not TaskState.TERMINATING:
        return entry if entry.ending_since is None else replace(entry, ending_since=None)
    since = None if before is None else before.ending_since
    return replace(entry, ending_since=observed.at if since is None else since)


def _problems(observed: Observation, entries: Mapping[str, Entry]) -> Iterator[str]:
    for node_id, answer in observed.answers.items():
        if not isinstance(answer, Listing):
            yield str(answer)
        elif answer.unreadable:
            yield f"{node_id}: {answer.unreadable} entries of its list of containers are not readable"
    for container_id, entry in entries.items():
        if not entry.is_sized:
            yield f"{container_id} still runs, but {entry.node_id} does not list it: its requested size is unknown"
