"""A YAML file as plain data, with the line of every key.

It supports the part of YAML that configuration needs: mappings with strings as keys, lists, strings, and plain `true`,
`false`, `null` and decimal numbers. So `off`, `no` and `1:30` stay strings. Tags, anchors, aliases and repeated keys
are refused.
"""

import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from fallow_core.config.problems import KeyPath, Problem, dotted

LARGEST_FILE_BYTES = 1 << 20
DEEPEST = 32

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS: Mapping[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}
_INTEGER = re.compile(r"[-+]?(0|[1-9]\d{0,18})", re.ASCII)
_FRACTION = re.compile(r"[-+]?(0|[1-9]\d{0,18})\.\d{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The content of one file. `lines` has the line of each key and list entry by its path; `()` is the file itself."""

    file: Path
    data: dict[str, Any] = field(default_factory=dict)
    lines: Mapping[KeyPath, int] = field(default_factory=dict)

    def line(self, key: KeyPath) -> int | None:
        """The line of a key; if it is not in the file, the line of the nearest key around it."""
        return next((self.lines[key[:end]] for end in range(len(key), -1, -1) if key[:end] in self.lines), None)

    def problem(self, key: KeyPath, message: str) -> Problem:
        """A problem with this key."""
        return Problem(file=self.file, line=self.line(key), key=key, message=message)


def read(file: Path) -> tuple[Document | None, list[Problem]]:
    """Read a file. The document is `None` if the file cannot be read; otherwise there may also be problems."""
    try:
        text = _text(file)
    except _FatalError as error:
        return None, [Problem(file=file, line=error.line, message=str(error))]
    builder = _Builder(file)
    try:
        data = builder.document(yaml.parse(text, Loader=_LOADER))
    except _FatalError as error:
        return None, [*builder.problems, Problem(file=file, line=error.line, message=str(error))]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else None
        message = f"not YAML: {error.problem or error.context}{_hint(text, line)}"
        return None, [*builder.problems, Problem(file=file, line=line, message=message)]
    except yaml.reader.ReaderError as error:
        message = f"a character that YAML does not allow: {error.reason}"
        return None, [Problem(file=file, line=text.count("\n", 0, error.position) + 1, message=message)]
    return Document(file=file, data=data, lines=builder.lines), builder.problems


class _FatalError(Exception):
    """The file cannot be used at all."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def _text(file: Path) -> str:
    try:
        kind = file.stat().st_mode
        if not stat.S_ISREG(kind):  # opening a pipe would block
            raise _FatalError("a directory, not a file" if stat.S_ISDIR(kind) else "not a regular file")
        with file.open("rb") as stream:
            content = stream.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise _FatalError(f"cannot be read: {error.strerror}") from None
    if len(content) > LARGEST_FILE_BYTES:
        raise _FatalError(f"larger than {LARGEST_FILE_BYTES} bytes, the most that a configuration file may have")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _FatalError(f"byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8", line) from None


def _hint(text: str, line: int | None) -> str:
    lines = text.splitlines()
    indent = re.match(r"\s*", lines[line - 1]) if line is not None and line <= len(lines) else None
    return "; indent with spaces, not with tabs" if indent is not None and "\t" in indent[0] else ""


class _Builder:
    """Builds plain data from parser events. Unlike composed nodes they show an alias before it expands."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.lines: dict[KeyPath, int] = {}
        self.problems: list[Problem] = []

    def document(self, events: Iterator[yaml.Event]) -> dict[str, Any]:
        """The only document of the file, which must be a mapping."""
        next(events)  # start of the stream
        if isinstance(next(events), yaml.StreamEndEvent):
            raise _FatalError("the file is empty")
        first = next(events)
        data = self._value(first, events, ())
        next(events)  # end of the document
        following = next(events)
        if not isinstance(following, yaml.StreamEndEvent):
            raise _FatalError("a second document; a file may have only one", _line(following))
        if not isinstance(data, dict):
            raise _FatalError("expected keys and values, such as kind: Fallow", _line(first))
        return data

    def _value(self, event: yaml.Event, events: Iterator[yaml.Event], path: KeyPath) -> Any:
        self.lines.setdefault(path, _line(event))
        if len(path) > DEEPEST:
            raise _FatalError(f"nested deeper than {DEEPEST} levels", _line(event))
        if getattr(event, "anchor", None) is not None:
            self._problem(event, path, "anchors (&) and aliases (*) are not supported; write the value out")
        if (tag := getattr(event, "tag", None)) is not None:
            self._problem(event, path, f"the tag {tag!r} is not supported; to have a string, quote the value")
        if isinstance(event, yaml.ScalarEvent):
            return _plain(event.value) if event.implicit[0] else event.value
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(events, path)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(events, path)
        return None  # an alias, reported above

    def _mapping(self, events: Iterator[yaml.Event], path: KeyPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            key = self._key(event, path)
            self.lines.setdefault((*path, key), _line(event))
            if key in data:
                first = self.lines[(*path, key)]
                self._problem(event, (*path, key), f"the key appears twice, first in line {first}; remove one")
                self._value(next(events), events, (*path, key))
            else:
                data[key] = self._value(next(events), events, (*path, key))
        return data

    def _key(self, event: yaml.Event, path: KeyPath) -> str:
        if isinstance(event, yaml.ScalarEvent):
            if event.implicit[0] and not isinstance(_plain(event.value), str):
                self._problem(event, path, f"the key {event.value!r} is not a string; quote it")
            return event.value
        raise _FatalError(f"a key under {dotted(path) or 'the top'} is not a string", _line(event))

    def _list(self, events: Iterator[yaml.Event], path: KeyPath) -> list[Any]:
        data: list[Any] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            data.append(self._value(event, events, (*path, len(data))))
        return data

    def _problem(self, event: yaml.Event, path: KeyPath, message: str) -> None:
        self.problems.append(Problem(file=self.file, line=_line(event), key=path, message=message))


def _line(event: yaml.Event) -> int:
    assert event.start_mark is not None  # only events made by hand have none
    return int(event.start_mark.line) + 1


def _plain(text: str) -> str | int | float | bool | None:
    """The value of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FRACTION.fullmatch(text) else text
