"""What `fallow watch` draws on a terminal: bars in place, with ANSI codes and nothing else."""

import os
import shutil
from collections import deque
from typing import TextIO

from fallow_core.cli.watch_text import NAMES, UNITS, Look, amount
from fallow_core.ledger.capacity import BatchCapacity
from fallow_hookspecs import RESOURCE_NAMES, ResourceName

_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
_CLEAR_SCREEN, _CLEAR_LINE = "\x1b[2J\x1b[H", "\x1b[K"
_BOLD, _DIM, _USED, _OVER, _LENDABLE, _PLAIN = "1", "2", "36", "33", "32", ""
_WIDEST = 100

Line = list[tuple[str, str]]
"""Texts, each behind its style: the parameters of an ANSI colour code, or nothing."""


class Screen:
    """Draws each look over the one before. From the first `draw` to `close` the cursor is hidden."""

    def __init__(self, out: TextIO, host: str, until_seconds: float | None) -> None:
        self._out = out
        self._host = host
        self._until = "" if until_seconds is None else f" of {until_seconds:g}"
        self._colours = "NO_COLOR" not in os.environ
        blocks = (out.encoding or "").lower() in {"utf-8", "utf8"}
        self._used, self._lendable, self._kept, *self._steps = list("█▒·▁▂▃▄▅▆▇█" if blocks else "#=._.-:=+*#")
        self._history: dict[ResourceName, deque[BatchCapacity]] = {name: deque(maxlen=_WIDEST) for name in NAMES}
        self._drawn_lines = 0
        self._size = shutil.get_terminal_size()

    def draw(self, look: Look) -> None:
        """Show the newest look."""
        size = shutil.get_terminal_size()
        lines = self._view(look, min(size.columns - 1, _WIDEST))[: size.lines - 1]
        if not self._drawn_lines:
            start = _HIDE_CURSOR
        elif size == self._size:
            start = f"\r\x1b[{self._drawn_lines - 1}A"
        else:
            start = _CLEAR_SCREEN  # the terminal has wrapped the old lines in its own way
        self._drawn_lines, self._size = len(lines), size
        self._out.write(start + "\n".join(self._styled(line, size.columns - 1) + _CLEAR_LINE for line in lines))
        self._out.flush()

    def close(self) -> None:
        """Leave the last view, give the cursor back below it."""
        if self._drawn_lines:
            self._out.write(f"\r{_CLEAR_LINE}\n{_SHOW_CURSOR}")
            self._out.flush()

    def _view(self, look: Look, width: int) -> list[Line]:
        sizes = ", ".join(
            f"{float(amount(resource, now.capacity)):g} {UNITS[resource]}" for resource, now in look.resources.items()
        )
        left, right = f"  {self._host}  {sizes}", f"{look.elapsed_seconds:.0f}{self._until} s"
        lines: list[Line] = [[(_BOLD, " fallow watch"), (_PLAIN, left), (_DIM, right.rjust(width - 13 - len(left)))]]
        for resource in RESOURCE_NAMES:
            now = look.resources.get(resource)
            if now is None:
                lines += [[], [(_BOLD, f" {NAMES[resource]:8}"), (_OVER, f"unknown: {look.missing.get(resource)}")]]
            else:
                self._history[resource].append(now)
                lines += [[], *self._block(resource, now, width)]
        return [*lines, [], [(_DIM, " This only looks: nothing is lent. Ctrl-C ends.")], []]

    def _block(self, resource: ResourceName, now: BatchCapacity, width: int) -> list[Line]:
        """A bar, and a row for each of its three parts, together the whole capacity."""
        history = self._history[resource]
        free = now.capacity - now.used - now.batch
        over = now.used > now.capacity - now.margin
        used_style = _OVER if over else _USED
        watermark = f"{'use is over' if over else 'above'} the watermark of {now.watermark_percent} %"
        cells = max(0, width - 9)
        used, end = round(cells * now.used / now.capacity), round(cells * (now.used + now.batch) / now.capacity)

        def row(style: str, mark: str, label: str, value: int) -> Line:
            numbers = f"{amount(resource, value):>8} {UNITS[resource]:5}{value / now.capacity:>6.0%}   "
            return [(_PLAIN, " " * 9), (style, mark), (_PLAIN, f" {label:10}{numbers}")]

        def trend(values: list[int]) -> str:
            newest = values[-max(1, width - 44) :]
            return "".join(self._steps[min(7, 8 * value // now.capacity)] for value in newest)

        return [
            [
                (_BOLD, f" {NAMES[resource]:8}"),
                (used_style, self._used * used),
                (_LENDABLE, self._lendable * (end - used)),
                (_DIM, self._kept * (cells - end)),
            ],
            [*row(used_style, self._used, "in use", now.used), (used_style, trend([past.used for past in history]))],
            [
                *row(_LENDABLE, self._lendable, "could lend", now.batch),
                (_LENDABLE, trend([past.batch for past in history])),
            ],
            [*row(_DIM, self._kept, "kept free", free), (_OVER if over else _DIM, watermark)],
        ]

    def _styled(self, line: Line, width: int) -> str:
        """The line cut to `width` columns, with its colours."""
        parts = []
        for style, text in line:
            shown = text[: max(0, width)]
            width -= len(shown)
            parts.append(f"\x1b[{style}m{shown}\x1b[0m" if style and shown and self._colours else shown)
        return "".join(parts)
