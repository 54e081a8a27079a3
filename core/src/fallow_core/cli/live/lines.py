"""The view where there is no terminal: plain lines, one a node and tick, and one for each change."""

from collections.abc import Iterable, Iterator

from fallow_core.cli.live.arranged import arranged
from fallow_core.cli.live.snapshot import Node, Snapshot
from fallow_core.cli.live.state import State
from fallow_core.cli.table import amount, printable
from fallow_hookspecs import RESOURCE_NAMES, ResourceName

LABELS: dict[ResourceName, str] = {"cpu": "CPU", "memory": "GiB"}


def lines(before: Snapshot | None, now: Snapshot, state: State) -> list[str]:
    """What is new since the snapshot before, and then each node's amounts; filtered and sorted as the state says."""
    after = arranged(now, state)
    fresh = list(_changes(before, now, state)) if before is not None else list(_first(now, state))
    return [printable(line) for line in (*fresh, *(_node(node) for node in after.nodes))]


def _node(node: Node) -> str:
    parts = []
    for name in RESOURCE_NAMES:
        found = node.amounts[name]
        values = {
            "online": found.online,
            "can lend": found.batch,
            "offer": found.offer,
            "in force": found.in_force,
            "allocated": found.allocated,
        }
        parts.append(f"{LABELS[name]} " + " ".join(f"{what} {amount(name, value)}" for what, value in values.items()))
    return f"node {node.name}  " + "  ".join(parts)


def _first(now: Snapshot, state: State) -> Iterator[str]:
    yield f"mode {now.mode}"
    yield from (f"! {problem}" for problem in now.problems)
    yield from _accounts(now, state).values()
    yield from _tasks(now, state).values()
    yield from reversed(list(_events(now, state).values()))


def _changes(before: Snapshot, now: Snapshot, state: State) -> Iterator[str]:
    if now.mode != before.mode:
        yield f"mode {now.mode}"
    yield from (f"! {problem}" for problem in now.problems if problem not in before.problems)
    yield from (f"over: {problem}" for problem in before.problems if problem not in now.problems)
    yield from _new(_accounts(before, state), _accounts(now, state))
    tasks_before, tasks_now = _tasks(before, state), _tasks(now, state)
    yield from _new(tasks_before, tasks_now)
    yield from (f"task {key} is gone" for key in tasks_before if key not in tasks_now)
    yield from reversed(list(_new(_events(before, state), _events(now, state))))


def _new(before: dict[str, str], now: dict[str, str]) -> Iterable[str]:
    return [text for key, text in now.items() if before.get(key) != text]


def _accounts(snapshot: Snapshot, state: State) -> dict[str, str]:
    return {
        account.name: f"cluster {account.name}  switch {account.switch}  {account.state}  "
        + "  ".join(
            f"{LABELS[name]} in force {amount(name, part.in_force)} allocated {amount(name, part.allocated)}"
            for name, part in account.amounts.items()
        )
        for account in arranged(snapshot, state).accounts
    }


def _tasks(snapshot: Snapshot, state: State) -> dict[str, str]:
    tasks = arranged(snapshot, state).tasks
    return {f"{task.cluster} {task.task}": f"task {task.cluster} {task.task} {task.phase}" for task in tasks}


def _events(snapshot: Snapshot, state: State) -> dict[str, str]:
    return {event.key: event.text for event in arranged(snapshot, state).events}
