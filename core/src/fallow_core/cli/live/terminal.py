"""The terminal that a live view is drawn on: its size, its keys, and the signals that end the view.

`rich` is imported only when a terminal is opened, so that plain output starts without it.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from fallow_core.cli.live.keys import Keyboard, keyboard

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

POLL_SECONDS = 0.1
"""The longest wait for a key: a signal is noticed within this time."""


class Terminal:
    """A terminal that `opened` has prepared. `keyboard` is `None` if standard input is no terminal."""

    def __init__(self, out: TextIO, console: "Console", drawing: "Live", keyboard: Keyboard | None) -> None:
        self.ascii_only = console.options.ascii_only
        self._out = out
        self._console = console
        self._drawing = drawing
        self._keyboard = keyboard

    def draw(self, view: Callable[[int, int], "RenderableType"]) -> None:
        """Replace what is shown by a view for this width and height."""
        self._console.size = size = size_of(self._out)
        self._drawing.update(view(*size), refresh=True)

    def keys(self, timeout_seconds: float) -> list[str]:
        """Wait for keys, and return those that were pressed."""
        if self._keyboard is not None:
            return self._keyboard.read(timeout_seconds)
        time.sleep(timeout_seconds)
        return []


@contextmanager
def opened(out: TextIO) -> Iterator[Terminal]:
    """Prepare a terminal for drawings and keys; afterwards it is as it was before."""
    from rich.console import Console
    from rich.live import Live

    console = Console(file=out, highlight=False, markup=False, emoji=False)
    with ExitStack() as stack:
        keys = stack.enter_context(keyboard(sys.stdin.fileno())) if _reads_keys() else None
        drawing = stack.enter_context(Live(console=console, screen=True, auto_refresh=False, transient=True))
        yield Terminal(out, console, drawing, keys)


def is_terminal(out: TextIO) -> bool:
    """Whether a view can be drawn there."""
    return out.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def size_of(out: TextIO) -> tuple[int, int]:
    """Columns and lines; 80 × 24 if the terminal does not know its size."""
    try:
        found = os.get_terminal_size(out.fileno())
    except OSError:
        return 80, 24
    return found.columns or 80, found.lines or 24


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """Tell whether SIGINT or SIGTERM came. The signals do nothing else, so that the terminal is always restored."""
    came: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _reads_keys() -> bool:
    try:
        return sys.stdin.isatty()
    except (AttributeError, ValueError):
        return False  # closed, or never there
