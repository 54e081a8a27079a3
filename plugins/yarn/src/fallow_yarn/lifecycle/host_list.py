"""Edits the text of an exclude or include file in the plain format. Pure.

Edits change the entries of the hosts named and leave every other byte as it is: comments, order, white space.
Plain: words between white space, each a host; a word that begins with `#` makes the rest of its line a comment. White
space and the ends of lines are those of Hadoop, and not all those of Unicode.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

_WORD: Final = re.compile(r"[^ \t\n\f\r]+")
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")


class HostListError(Exception):
    """The file is not in a format that the ResourceManager can read."""


class HostList(Protocol):
    """A format of the file. Hosts are compared as written."""

    has_graces: bool

    def hosts(self, text: str) -> Mapping[str, int | None]:
        """Every host, with its own grace in seconds or None."""

    def with_hosts(self, text: str, hosts: Iterable[str], grace_seconds: int | None) -> str:
        """The text with these hosts added; in a format with graces all of them get this grace."""

    def without_hosts(self, text: str, hosts: Iterable[str]) -> str:
        """The text without them."""


class PlainList:
    """Words and comments, without a grace."""

    has_graces = False

    def hosts(self, text: str) -> Mapping[str, int | None]:
        """See `HostList`."""
        return {word[0]: None for line in _LINE.findall(text) for word in _words(line)}

    def with_hosts(self, text: str, hosts: Iterable[str], grace_seconds: int | None) -> str:
        """New hosts are appended, each on a line of its own."""
        missing = [host for host in hosts if host not in self.hosts(text)]
        end = "\n" if missing and text and not text.endswith("\n") else ""
        return text + end + "".join(f"{host}\n" for host in missing)

    def without_hosts(self, text: str, hosts: Iterable[str]) -> str:
        """Lines that become empty are removed."""
        gone = set(hosts)
        kept = []
        for line in _LINE.findall(text):
            found = [word for word in _words(line) if word[0] in gone]
            rest = line
            for word in reversed(found):
                rest = rest[: word.start()] + rest[word.end() :].lstrip(" \t")
            if not found or rest.strip():
                kept.append(rest)
        return "".join(kept)


def _words(line: str) -> list[re.Match[str]]:
    words = []
    for word in _WORD.finditer(line):
        if word[0].startswith("#"):
            break
        words.append(word)
    return words
