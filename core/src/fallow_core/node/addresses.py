"""The names and addresses by which a framework may know this host."""

import ipaddress
import re
import socket
from pathlib import Path

from fallow_core.node.procfs import PROC_ROOT

HOSTS_FILE = Path("/etc/hosts")


def host_addresses(proc_root: Path = PROC_ROOT, hosts_file: Path = HOSTS_FILE) -> tuple[str, ...]:
    """Host name, full name and aliases, IP addresses of all interfaces including the loopback, and the names that the
    hosts file gives these addresses, sorted. An alias of a loopback address does not count: any host may be behind it
    by a tunnel.
    """
    name = socket.gethostname()
    names = {name, *_other_names(name), "localhost"}
    addresses = _ipv4(proc_root / "net" / "fib_trie") | _ipv6(proc_root / "net" / "if_inet6")
    return tuple(sorted(names | addresses | _further_names(addresses, hosts_file)))


def _other_names(name: str) -> set[str]:
    """The names under which a framework may know the host: the canonical one and the aliases. Of a loopback address
    only the full name (as `socket.getfqdn`). A name in bytes avoids loading the large tables of international names.
    """
    try:
        found, aliases, addresses = socket.gethostbyaddr(name.encode())  # type: ignore[arg-type]  # bytes will do
    except OSError:
        return set()
    if all(ipaddress.ip_address(address).is_loopback for address in addresses):
        return {next((each for each in (found, *aliases) if "." in each), found)}
    return {found, *aliases}


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


def _further_names(own: set[str], hosts_file: Path) -> set[str]:
    """The names that the hosts file has for own addresses."""
    try:
        lines = [line.partition("#")[0].split() for line in hosts_file.read_text(errors="replace").splitlines()]
    except OSError:
        return set()
    return {name for address, *names in filter(None, lines) if _is_own(address, own) for name in names}


def _is_own(address: str, own: set[str]) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return str(found) in own and not found.is_loopback
