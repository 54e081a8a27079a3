"""The view where there is no terminal: plain lines, one for each change."""

from collections.abc import Callable, Iterable, Iterator

from fallow_core.cli.live.filter_sort import filter_and_sort
from fallow_core.cli.live.snapshot import Node, Snapshot
from fallow_core.cli.live.view_state import ViewState
from fallow_core.cli.table import amount, printable
from fallow_hookspecs import RESOURCE_NAMES, ResourceName

LABELS: dict[ResourceName, str] = {"cpu": "CPU", "memory": "GiB"}
QUIET_SECONDS = 10.0
STEP = 0.1
"""The change of an amount that is worth a line, as a share of the capacity."""


class PlainOutput:
    """Chooses what to print: what changed, and the nodes again after `QUIET_SECONDS` without a line."""

    def __init__(self) -> None:
        self._before: Snapshot | None = None
        self._printed_nodes: dict[str, Node] = {}
        self._caption = self._trouble = ""
        self._printed_at: float | None = None

    def lines(
        self, now: Snapshot | None, state: ViewState, at_seconds: float, *, caption: str = "", trouble: str = ""
    ) -> list[str]:
        """The lines for a snapshot; `trouble` says why there is no newer one. Filtered and sorted as the state says."""
        quiet = self._printed_at is not None and at_seconds - self._printed_at >= QUIET_SECONDS
        lines = [caption] if caption != self._caption else []
        if trouble != self._trouble or (trouble and quiet):
            lines.append(f"! {trouble}; trying again" if trouble else "over: it answers again")
        self._caption, self._trouble = caption, trouble
        if now is not None and not trouble and (now is not self._before or quiet):
            lines += _changes(self._before, now, state)
            self._before = now
            lines += self._nodes(filter_and_sort(now, state).nodes, quiet)
            if quiet and not lines:
                lines.append("no change")
        if lines:
            self._printed_at = at_seconds
        return [printable(line) for line in lines]

    def _nodes(self, nodes: Iterable[Node], all_of_them: bool) -> Iterator[str]:
        for node in nodes:
            printed = self._printed_nodes.get(node.name)
            if all_of_them or printed is None or _moved(printed, node):
                self._printed_nodes[node.name] = node
                yield _node(node)


def _moved(before: Node, now: Node) -> bool:
    """Whether an amount became known or unknown, or changed by more than `STEP` of the capacity."""
    for name in RESOURCE_NAMES:
        step = STEP * (now.amounts[name].capacity or 0)
        for old, new in zip(_shown(before, name).values(), _shown(now, name).values(), strict=True):
            if old != new and (old is None or new is None or abs(new - old) > step):
                return True
    return False


def _shown(node: Node, name: ResourceName) -> dict[str, int | None]:
    found = node.amounts[name]
    return {
        "online": found.online,
        "can lend": found.batch,
        "offer": found.offer,
        "in force": found.in_force,
        "allocated": found.allocated,
    }


def _node(node: Node) -> str:
    parts = [
        f"{LABELS[name]} " + " ".join(f"{what} {amount(name, value)}" for what, value in _shown(node, name).items())
        for name in RESOURCE_NAMES
    ]
    return f"node {node.name}  " + "  ".join(parts)


def _changes(before: Snapshot | None, now: Snapshot, state: ViewState) -> Iterator[str]:
    """Everything but the nodes; without a snapshot before, everything is new."""
    if before is None or now.mode != before.mode:
        yield f"mode {now.mode}"
    problems = () if before is None else before.problems
    yield from (f"! {problem}" for problem in now.problems if problem not in problems)
    yield from (f"over: {problem}" for problem in problems if problem not in now.problems)
    yield from _new(_accounts, before, now, state)
    yield from _new(_tasks, before, now, state)
    if before is not None:
        tasks = _tasks(now, state)
        yield from (f"task {key} is gone" for key in _tasks(before, state) if key not in tasks)
    yield from reversed(_new(_events, before, now, state))


def _new(
    texts: Callable[[Snapshot, ViewState], dict[str, str]], before: Snapshot | None, now: Snapshot, state: ViewState
) -> list[str]:
    old = {} if before is None else texts(before, state)
    return [text for key, text in texts(now, state).items() if old.get(key) != text]


def _accounts(snapshot: Snapshot, state: ViewState) -> dict[str, str]:
    return {
        account.name: f"cluster {account.name}  switch {account.switch}  {account.state}  "
        + "  ".join(
            f"{LABELS[name]} in force {amount(name, part.in_force)} allocated {amount(name, part.allocated)}"
            for name, part in account.amounts.items()
        )
        for account in filter_and_sort(snapshot, state).accounts
    }


def _tasks(snapshot: Snapshot, state: ViewState) -> dict[str, str]:
    tasks = filter_and_sort(snapshot, state).tasks
    return {f"{task.cluster} {task.id}": f"task {task.cluster} {task.id} {task.state}" for task in tasks}


def _events(snapshot: Snapshot, state: ViewState) -> dict[str, str]:
    return {event.key: event.text for event in filter_and_sort(snapshot, state).events}
