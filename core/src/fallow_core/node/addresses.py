"""The names and addresses by which a framework may know this host."""

import ipaddress
import re
import socket
from pathlib import Path

from fallow_core.node.procfs import PROC_ROOT


def host_addresses(proc_root: Path = PROC_ROOT) -> tuple[str, ...]:
    """Host name, full name and IP addresses of all interfaces including the loopback, sorted."""
    name = socket.gethostname()
    names = {name, _full_name(name), "localhost"}
    return tuple(sorted(names | _ipv4(proc_root / "net" / "fib_trie") | _ipv6(proc_root / "net" / "if_inet6")))


def _full_name(name: str) -> str:
    """As `socket.getfqdn`; a name in bytes avoids loading the large tables of international names."""
    try:
        found, aliases, _ = socket.gethostbyaddr(name.encode())  # type: ignore[arg-type]  # bytes will do
    except OSError:
        return name
    return next((each for each in (found, *aliases) if "." in each), found)


def _ipv4(table: Path) -> set[str]:
    """The kernel's routing table marks its own addresses by `/32 host LOCAL` on the next line."""
    try:
        return set(re.findall(r"\|-- (\S+)\n\s+/32 host LOCAL", table.read_text()))
    except OSError:
        return set()


def _ipv6(table: Path) -> set[str]:
    try:
        return {str(ipaddress.IPv6Address(bytes.fromhex(line.split()[0]))) for line in table.read_text().splitlines()}
    except (OSError, ValueError, IndexError):
        return set()
