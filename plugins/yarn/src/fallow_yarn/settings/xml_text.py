"""The text of an XML file whose header may name any encoding. Pure.

Python's own parser knows few encodings, and none with several bytes for a character except UTF-8 and UTF-16. This is
for files of the operator's own: with some encodings decoding takes the square of the length.
"""

import re
from typing import Final

_HEADER: Final = re.compile(rb"<\?xml[^>]*?\bencoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
MOST_HEADER_BYTES: Final = 1000
MARKS: Final = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")
"""Byte order marks: with one of them the parser needs no header."""


def parsable(raw: bytes) -> str | bytes:
    """What to give to the parser: the text, decoded as its header says, or the bytes if it names no encoding.

    :raises ValueError: the encoding is unknown here, or the file is not in it.
    """
    header = _HEADER.match(raw[:MOST_HEADER_BYTES])
    if header is None or raw.startswith(MARKS):
        return raw
    encoding = header[1].decode()
    try:
        return raw.decode(encoding)
    except LookupError:
        raise ValueError(f"its header names the encoding {encoding!r}, which is unknown here; use UTF-8") from None
    except UnicodeError as error:
        raise ValueError(f"it is not in the encoding {encoding!r} that its header names: {error}") from None
