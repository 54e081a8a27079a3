"""Parses the XML files of one configuration within bounds: their number, their bytes together, and their nesting.

Without these, files that include each other many times, or deep nesting, take minutes.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from fallow_hookspecs import trusted_path
from fallow_yarn.settings.xml_text import parsable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

MOST_FILES: Final = 100
MOST_BYTES: Final = 4 << 20
DEEPEST: Final = 32
_CHUNK: Final = 1 << 16


class ConfXmlError(Exception):
    """A file is not XML, or exceeds a bound."""


@dataclass(slots=True)
class ConfXml:
    """What may still be read of one configuration. A file that is included twice counts twice."""

    files_left: int = MOST_FILES
    bytes_left: int = MOST_BYTES

    def root(self, file: Path) -> "Element":
        """The outermost element of a file.

        :raises ConfXmlError: it is not XML, or exceeds what is left.
        :raises OSError: it cannot be read.
        """
        from xml.etree import ElementTree as ET  # of clusters without such a folder nothing is parsed

        try:
            text = parsable(self._text(file))
        except ValueError as error:
            raise ConfXmlError(f"it is not XML: {error}") from None
        parser: ET.XMLPullParser[Element] = ET.XMLPullParser(("start", "end"))
        depth, root = 0, None
        try:
            for begin in range(0, len(text), _CHUNK):
                parser.feed(text[begin : begin + _CHUNK])
                for event, element in cast("Iterator[tuple[str, Element]]", parser.read_events()):
                    root = element if root is None else root
                    depth += 1 if event == "start" else -1
                    if depth > DEEPEST:
                        raise ConfXmlError(f"it is nested deeper than {DEEPEST} levels")
            parser.close()
        except ET.ParseError as error:
            raise ConfXmlError(f"it is not XML: {error}") from None
        if root is None:
            raise ConfXmlError("it is not XML: it has no element")
        return root

    def _text(self, file: Path) -> bytes:
        if not self.files_left:
            raise ConfXmlError(f"with it, more than {MOST_FILES} files are included")
        self.files_left -= 1
        with os.fdopen(trusted_path.open_regular(file, follow_link=True), "rb") as stream:
            text = stream.read(self.bytes_left + 1)
        self.bytes_left -= len(text)
        if self.bytes_left < 0:
            raise ConfXmlError(f"it and the files before it have more than {MOST_BYTES} bytes")
        return text
