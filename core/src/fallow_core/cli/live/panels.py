"""The tables of the view: which lines of each are shown in so much room, and what is in them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.text import Text

from fallow_core.api.tasks import TaskStatus
from fallow_core.cli.live.columns import Column, cut, fit
from fallow_core.cli.live.events import Event
from fallow_core.cli.live.filter_sort import Rows
from fallow_core.cli.live.snapshot import Account, Node, NodeAmounts
from fallow_core.cli.live.view_state import Kind
from fallow_core.cli.table import amount, part, seconds
from fallow_hookspecs import RESOURCE_NAMES, ResourceName

LABELS: dict[ResourceName, str] = {"cpu": "CPU", "memory": "GiB"}
SHORTEST_BAR, LONGEST_BAR = 10, 60

Table = list[Text]
"""A head, and then the lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A table of `count` things, each of `per` lines, of which `least` are to be seen wherever possible.

    `draw` makes the table of the things from a first to before a last one, with this title, so many cells wide.
    """

    kind: Kind | None
    title: str
    count: int
    per: int
    least: int
    draw: Callable[[int, int, str, int], Table]


def panels(shown: Rows, ascii_only: bool) -> list[Panel]:
    """The tables of Fallow's own, in the order of the screen."""
    nodes, accounts, tasks, events = shown.nodes, shown.accounts, shown.tasks, shown.events
    per = len(RESOURCE_NAMES)
    return [
        Panel(
            kind=Kind.NODE,
            title="NODES",
            count=len(nodes),
            per=per,
            least=1,
            draw=lambda first, last, title, width: _nodes(nodes[first:last], title, width, ascii_only),
        ),
        Panel(
            kind=Kind.ACCOUNT,
            title="CLUSTERS",
            count=len(accounts),
            per=per,
            least=1,
            draw=lambda first, last, title, width: _accounts(accounts[first:last], title, width),
        ),
        Panel(
            kind=Kind.TASK,
            title="TASKS",
            count=len(tasks),
            per=1,
            least=3,
            draw=lambda first, last, title, width: _tasks(tasks[first:last], title, width),
        ),
        Panel(
            kind=Kind.EVENT,
            title="DECISIONS",
            count=len(events),
            per=1,
            least=2,
            draw=lambda first, last, title, width: _events(events[first:last], title, width),
        ),
    ]


def _of(name: ResourceName, value: float | None) -> str:
    return "all" if value == math.inf else amount(name, value)


def _nodes(nodes: Sequence[Node], title: str, width: int, ascii_only: bool) -> Table:
    parts = [(name, node.amounts[name]) for node in nodes for name in RESOURCE_NAMES]

    def column(head: str, rank: int, value: Callable[[NodeAmounts], int | None], style: str = "") -> Column:
        return Column(head=head, cells=[_of(name, value(part)) for name, part in parts], rank=rank, style=style)

    lines = fit(
        [
            _names(title, [node.name for node in nodes]),
            _labels(len(nodes)),
            column("ONLINE", 2, lambda part: part.online, "cyan"),
            column("CAN LEND", 3, lambda part: part.batch, "green"),
            column("OFFER", 4, lambda part: part.offer),
            column("IN FORCE", 5, lambda part: part.in_force),
            column("ALLOC", 6, lambda part: part.allocated, "yellow"),
            column("HAS", 7, lambda part: part.capacity, "dim"),
        ],
        width,
    )
    cells = min(width - lines[0].cell_len - 2, LONGEST_BAR)
    if cells >= SHORTEST_BAR:
        for line, (_, part) in zip(lines[1:], parts, strict=True):
            line.append("  ").append_text(bar(part, cells, ascii_only))
    return lines


def bar(part: NodeAmounts, cells: int, ascii_only: bool) -> Text:
    """Online use, allocations, what could be lent beyond them, and what is kept free: together the whole capacity."""
    if part.capacity is None or part.online is None or part.batch is None:
        return Text(end="")
    allocated = part.allocated or 0
    ends = [part.online, part.online + allocated, part.online + max(allocated, part.batch), part.capacity]
    marks = "#+=." if ascii_only else "█▓░·"
    text, at = Text(end=""), 0
    for mark, style, end in zip(marks, ("cyan", "yellow", "green", "dim"), ends, strict=True):
        until = min(cells, round(cells * end / part.capacity) if part.capacity else cells)
        text.append(mark * (until - at), style)
        at = max(at, until)
    return text


