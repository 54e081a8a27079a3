"""The TCP ports on which a process listens, read from /proc in the network namespace of the process."""

import ipaddress
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

LISTENING: Final = "0A"
WORD_BYTES: Final = 4


def listening(process: Path) -> dict[int, str]:
    """The ports with their addresses in the kernel's hexadecimal notation. OSError if they cannot be read."""
    links = set(_links(process / "fd"))
    tables = [line.split() for name in ("tcp", "tcp6") for line in _lines(process / "net" / name)]
    found = (
        fields[1].rpartition(":")
        for fields in tables
        if len(fields) > 9 and fields[3] == LISTENING and f"socket:[{fields[9]}]" in links
    )
    return {int(port, 16): address for address, _, port in found}


def reached_at(address: str) -> str:
    """The address at which a listening process of this host is reached: loopback if it listens on all addresses."""
    found = _address(address)
    if found.is_unspecified:
        return "127.0.0.1" if found.version == 4 else "localhost"
    return str(found)


def displaceable(address: str) -> int:
    """How easily another process could listen on the same port, where 0 means that the kernel permits no other one.

    0: on all addresses; 1: on one address of the host; 2: on one loopback address, of which there are many.
    """
    found = _address(address)
    if found.is_unspecified:
        return 0
    return 2 if found.is_loopback else 1


def is_in_our_network(proc_root: Path, pid: int) -> bool:
    """Whether a process is in the same network namespace as this one."""
    own, other = (_link(proc_root / name / "ns" / "net") for name in ("self", str(pid)))
    return own == other


def _address(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    raw = bytes.fromhex(address)
    if sys.byteorder == "little":  # each word is written as this host has it
        raw = b"".join(raw[at : at + WORD_BYTES][::-1] for at in range(0, len(raw), WORD_BYTES))
    found = ipaddress.ip_address(raw)
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def _links(descriptors: Path) -> Iterator[str]:
    for descriptor in descriptors.iterdir():
        with suppress(FileNotFoundError):  # closed since
            yield str(descriptor.readlink())


def _lines(table: Path) -> list[str]:
    return table.read_text().splitlines()[1:] if table.exists() else []
