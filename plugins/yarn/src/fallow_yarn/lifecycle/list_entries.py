"""Which entries of an exclude or include file are a host. Pure, except for `addresses_of`.

The ResourceManager compares the entries with the name under which a NodeManager registered, as written, and with the
address of that name.
"""

import ipaddress
import socket
from collections.abc import Callable, Collection, Iterable

from fallow_yarn.model.node_matching import canonical, is_address

AddressesOf = Callable[[str], Collection[str]]
"""The addresses of a host name; empty if it is not known."""


def counted(host: str, listed: Iterable[str], addresses_of: AddressesOf) -> list[str]:
    """The entries that the ResourceManager takes for this host."""
    return _found(host, listed, addresses_of, lambda text: text, _as_java_writes)


def meant(host: str, listed: Iterable[str], addresses_of: AddressesOf) -> list[str]:
    """The same, and those that are only another spelling of the host's name or address."""
    return _found(host, listed, addresses_of, canonical, canonical)


def addresses_of(host: str) -> set[str]:
    """The addresses of a host name, by the system's name look-up."""
    try:
        return {str(entry[4][0]).partition("%")[0] for entry in socket.getaddrinfo(host, None)}
    except (OSError, ValueError):
        return set()


def _found(
    host: str,
    listed: Iterable[str],
    addresses_of: AddressesOf,
    spelled: Callable[[str], str],
    address_spelled: Callable[[str], str],
) -> list[str]:
    listed = list(listed)
    found = [entry for entry in listed if spelled(entry) == spelled(host)]
    if any(is_address(entry) and entry not in found for entry in listed):  # a look-up may take seconds
        addresses = {address_spelled(address) for address in addresses_of(host)}
        found += [entry for entry in listed if entry not in found and spelled(entry) in addresses]
    return found


def _as_java_writes(address: str) -> str:
    """An IPv6 address has all its eight groups."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return ":".join(f"{int(group, 16):x}" for group in found.exploded.split(":"))
