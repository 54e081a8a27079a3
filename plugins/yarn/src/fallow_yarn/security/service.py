"""The principals that a server may have: names of services at the names of its host.

The host of a principal is a name of the server in lower case. Hadoop's client takes the canonical name of the server's
address, and a browser the name as the user writes it. Both count here, and nothing else that a server may claim.
"""

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from fallow_yarn.model.node_matching import is_address

HOST_PLACEHOLDER: Final = "_HOST"
_ALTERNATIVES: Final = re.compile(r"\{([^{}]*)\}")

Names = Callable[[str], Iterator[str]]
"""The names of a host, the likeliest first, in lower case. The look-ups are made when the next name is wanted."""


def host_names(host: str) -> Iterator[str]:
    """A name as given, the name that it is an alias of, and the names of its addresses. An address itself is last."""
    given = host.lower().removesuffix(".")
    if not is_address(given):
        yield given
    told = {given}
    for name in _looked_up(given):
        if name not in told:
            told.add(name)
            yield name
    if is_address(given):
        yield given


def _looked_up(host: str) -> Iterator[str]:
    with suppress(OSError, ValueError):
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
        if canonical := _name(found[0][3]):
            yield canonical
        for *_, address in found:
            with suppress(OSError):
                name = socket.getnameinfo(address, socket.NI_NAMEREQD)[0]
                # Whoever owns an address may give it any name: it counts if the name has that address.
                if address[0] in {again[4][0] for again in socket.getaddrinfo(name, None)} and (own := _name(name)):
                    yield own


def _name(found: str) -> str:
    return "" if is_address(found) else found.lower().removesuffix(".")


def services_at(principal: str, host: str, names: Names = host_names) -> Iterator[str]:
    """The principals that a server at a host may have, the likeliest first: `_HOST` is each name of the host."""
    if f"/{HOST_PLACEHOLDER}" not in principal:
        yield principal
        return
    for name in names(host):
        yield principal.replace(HOST_PLACEHOLDER, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What a server has to be: `principal`, which may have `_HOST` as its host, or one that fits `pattern`.

    A pattern goes first, as in Hadoop. It has `*`, `?`, `[a-z]` and `{a,b}`. `names` are those of a host.
    """

    principal: str = ""
    pattern: str = ""
    names: Names = host_names

    def __str__(self) -> str:
        return self.pattern or self.principal

    def principal_of(self, claimed: str, host: str) -> str | None:
        """The principal to authenticate to where the server at a host claims a name such as `rm/host`; None if it is
        not an expected one. It has the realm that is configured, if one is.
        """
        if "@" in claimed:  # a server names no realm
            return None
        wanted = _alternatives(self.pattern) if self.pattern else services_at(self.principal, host, self.names)
        for each in wanted:
            name, _, realm = each.partition("@")
            fits = fnmatchcase(claimed.lower(), name.lower()) if self.pattern else claimed.lower() == name.lower()
            if fits:
                return f"{claimed}@{realm}" if realm and not set(realm) & set("*?[") else claimed
        return None

    def expected(self, host: str) -> str:
        """The likeliest principal or the pattern, for messages."""
        return self.pattern or next(services_at(self.principal, host, self.names))


def _alternatives(pattern: str) -> Iterator[str]:
    """The patterns without braces that a pattern with `{a,b}` stands for."""
    braces = _ALTERNATIVES.search(pattern)
    if braces is None:
        yield pattern
        return
    for choice in braces[1].split(","):
        yield from _alternatives(pattern[: braces.start()] + choice + pattern[braces.end() :])
