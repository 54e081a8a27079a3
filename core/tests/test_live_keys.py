import os
import pty
import termios
from collections.abc import Iterator
from contextlib import suppress

import pytest

from fallow_core.cli.live.keys import Keyboard, decoded, keyboard


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal: the user's, and the program's."""
    ours, theirs = pty.openpty()
    yield ours, theirs
    for end in (ours, theirs):
        with suppress(OSError):  # a test closed it
            os.close(end)


@pytest.mark.parametrize(
    ("text", "keys", "rest"),
    [
        ("q/é", ["q", "/", "é"], ""),
        ("\r\n\t\x7f\b", ["enter", "enter", "tab", "backspace", "backspace"], ""),
        ("\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[4~", ["up", "down", "pgup", "pgdn", "home", "end"], ""),
        ("\x1b[1;5Aq", ["q"], ""),
        ("a\x1b", ["a"], "\x1b"),
        ("a\x1b[", ["a"], "\x1b["),
        ("\x1b[1;", [], "\x1b[1;"),
        ("\x1b\x1b[A", ["escape", "up"], ""),
        ("\x1bq", ["escape", "q"], ""),
        ("\x00\x1a", [], ""),
        ("\x03", ["q"], ""),
    ],
)
def test_what_a_terminal_sends_becomes_keys(text: str, keys: list[str], rest: str) -> None:
    assert decoded(text) == (keys, rest)


def test_keys_come_one_by_one_without_enter_and_without_echo(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    with keyboard(theirs) as keys:
        os.write(ours, b"s")
        assert keys.read(5) == ["s"]
        assert keys.read(0) == []
        os.write(theirs, b".")
        assert os.read(ours, 10) == b"."


def test_a_key_in_pieces_is_one_key_and_an_escape_alone_is_one_too(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    with keyboard(theirs) as keys:
        os.write(ours, b"\x1b")
        assert keys.read(5) == []
        os.write(ours, b"[A")
        assert keys.read(5) == ["up"]
        os.write(ours, b"\x1b")
        assert keys.read(5) == []
        assert keys.read(5) == ["escape"]
        os.write(ours, "é".encode()[:1])
        assert keys.read(5) == []
        os.write(ours, "é".encode()[1:])
        assert keys.read(5) == ["é"]


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt, SystemExit])
def test_the_terminal_is_put_back_however_it_ends(terminal: tuple[int, int], error: type[BaseException] | None) -> None:
    _, theirs = terminal
    before = termios.tcgetattr(theirs)

    def use() -> None:
        with keyboard(theirs):
            inside = termios.tcgetattr(theirs)
            assert not inside[3] & (termios.ICANON | termios.ECHO)
            assert inside[3] & termios.ISIG
            if error is not None:
                raise error

    if error is None:
        use()
    else:
        with pytest.raises(error):
            use()
    assert termios.tcgetattr(theirs) == before


def test_a_terminal_that_hangs_up_ends_the_view(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    os.close(ours)
    assert Keyboard(theirs).read(5) == ["q"]