def _accounts(accounts: Sequence[Account], title: str, width: int) -> Table:
    parts = [(name, account.amounts[name]) for account in accounts for name in RESOURCE_NAMES]
    ages = [
        cell
        for account in accounts
        for cell in ("?" if account.report_age_seconds is None else seconds(account.report_age_seconds), "")
    ]

    def pairs(head: str, rank: int, texts: list[str], least: int, style: str = "") -> Column:
        cells = [cell for text in texts for cell in (text, "")]
        return Column(head=head, cells=cells, rank=rank, least=least, style=style)

    return fit(
        [
            _names(title, [account.name for account in accounts]),
            _labels(len(accounts)),
            Column(head="TARGET", cells=[_of(name, part.target) for name, part in parts], rank=2, style="green"),
            Column(head="OFFER", cells=[_of(name, part.offer) for name, part in parts], rank=7),
            Column(head="IN FORCE", cells=[_of(name, part.in_force) for name, part in parts], rank=3),
            Column(head="ALLOC", cells=[_of(name, part.allocated) for name, part in parts], rank=4, style="yellow"),
            Column(head="WANTS", cells=[_of(name, part.demand) for name, part in parts], rank=5),
            pairs("SWITCH", 6, [account.switch for account in accounts], 6),
            pairs("STATE", 8, [account.state for account in accounts], 7),
            Column(head="REPORT", cells=ages, rank=9, style="dim"),
        ],
        width,
    )


def _names(title: str, names: Sequence[str]) -> Column:
    cells = [cell for name in names for cell in (name, "")]
    return Column(head=title, cells=cells, rank=0, least=16, is_name=True)


def _labels(count: int) -> Column:
    return Column(head="", cells=[LABELS[name] for name in RESOURCE_NAMES] * count, rank=1, least=3, style="dim")


def _tasks(tasks: Sequence[TaskStatus], title: str, width: int) -> Table:
    def use(name: ResourceName) -> list[str]:
        return [f"{part(name, task.used)}/{part(name, task.requested)}" for task in tasks]

    def text(head: str, rank: int, cells: list[str], least: int, style: str = "") -> Column:
        return Column(head=head, cells=[cell or "?" for cell in cells], rank=rank, least=least, style=style)

    return fit(
        [
            Column(head=title, cells=[task.task for task in tasks], rank=0, least=18, is_name=True),
            Column(head="APPLICATION", cells=[t.label or "?" for t in tasks], rank=5, least=11, is_name=True),
            text("USER", 7, [task.user for task in tasks], 6),
            text("QUEUE", 9, [task.queue for task in tasks], 8),
            text("CLUSTER", 10, [task.cluster for task in tasks], 8),
            text("ROLE", 8, [task.role for task in tasks], 6),
            text("STATE", 1, [task.phase for task in tasks], 8),
            Column(head="CPU/OF", cells=use("cpu"), rank=2),
            Column(head="GiB/OF", cells=use("memory"), rank=3),
            Column(head="AGE", cells=["?" if t.age_seconds is None else seconds(t.age_seconds) for t in tasks], rank=6),
            Column(head="COST", cells=[f"{task.harm_core_seconds:.0f}" for task in tasks], rank=4),
        ],
        width,
    )


def _events(events: Sequence[Event], title: str, width: int) -> Table:
    ages = ["now" if event.ago_seconds is None else seconds(event.ago_seconds) for event in events]
    head = max(8, *(len(age) for age in ages)) if ages else 8
    lines = [Text(cut(title, width), "bold dim", no_wrap=True, end="")]
    for event, age in zip(events, ages, strict=True):
        lines.append(Text(cut(f"{age:>{head}}  {event.text}", width), no_wrap=True, end=""))
    return lines
