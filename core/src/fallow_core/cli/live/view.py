"""The live view until a key, a signal or the time ends it: drawn on a terminal, elsewhere printed as plain lines."""

import io
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TextIO

from fallow_core.cli.live.filter_sort import filter_and_sort
from fallow_core.cli.live.plain_output import PlainOutput
from fallow_core.cli.live.polling import Poller
from fallow_core.cli.live.screen import Extra, Frame, page, screen
from fallow_core.cli.live.snapshot import Snapshot
from fallow_core.cli.live.terminal import POLL_SECONDS, Terminal, is_terminal, opened, size_of, stop_signals
from fallow_core.cli.live.view_state import ViewState, after_key
from fallow_core.cli.table import seconds

SILENT_SECONDS = 3.0
"""How much longer than the interval an answer may take before the view says that it is missing."""


@dataclass(slots=True, kw_only=True)
class LiveView:
    """A view that is not running yet. `run_for_seconds` ends it by itself.

    `out` is where it is shown; keys come from standard input, if that is a terminal.
    """

    title: str
    state: ViewState = field(default_factory=ViewState)
    interval_seconds: float = 1.0
    run_for_seconds: float | None = None
    out: TextIO = field(default_factory=lambda: sys.stdout)

    def run(self, source: Callable[[], Snapshot], extra: Callable[[], Extra] = Extra) -> bool:
        """Show the snapshots of the source until the end. Return whether the user ended it, by a key or a signal.

        `source` is called in a thread of its own; if it raises a FallowError, the view shows the error and calls it
        again. `extra` is called here before each drawing.
        """
        if isinstance(self.out, io.TextIOWrapper):
            self.out.reconfigure(errors="replace")  # a name that the terminal's encoding lacks is no reason to end
        with ExitStack() as stack:
            stopped = stack.enter_context(stop_signals())
            poller = Poller(source, self.interval_seconds)
            stack.callback(poller.close)
            terminal = stack.enter_context(opened(self.out)) if is_terminal(self.out) else None
            return self._loop(poller, extra, terminal, stopped)

    def _loop(
        self, poller: Poller, extra: Callable[[], Extra], terminal: Terminal | None, stopped: Callable[[], bool]
    ) -> bool:
        plain = PlainOutput()
        end = time.monotonic() + (float("inf") if self.run_for_seconds is None else self.run_for_seconds)
        drawn: object = None
        while True:
            if poller.broken is not None:
                raise poller.broken
            if stopped() or self.state.ended:
                return True
            if time.monotonic() >= end:
                return False
            beside = extra()
            now = (poller.number, self.state, beside, size_of(self.out), int(time.monotonic()))
            if poller.number and now != drawn:
                if terminal is None:
                    self._print(plain, poller, beside.caption)
                elif poller.newest is not None:
                    self._draw(terminal, poller, poller.newest, beside)
                drawn = now
            wait = min(POLL_SECONDS, max(0.0, end - time.monotonic()))
            if terminal is None:
                time.sleep(wait)
            else:
                self._press(terminal.keys(wait), poller.newest)

    def _press(self, keys: list[str], newest: Snapshot | None) -> None:
        _, height = size_of(self.out)
        for key in keys:
            refs = [] if newest is None else filter_and_sort(newest, self.state).refs
            self.state = after_key(self.state, key, refs, page(height))

    def _draw(self, terminal: Terminal, poller: Poller, newest: Snapshot, extra: Extra) -> None:
        frame = Frame(
            title=self.title,
            clock=_clock(),
            snapshot=newest,
            state=self.state,
            trouble=self._trouble(poller),
            extra=extra,
            ascii_only=terminal.ascii_only,
        )
        terminal.draw(partial(screen, frame))

    def _trouble(self, poller: Poller) -> str:
        silent = time.monotonic() - poller.answered_at
        if not poller.trouble and silent < self.interval_seconds + SILENT_SECONDS:
            return ""
        return f"no answer for {seconds(silent)}, trying again{': ' if poller.trouble else ''}{poller.trouble}"

    def _print(self, plain: PlainOutput, poller: Poller, caption: str) -> None:
        trouble, newest = poller.trouble, poller.newest
        for line in plain.lines(newest, self.state, time.monotonic(), caption=caption, trouble=trouble):
            self.out.write(f"{_clock()}  {line}\n")
        self.out.flush()


def _clock() -> str:
    return f"{datetime.now().astimezone():%H:%M:%S}"
