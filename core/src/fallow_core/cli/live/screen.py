"""The view as lines that fit a terminal. In a small one, the most important lines stay."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group
from rich.text import Text

from fallow_core.cli.live.columns import cut, wrapped
from fallow_core.cli.live.filter_sort import filter_and_sort
from fallow_core.cli.live.panels import Panel, panels
from fallow_core.cli.live.record import record
from fallow_core.cli.live.snapshot import Snapshot
from fallow_core.cli.live.view_state import HELP, SORTS, Pane, ViewState
from fallow_core.cli.printable import printable
from fallow_core.cli.table import seconds

KEYS = "q end  / filter  s sort  Enter explain  Tab table  ? help"
ROOMY = 32
"""From this number of lines on, there is an empty line before each table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """What a caller adds to the view: a line below the title, and one panel. Lines are cut to fit."""

    caption: str = ""
    title: str = ""
    lines: tuple[Text | str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Everything that is drawn. `trouble`: why the snapshot is old; `clock`: the time to show."""

    title: str
    clock: str
    snapshot: Snapshot
    state: ViewState
    trouble: str = ""
    extra: Extra = Extra()
    ascii_only: bool = False


def screen(frame: Frame, width: int, height: int) -> Group:
    """At most `height` lines of at most `width` cells, the last one the keys."""
    draw = {Pane.TABLES: _tables, Pane.RECORD: _record, Pane.HELP: _help}[frame.state.pane]
    top = _top(frame, width, height)[: max(1, height - 1)]
    lines = [*top, *draw(frame, width, height - len(top) - 1)][: max(0, height - 1)]
    lines += [Text()] * (height - 1 - len(lines))
    if height > 1 or not lines:
        lines.append(_foot(frame.state, width))
    return Group(*(_fitting(line, width) for line in lines[:height]))


def page(height: int) -> int:
    """The number of lines that the page keys move by."""
    return max(1, height // 2)


def _top(frame: Frame, width: int, height: int) -> list[Text]:
    snapshot = frame.snapshot
    sends = "nothing is sent" if snapshot.mode == "observe" else "offers are sent"
    about = f"  mode {snapshot.mode} ({sends}), up {seconds(snapshot.uptime_seconds)}"
    title = Text(f" {frame.title}", "bold").append(about, "not bold")
    space = width - title.cell_len - len(frame.clock) - 1
    if space > 0:
        title.append(" " * space).append(frame.clock, "dim")
    lines = [title]
    if frame.extra.caption:
        lines.append(Text(f" {cut(frame.extra.caption, width - 1)}", "bold cyan"))
    lines += [Text(f" {line}", "red") for line in _problems(frame, width - 1, max(1, height // 8))]
    return lines


def _problems(frame: Frame, width: int, room: int) -> list[str]:
    """The problems that fit into the room, and the number of the others."""
    problems = [*([frame.trouble] if frame.trouble else []), *frame.snapshot.problems]
    each = [wrapped(printable(f"! {problem}"), width) for problem in problems]
    lines = [line for one in each for line in one]
    if len(lines) <= room:
        return lines
    if len(problems) <= room:
        return [cut(f"! {problem}", width) for problem in problems]
    more = f" (and {len(problems) - room} more)"
    shown = [cut(f"! {problem}", width) for problem in problems[: room - 1]]
    return [*shown, cut(f"! {problems[room - 1]}", width - len(more)) + more]


def _foot(state: ViewState, width: int) -> Text:
    if state.typing:
        return Text(f" show what has: {cut(state.wanted, max(1, width - 17), keep_end=True)}_", "bold")
    if state.pane is not Pane.TABLES:
        return Text(" Esc back  up, down scroll  q end", "dim")
    chosen = [] if state.sort == SORTS[0] and not state.reverse else [f"by {state.sort}"]
    chosen += [*(["reversed"] if state.reverse else []), *([f"only {cut(state.wanted, 20)!r}"] if state.wanted else [])]
    line = Text(no_wrap=True)
    for text in chosen:
        line.append(f" {text} ", "bold")
    return line.append(f" {KEYS}", "dim")


def _tables(frame: Frame, width: int, height: int) -> list[Text]:
    shown = filter_and_sort(frame.snapshot, frame.state)
    found = panels(shown, frame.ascii_only)
    if frame.extra.title:
        found.insert(2, _own(frame.extra))
    refs = shown.refs
    of_kind = [ref for ref in refs if frame.state.selected is not None and ref.kind == frame.state.selected.kind]
    at = of_kind.index(frame.state.selected) if frame.state.selected in of_kind else None
    gap = 1 if height >= ROOMY else 0
    lines: list[Text] = []
    for panel, room in zip(found, rooms(found, height - gap * len(found)), strict=True):
        if room is None:
            continue
        selected = at if frame.state.selected is not None and panel.kind == frame.state.selected.kind else None
        lines += [Text()] * gap + _drawn(panel, room, selected, width)
    return lines


def _own(extra: Extra) -> Panel:
    def draw(first: int, last: int, title: str, width: int) -> list[Text]:
        texts = [line.copy() if isinstance(line, Text) else Text(printable(line)) for line in extra.lines[first:last]]
        return [Text(cut(title, width), "bold dim"), *texts]

    return Panel(kind=None, title=extra.title, count=len(extra.lines), per=1, least=4, draw=draw)


def rooms(found: Sequence[Panel], height: int) -> list[int | None]:
    """The number of items shown of each table; `None` for a table without room for its head.

    First each table gets its least, from the top; the remaining lines are spread evenly.
    """
    shown: list[int | None] = [None] * len(found)
    for number, panel in enumerate(found):
        fits = min(panel.least, panel.count, (height - 1) // panel.per)
        if height >= 1 and (fits > 0 or panel.count == 0):
            shown[number] = fits
            height -= 1 + fits * panel.per
    growing = True
    while growing:
        growing = False
        for number, panel in enumerate(found):
            now = shown[number]
            if now is not None and now < panel.count and panel.per <= height:
                shown[number], growing = now + 1, True
                height -= panel.per
    return shown


def _drawn(panel: Panel, room: int, selected: int | None, width: int) -> list[Text]:
    """A table with a mark before the selected item, which is always visible."""
    if not panel.count:
        return [Text(f" {cut(f'{panel.title}  none', width - 1)}", "bold dim")]
    first = 0 if selected is None else min(max(0, selected - room // 2), panel.count - room)
    title = panel.title
    if 0 < room < panel.count:
        title += f" {first + 1}-{first + room}/{panel.count}"
    head, *rows = panel.draw(first, first + room, title, width - 2)
    lines = [Text(" ").append_text(head)]
    for number, row in enumerate(rows):
        here = selected is not None and number // panel.per == selected - first
        line = Text(">" if here and number % panel.per == 0 else " ").append_text(row)
        if here:
            line.stylize("reverse")
        lines.append(line)
    return lines


def _record(frame: Frame, width: int, height: int) -> list[Text]:
    selected = frame.state.selected
    texts = [] if selected is None else record(frame.snapshot, selected)
    return _scrolled([line for text in texts for line in wrapped(printable(text), width - 2)], frame.state, height)


def _help(frame: Frame, width: int, height: int) -> list[Text]:
    texts = [f"{keys:18}  {what}" for keys, what in HELP]
    legend = "In a bar: online use, allocated, could be lent beyond that, kept free."
    return _scrolled([line for text in (*texts, "", legend) for line in wrapped(text, width - 2)], frame.state, height)


def _scrolled(lines: Sequence[str], state: ViewState, height: int) -> list[Text]:
    first = min(state.scroll, max(0, len(lines) - height))
    return [Text(f" {line}") for line in lines[first : first + max(0, height)]]


def _fitting(line: Text, width: int) -> Text:
    line = line.copy()
    line.no_wrap, line.end = True, "\n"
    line.truncate(max(0, width), overflow="crop")
    return line
