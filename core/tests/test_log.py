import logging
import shlex
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO

import pytest

from fallow_core.log import REMEMBERED, REPEAT_SECONDS, RepeatFilter, event
from fallow_core.model.policy import SwitchState


class Output:
    """A logger with the filter on a clock that is moved by hand, and what it wrote."""

    def __init__(self) -> None:
        self.now = 100.0
        self.stream = StringIO()
        self.filter = RepeatFilter(lambda: self.now)
        self.logger = logging.getLogger("test of the log")
        self.logger.setLevel(logging.DEBUG)
        self.logger.propagate = False
        self.handler = logging.StreamHandler(self.stream)
        self.handler.addFilter(self.filter)
        self.logger.addHandler(self.handler)

    def lines(self) -> list[str]:
        """What was written since the last time."""
        text = self.stream.getvalue()
        self.stream.truncate(0)
        self.stream.seek(0)
        return text.splitlines()


@pytest.fixture
def output() -> Iterator[Output]:
    output = Output()
    yield output
    output.logger.removeHandler(output.handler)


def test_an_event_is_one_line_of_words_with_keys(output: Output) -> None:
    event(output.logger, logging.INFO, "switched", cluster="yarn/etl", state=SwitchState.HOLD, size=5, ratio=0.5)
    assert output.lines() == ["switched cluster=yarn/etl state=hold size=5 ratio=0.5"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("two words", '"two words"'),
        ("", '""'),
        ("two\nlines\r\n and\ttabs", '"two lines and tabs"'),
        ('say "no"', r'"say \"no\""'),
        ('"', r'"\""'),
        ("a=b", '"a=b"'),
        ("back\\slash", r'"back\\slash"'),
        ("\x1b[31mred", r'"\u001b[31mred"'),
        ("\x9b31m", r'"\u009b31m"'),
        ("a\u2028b", '"a b"'),
        ("größer", "größer"),
        ("größer als", '"größer als"'),
        (None, "None"),
        ([1, 2], '"[1, 2]"'),
        (ValueError("no = sign"), '"no = sign"'),
    ],
)
def test_a_value_that_is_no_plain_word_is_quoted(output: Output, value: object, text: str) -> None:
    event(output.logger, logging.INFO, "tried", why=value, next=1)
    assert output.lines() == [f"tried why={text} next=1"]


def test_a_line_is_cut_back_into_its_fields(output: Output) -> None:
    event(output.logger, logging.INFO, "tried", why='he said "a=1 b=2"', who="ada")
    (line,) = output.lines()
    assert shlex.split(line) == ["tried", 'why=he said "a=1 b=2"', "who=ada"]


def test_percent_signs_are_only_text(output: Output) -> None:
    event(output.logger, logging.INFO, "tried", why="100%s")
    assert output.lines() == ["tried why=100%s"]


def test_a_level_that_is_off_does_not_even_make_the_text(output: Output) -> None:
    class Never:
        def __str__(self) -> str:
            raise AssertionError

    output.logger.setLevel(logging.WARNING)
    event(output.logger, logging.INFO, "tried", why=Never())
    assert output.lines() == []


def test_a_repeated_warning_is_held_back_and_counted(output: Output) -> None:
    for _ in range(50):
        event(output.logger, logging.WARNING, "report_failed", cluster="yarn/etl")
        output.now += 1
    assert output.lines() == ["report_failed cluster=yarn/etl"]
    output.now += REPEAT_SECONDS
    event(output.logger, logging.WARNING, "report_failed", cluster="yarn/etl")
    assert output.lines() == ["report_failed cluster=yarn/etl repeated=49"]
    output.now += REPEAT_SECONDS
    event(output.logger, logging.WARNING, "report_failed", cluster="yarn/etl")
    assert output.lines() == ["report_failed cluster=yarn/etl"]


def test_another_text_is_not_held_back(output: Output) -> None:
    for cluster in ("a", "b", "a", "c"):
        event(output.logger, logging.ERROR, "report_failed", cluster=cluster)
    assert [line[-1] for line in output.lines()] == ["a", "b", "c"]


def test_what_is_no_warning_is_never_held_back(output: Output) -> None:
    for _ in range(3):
        event(output.logger, logging.INFO, "offer_sent", node="n1")
    assert len(output.lines()) == 3


def test_texts_that_never_come_again_do_not_fill_the_memory(output: Output) -> None:
    for number in range(5 * REMEMBERED):
        event(output.logger, logging.WARNING, "failed", reason=number)
    assert len(output.lines()) == 5 * REMEMBERED
    assert len(output.filter._seen) <= REMEMBERED


def test_set_up_writes_to_standard_error_with_time_level_and_name() -> None:
    code = (
        "import logging; from fallow_core import log; log.set_up('warning');"
        "log.event(logging.getLogger('fallow.x'), logging.WARNING, 'tried', n=1);"
        "log.event(logging.getLogger('fallow.x'), logging.INFO, 'not shown')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    date, time, *rest = line.split()
    assert rest == ["WARNING", "fallow.x", "tried", "n=1"]
    assert (len(date), len(time)) == (len("2026-01-31"), len("12:00:00,000"))


def test_an_error_that_ends_a_thread_is_an_event_with_its_place() -> None:
    code = (
        "import threading; from fallow_core import log; log.set_up('info')\n"
        "def fail(): raise ValueError('no')\n"
        "threading.Thread(target=fail, name='control').start()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    line = next(line for line in done.stderr.splitlines() if "unhandled_error" in line)
    assert """CRITICAL fallow.run unhandled_error thread=control error=ValueError('no') at=<string>:2""" in line
    assert "Traceback" in done.stderr
