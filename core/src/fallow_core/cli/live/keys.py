"""Single keys from a terminal, without waiting for Enter. The terminal is always restored."""

import codecs
import os
import re
import select
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

ESCAPE_SECONDS = 0.05
"""After an escape, the rest of a key's sequence arrives within this time; otherwise the key was Esc."""

_NAMES = {
    "[A": "up",
    "[B": "down",
    "OA": "up",
    "OB": "down",
    "[H": "home",
    "[F": "end",
    "OH": "home",
    "OF": "end",
    "[1~": "home",
    "[4~": "end",
    "[5~": "pgup",
    "[6~": "pgdn",
    "[7~": "home",
    "[8~": "end",
}
_CONTROLS = {"\r": "enter", "\n": "enter", "\t": "tab", "\x7f": "backspace", "\b": "backspace", "\x03": "q"}
_SEQUENCE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|O.)", re.DOTALL)
_BEGUN = re.compile(r"\x1b(\[[0-?]*[ -/]*|O)?")


def decoded(text: str) -> tuple[list[str], str]:
    """The keys in what a terminal sent, and the rest, which may be the beginning of a key.

    A key is a printable character or a name such as `up`. Everything else is left out.
    """
    keys, at = [], 0
    while at < len(text):
        if (sequence := _SEQUENCE.match(text, at)) is not None:
            keys.append(_NAMES.get(sequence[1], ""))
            at = sequence.end()
        elif _BEGUN.fullmatch(text, at) is not None:
            return [key for key in keys if key], text[at:]
        elif text[at] == "\x1b":
            keys.append("escape")
            at += 1
        else:
            keys.append(_CONTROLS.get(text[at], text[at] if text[at].isprintable() else ""))
            at += 1
    return [key for key in keys if key], ""


class Keyboard:
    """Keys from a terminal that `keyboard` has prepared. When the terminal hangs up, that is the key `q`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""

    def read(self, timeout_seconds: float) -> list[str]:
        """Wait for keys, and return those that were pressed."""
        if not self._ready(ESCAPE_SECONDS if self._rest else timeout_seconds):
            alone, self._rest = self._rest, ""
            return ["escape"] if alone else []
        try:
            data = os.read(self._descriptor, 1024)
        except OSError:
            data = b""
        if not data:
            return ["q"]
        keys, self._rest = decoded(self._rest + self._decoder.decode(data))
        return keys

    def _ready(self, timeout_seconds: float) -> bool:
        return bool(select.select([self._descriptor], [], [], max(0.0, timeout_seconds))[0])


@contextmanager
def keyboard(descriptor: int) -> Iterator[Keyboard]:
    """Single keys from this terminal. Ctrl-C still sends its signal; Ctrl-Z does nothing."""
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor, termios.TCSANOW)
        now = termios.tcgetattr(descriptor)
        now[6][termios.VSUSP] = b"\0"
        termios.tcsetattr(descriptor, termios.TCSANOW, now)
        yield Keyboard(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
