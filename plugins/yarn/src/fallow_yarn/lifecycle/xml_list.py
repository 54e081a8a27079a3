"""Edits the text of an exclude file in XML, in which each host may have its own grace (Hadoop 2.9 and newer). Pure.

`<hosts><host><name>a, b</name><timeout>SECONDS</timeout></host></hosts>`; a negative timeout: without end.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from xml.parsers import expat
from xml.sax.saxutils import escape

from fallow_yarn.lifecycle.host_list import HostListError

DEEPEST: Final = 32
_NAME: Final = re.compile(r"[^\s,]+")


class XmlList:
    """Hosts, each with a grace or without one."""

    has_graces = True

    def hosts(self, text: str) -> Mapping[str, int | None]:
        """See `HostList`."""
        return {name: entry.grace_seconds for entry in _Reader(text.encode()).entries for name in entry.names}

    def with_hosts(self, text: str, hosts: Iterable[str], grace_seconds: int | None) -> str:
        """The hosts are appended as entries, each on a line of its own."""
        given = "" if grace_seconds is None else f"<timeout>{grace_seconds}</timeout>"
        names = list(dict.fromkeys(hosts))
        text = self.without_hosts(text, names)
        raw = text.encode()
        end = _Reader(raw).end
        added = "".join(f"  <host><name>{escape(name)}</name>{given}</host>\n" for name in names)
        if raw[:end] and not raw[:end].endswith(b"\n"):
            added = "\n" + added
        return (raw[:end] + added.encode() + raw[end:]).decode()

    def without_hosts(self, text: str, hosts: Iterable[str]) -> str:
        """Entries without a remaining name are removed with their lines."""
        gone = set(hosts)
        raw = text.encode()
        for entry in reversed(_Reader(raw).entries):
            if not gone.intersection(entry.names):
                continue
            if rest := [name for name in entry.names if name not in gone]:
                raw = raw[: entry.name_begin] + escape(", ".join(rest)).encode() + raw[entry.name_end :]
            else:
                begin, end = entry.begin, entry.end
                line_begin = raw.rfind(b"\n", 0, begin) + 1
                if not raw[line_begin:begin].strip() and raw[end : end + 1] == b"\n":
                    begin, end = line_begin, end + 1
                raw = raw[:begin] + raw[end:]
        return raw.decode()


@dataclass(slots=True)
class _Entry:
    """One `<host>`: its position in the text, and that of its `<name>`, in bytes of UTF-8."""

    begin: int
    end: int = 0
    name_begin: int = 0
    name_end: int = 0
    name: str = ""
    timeout: str | None = None

    @property
    def names(self) -> list[str]:
        return _NAME.findall(self.name)

    @property
    def grace_seconds(self) -> int | None:
        try:
            return None if self.timeout is None else int(self.timeout)
        except ValueError:
            raise HostListError(f"the timeout {self.timeout!r} is not an integer of seconds") from None


class _Reader:
    """Finds the entries, and the position for new ones: before the end of the outermost element."""

    def __init__(self, raw: bytes) -> None:
        self.entries: list[_Entry] = []
        self.end = 0
        self._raw = raw
        self._path: list[str] = []
        self._parser = parser = expat.ParserCreate("UTF-8")
        parser.StartElementHandler, parser.EndElementHandler = self._started, self._ended
        parser.CharacterDataHandler = self._said
        try:
            parser.Parse(raw, True)
        except expat.ExpatError as error:
            raise HostListError(f"it is not XML: {error}") from None
        if not raw.startswith(b"</", self.end):
            raise HostListError("its outermost element has no end tag; write it as <hosts></hosts>")

    def _started(self, tag: str, _attributes: object) -> None:
        self._path.append(tag)
        if len(self._path) > DEEPEST:
            raise HostListError(f"it is nested deeper than {DEEPEST} levels")
        match self._path[1:]:
            case ["host"]:
                self.entries.append(_Entry(self._parser.CurrentByteIndex))
            case ["host", "name"]:
                self.entries[-1].name_begin = self._after_tag()
            case ["host", "timeout"]:
                self.entries[-1].timeout = ""

    def _said(self, data: str) -> None:
        match self._path[1:]:
            case ["host", "name"]:
                self.entries[-1].name += data
            case ["host", "timeout"]:
                self.entries[-1].timeout = (self.entries[-1].timeout or "") + data

    def _ended(self, _tag: str) -> None:
        match self._path[1:]:
            case ["host"]:
                self.entries[-1].end = self._after_tag()
            case ["host", "name"]:
                self.entries[-1].name_end = self._parser.CurrentByteIndex
            case []:
                self.end = self._parser.CurrentByteIndex
        self._path.pop()

    def _after_tag(self) -> int:
        return self._raw.index(b">", self._parser.CurrentByteIndex) + 1
