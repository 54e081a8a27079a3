"""Which texts are names or addresses of hosts. Pure.

A ResourceManager passes on what a NodeManager calls itself. A name with a line break would become a line of its own in
an exclude file, and one with a slash or a blank would not stay what it is in a URL or a list.
"""

import ipaddress
import re
from typing import Final

_NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,253}[A-Za-z0-9_.])?", re.ASCII)
LARGEST_PORT: Final = 65_535


def is_host(text: str) -> bool:
    """Whether this is a host name, or an address as Java writes it: IPv6 with or without brackets."""
    if _NAME.fullmatch(text):
        return True
    try:
        return ipaddress.IPv6Address(text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text).scope_id is None
    except ValueError:
        return False
