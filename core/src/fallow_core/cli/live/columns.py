"""Tables that fit: columns are left out by their rank, texts are cut, and no line is longer than it may be."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.text import Text

from fallow_core.cli.printable import printable

GAP = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`rank`: the smallest is given room first; a column that then does not fit is left out.

    `least`: a text may be cut to this; numbers never are. `is_name`: what is too long is cut in the middle, as
    names and ids often differ only at one end.
    """

    head: str
    cells: Sequence[str]
    rank: int
    least: int | None = None
    is_name: bool = False
    style: str = ""


def fit(columns: Sequence[Column], width: int) -> list[Text]:
    """The head and the lines, all equally wide and at most `width` cells."""
    natural = {id(c): max(cell_len(text) for text in (c.head, *map(printable, c.cells))) for c in columns}
    widths: dict[int, int] = {}
    left = width
    ranked = sorted(columns, key=lambda c: c.rank)
    for column in ranked:
        gap = GAP if widths else 0
        need = natural[id(column)] if column.least is None else min(column.least, natural[id(column)])
        if not widths:
            need = min(need, left)
        if need + gap <= left:
            widths[id(column)] = need
            left -= need + gap
    for column in ranked:
        if id(column) in widths:
            more = min(left, natural[id(column)] - widths[id(column)])
            widths[id(column)] += more
            left -= more
    kept = [column for column in columns if id(column) in widths]
    head = _line([(c, c.head, widths[id(c)]) for c in kept], head=True)
    rows = range(max((len(c.cells) for c in kept), default=0))
    return [head, *(_line([(c, c.cells[row], widths[id(c)]) for c in kept]) for row in rows)]


def cut(text: str, width: int, *, keep_end: bool = False) -> str:
    """The text without what is not printable, in at most `width` cells; a sign says that it was cut."""
    text = printable(text)
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return "~"[:width]
    if not keep_end:
        return set_cell_size(text, width - 1) + "~"
    while cell_len(text) > width - 1:
        text = text[1:]
    return "~" + text


def cut_middle(text: str, width: int) -> str:
    """As `cut`; what is left is a third of its begin, and the rest of its end."""
    text = printable(text)
    if cell_len(text) <= width or width <= 2:
        return cut(text, width)
    begin = set_cell_size(text, width // 3).rstrip()
    return begin + cut(text, width - cell_len(begin), keep_end=True)


def wrapped(text: str, width: int) -> list[str]:
    """A line as lines of at most so many cells; those that follow are indented as the first, and a little more."""
    if cell_len(text) <= width:
        return [text]
    indent = text[: len(text) - len(text.lstrip())][: max(0, width // 4)]
    lines = textwrap.wrap(
        text.strip(),
        max(1, width - len(indent)),
        initial_indent=indent,
        subsequent_indent=f"{indent}  "[: max(0, width // 2)],
        break_on_hyphens=False,
    )
    return [piece for line in lines for piece in chop_cells(line, max(1, width))]


def _line(cells: Sequence[tuple[Column, str, int]], *, head: bool = False) -> Text:
    line = Text(no_wrap=True, end="")
    for number, (column, text, width) in enumerate(cells):
        shown = cut_middle(text, width) if column.is_name and not head else cut(text, width)
        pad = " " * (width - cell_len(shown))
        line.append(" " * GAP if number else "")
        line.append(pad + shown if column.least is None else shown + pad, "bold dim" if head else column.style)
    return line
