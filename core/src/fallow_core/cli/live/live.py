"""The view on a terminal until a key, a signal or the time ends it; where there is no terminal, plain lines."""

import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from types import FrameType
from typing import TextIO

from rich.console import Console, ConsoleDimensions
from rich.live import Live as Drawing

from fallow_core.cli.live.arranged import arranged
from fallow_core.cli.live.feed import Feed
from fallow_core.cli.live.keys import Keyboard, keyboard
from fallow_core.cli.live.lines import lines
from fallow_core.cli.live.screen import Extra, Frame, page, screen
from fallow_core.cli.live.snapshot import Snapshot
from fallow_core.cli.live.state import State, pressed
from fallow_core.cli.table import printable, seconds

POLL_SECONDS = 0.1
SILENT_SECONDS = 3.0
"""An answer that takes so much longer than the interval is said to be missing."""

Show = Callable[[Feed, Extra], None]

Source = Callable[[], Snapshot]


@dataclass(slots=True, kw_only=True)
class Live:
    """A view that is not running yet. `run_for_seconds` ends it by itself; `done` is asked now and then, and does too.

    `out` is where it is shown; keys come from standard input, if that is a terminal.
    """

    title: str
    state: State = field(default_factory=State)
    interval_seconds: float = 1.0
    run_for_seconds: float | None = None
    done: Callable[[], bool] = lambda: False
    out: TextIO = field(default_factory=lambda: sys.stdout)

    def run(self, source: Source, extra: Callable[[], Extra] = Extra) -> bool:
        """Show what the source gives, until the end. Whether the user ended it, by a key or a signal.

        `source` is called in a thread of its own; where it raises a FallowError its text is shown, and it is tried
        again. `extra` is called here before each drawing.
        """
        if isinstance(self.out, io.TextIOWrapper):
            self.out.reconfigure(errors="replace")  # a name that the terminal's encoding lacks is no reason to end
        with ExitStack() as stack:
            stopped = stack.enter_context(_signals())
            feed = Feed(source, self.interval_seconds)
            stack.callback(feed.close)
            show, keys = self._terminal(stack) if _is_terminal(self.out) else (self._print(), None)
            return self._loop(feed, extra, show, keys, stopped)

    def _loop(
        self,
        feed: Feed,
        extra: Callable[[], Extra],
        show: Show,
        keys: Keyboard | None,
        stopped: threading.Event,
    ) -> bool:
        end = time.monotonic() + (float("inf") if self.run_for_seconds is None else self.run_for_seconds)
        drawn: object = None
        while True:
            if feed.broken is not None:
                raise feed.broken
            if stopped.is_set() or self.state.ended:
                return True
            if self.done() or time.monotonic() >= end:
                return False
            beside = extra()
            now = (feed.number, self.state, beside, _size(self.out), int(time.monotonic()))
            if feed.number and now != drawn:
                show(feed, beside)
                drawn = now
            wait = min(POLL_SECONDS, max(0.0, end - time.monotonic()))
            if keys is None:
                stopped.wait(wait)
            else:
                self._press(keys.read(wait), feed.newest)

    def _press(self, keys: list[str], newest: Snapshot | None) -> None:
        height = _size(self.out).height
        for key in keys:
            refs = [] if newest is None else arranged(newest, self.state).refs
            self.state = pressed(self.state, key, refs, page(height))

    def _terminal(self, stack: ExitStack) -> tuple[Show, Keyboard | None]:
        console = Console(file=self.out, highlight=False, markup=False, emoji=False)
        keys = stack.enter_context(keyboard(sys.stdin.fileno())) if _reads_keys() else None
        drawing = stack.enter_context(Drawing(console=console, screen=True, auto_refresh=False, transient=True))

        def show(feed: Feed, extra: Extra) -> None:
            if feed.newest is None:
                return
            frame = Frame(
                title=self.title,
                clock=f"{datetime.now().astimezone():%H:%M:%S}",
                snapshot=feed.newest,
                state=self.state,
                trouble=self._trouble(feed),
                extra=extra,
                ascii_only=console.options.ascii_only,
            )
            console.size = _size(self.out)
            drawing.update(screen(frame, *console.size), refresh=True)

        return show, keys

    def _trouble(self, feed: Feed) -> str:
        silent = time.monotonic() - feed.answered_at
        if not feed.trouble and silent < self.interval_seconds + SILENT_SECONDS:
            return ""
        return f"no answer for {seconds(silent)}, trying again{': ' if feed.trouble else ''}{feed.trouble}"

    def _print(self) -> Show:
        before: Snapshot | None = None
        trouble = caption = ""
        number = 0

        def show(feed: Feed, extra: Extra) -> None:
            nonlocal before, trouble, caption, number
            texts = []
            if extra.caption != caption:
                caption = extra.caption
                texts.append(caption)
            if feed.trouble != trouble:
                trouble = feed.trouble
                texts.append(f"! {trouble}; trying again" if trouble else "over: it answers again")
            if feed.number != number and not trouble and feed.newest is not None:
                texts += lines(before, feed.newest, self.state)
                before, number = feed.newest, feed.number
            at = f"{datetime.now().astimezone():%H:%M:%S}"
            for text in texts:
                self.out.write(f"{at}  {printable(text)}\n")
            self.out.flush()

        return show


def _is_terminal(out: TextIO) -> bool:
    return out.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _reads_keys() -> bool:
    try:
        return sys.stdin.isatty()
    except (AttributeError, ValueError):
        return False  # closed, or never there


def _size(out: TextIO) -> ConsoleDimensions:
    try:
        found = os.get_terminal_size(out.fileno())
    except OSError:
        found = os.terminal_size((0, 0))
    return ConsoleDimensions(found.columns or 80, found.lines or 24)  # a terminal need not know its size


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """SIGINT and SIGTERM set the event, and nothing else: what was changed on the terminal is always put back."""
    stopped = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
