"""Logs: one line an event, as `time level logger event key=value …`, so that a person and a program can read it.

The same event with the same words is written at most once a minute; how often it was held back is written with the
next one.
"""

import json
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable

from fallow_core.model.event import Event

REPEAT_SECONDS = 60.0
REMEMBERED = 1000


def event(logger: logging.Logger, level: int, name: str, **fields: object) -> None:
    """Log one event. A value that is no plain word is quoted as JSON has it; line ends never get into the log."""
    if logger.isEnabledFor(level):
        logger.log(level, "%s", " ".join([name, *(f"{key}={_text(value)}" for key, value in fields.items())]))


def write(events: Iterable[Event]) -> None:
    """Log the events that a pure function returned."""
    for each in events:
        level = logging.WARNING if each.warning else logging.INFO
        event(logging.getLogger(f"fallow.{each.logger}"), level, each.name, **each.fields)


def _text(value: object) -> str:
    text = " ".join(str(value).split())
    plain = text.isprintable() and not any(c in text for c in ' "=\\')
    return text if text and plain else json.dumps(text, ensure_ascii=not text.isprintable())


class RepeatFilter(logging.Filter):
    """Holds back a warning or an error whose text was already written within the last minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write the record; a record written after others were held back says how many."""
        if record.levelno < logging.WARNING:
            return True
        text, now = record.getMessage(), self._clock()
        written_at, held_back = self._seen.get(text, (None, 0))
        if written_at is not None and now - written_at < REPEAT_SECONDS:
            self._seen[text] = (written_at, held_back + 1)
            return False
        if held_back:
            record.msg, record.args = "%s repeated=%d", (text, held_back)
        if len(self._seen) >= REMEMBERED:
            self._seen.clear()
        self._seen[text] = (now, 0)
        return True


def unhandled(error: BaseException, thread: str) -> None:
    """Log an error that ends a thread, or with the main thread the process: with its kind, its text and its place."""
    frames = traceback.extract_tb(error.__traceback__)
    at = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    event(logging.getLogger("fallow.run"), logging.CRITICAL, "unhandled_error", thread=thread, error=repr(error), at=at)


def _thread_failed(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None:
        unhandled(args.exc_value, "" if args.thread is None else args.thread.name)
    threading.__excepthook__(args)


def set_up(level: str) -> None:
    """Send all logs to standard error, one line an event, errors that end a thread among them."""
    threading.excepthook = _thread_failed
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    handler.addFilter(RepeatFilter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
