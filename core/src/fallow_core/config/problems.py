"""Mistakes in configuration files, and all of them as one error."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fallow_core.errors import ConfigError

KeyPath = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[\w./-]+", re.ASCII)
_SHOWN_LENGTH = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A mistake: the file, the line and the key if they are known, and what is wrong."""

    file: Path
    line: int | None = None
    key: KeyPath = ()
    message: str

    def __str__(self) -> str:
        """`file:line: key: message`."""
        place = str(self.file) if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {dotted(self.key)}: {self.message}" if self.key else f"{place}: {self.message}"


def error_of(problems: Iterable[Problem]) -> ConfigError:
    """All problems as one error: one line each, by file and line, and their number."""
    ordered = sorted(problems, key=lambda problem: (str(problem.file), problem.line or 0))
    files = {problem.file for problem in ordered}
    total = f"{_count(len(ordered), 'problem')} in {_count(len(files), 'file')}"
    return ConfigError("\n".join([*(str(problem) for problem in ordered), total]))


def dotted(key: KeyPath) -> str:
    """The key as text: `capacity.cpu.cap` or `roles[0]`. A key that is no plain word is quoted."""
    text = ""
    for part in key:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            word = part if _PLAIN_KEY.fullmatch(part) else repr(part)
            text += f".{word}" if text else word
    return text


def shown(value: object) -> str:
    """A value of a file as short text that is safe for a terminal."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = ("true" if value else "false") if isinstance(value, bool) else repr(value)
    return text if len(text) <= _SHOWN_LENGTH else text[:_SHOWN_LENGTH] + "..."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
