"""The view where there is no terminal: plain lines, one for each change."""

from collections.abc import Iterable, Iterator

from fallow_core.cli.live.filter_sort import Rows, filter_and_sort
from fallow_core.cli.live.panels import LABELS
from fallow_core.cli.live.snapshot import Node, Snapshot
from fallow_core.cli.live.view_state import ViewState
from fallow_core.cli.printable import printable
from fallow_core.cli.table import amount
from fallow_hookspecs import RESOURCE_NAMES, ResourceName

QUIET_SECONDS = 10.0
STEP = 0.1
"""The change of an amount that is worth a line, as a share of the capacity."""


class PlainOutput:
    """Chooses what to print: what changed, and the nodes again after `QUIET_SECONDS` without a line."""

    def __init__(self) -> None:
        self._newest: Snapshot | None = None
        self._texts: dict[str, str] = {}
        self._nodes: dict[str, Node] = {}
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
        if now is not None and not trouble and (now is not self._newest or quiet):
            self._newest, rows = now, filter_and_sort(now, state)
            lines += self._changes(_texts(now, rows))
            lines += self._moved(rows.nodes, quiet)
            lines += ["no change"] if quiet and not lines else []
        if lines:
            self._printed_at = at_seconds
        return [printable(line) for line in lines]

    def _changes(self, texts: dict[str, str]) -> list[str]:
        before, self._texts = self._texts, texts
        over = [f"over: {key[2:]}" for key in before if key.startswith("! ") and key not in texts]
        gone = [f"{key} is gone" for key in before if key.startswith("task ") and key not in texts]
        return [*over, *gone, *(text for key, text in texts.items() if before.get(key) != text)]

    def _moved(self, nodes: Iterable[Node], quiet: bool) -> Iterator[str]:
        for node in nodes:
            if quiet or node.name not in self._nodes or _differ(self._nodes[node.name], node):
                self._nodes[node.name] = node
                parts = [
                    " ".join([LABELS[name], *(f"{what} {amount(name, value)}" for what, value in _amounts(node, name))])
                    for name in RESOURCE_NAMES
                ]
                yield "  ".join([f"node {node.name}", *parts])


def _differ(before: Node, now: Node) -> bool:
    """Whether an amount became known or unknown, or changed by more than `STEP` of the capacity."""
    for name in RESOURCE_NAMES:
        step = STEP * (now.amounts[name].capacity or 0)
        for (_, old), (_, new) in zip(_amounts(before, name), _amounts(now, name), strict=True):
            if old != new and (old is None or new is None or abs(new - old) > step):
                return True
    return False


def _amounts(node: Node, name: ResourceName) -> list[tuple[str, int | None]]:
    part = node.amounts[name]
    return [
        ("online", part.online),
        ("can lend", part.batch),
        ("offer", part.offer),
        ("in force", part.in_force),
        ("allocated", part.allocated),
    ]


def _texts(now: Snapshot, rows: Rows) -> dict[str, str]:
    """The lines of everything but the nodes, in their order; a line is new when the text of its key changed."""
    texts = {"mode": f"mode {now.mode}"}
    texts |= {f"! {problem}": f"! {problem}" for problem in now.problems}
    for account in rows.accounts:
        head = f"cluster {account.name}"
        texts[head] = f"{head}  switch {account.switch}  {account.state}  " + "  ".join(
            f"{LABELS[name]} in force {amount(name, part.in_force)} allocated {amount(name, part.allocated)}"
            for name, part in account.amounts.items()
        )
    for task in rows.tasks:
        head = f"task {task.cluster} {task.task}"
        texts[head] = f"{head} {task.phase}"
    return texts | {f"event {event.key}": event.text for event in reversed(rows.events)}
