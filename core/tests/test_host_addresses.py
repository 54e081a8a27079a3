import socket
from pathlib import Path

import pytest

from fallow_core.node.addresses import host_addresses

FIB_TRIE = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.0.0.0/24 2 0 2
        +-- 10.0.0.0/28 2 0 2
           |-- 10.0.0.0
              /24 link UNICAST
           |-- 10.0.0.5
              /32 host LOCAL
        |-- 10.0.0.255
           /32 link BROADCAST
Local:
  +-- 127.0.0.0/8 2 0 2
     |-- 127.0.0.0
        /8 host LOCAL
     |-- 127.0.0.1
        /32 host LOCAL
     |-- 192.168.7.9
        /32 host LOCAL
"""
IF_INET6 = """00000000000000000000000000000001 01 80 10 80       lo
fe80000000000000021018fffe0ab302 02 40 20 80     eth0
20010db8000000000000000000000005 02 40 00 80     eth0
"""


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "nm-7")
    found = {b"nm-7": ("nm-7", ["loghost", "nm-7.example.com"], ["10.0.0.5"])}
    monkeypatch.setattr(socket, "gethostbyaddr", found.__getitem__)


@pytest.fixture
def net(tmp_path: Path) -> Path:
    (tmp_path / "net").mkdir()
    return tmp_path / "net"


def test_a_host_is_known_by_its_names_and_all_its_own_addresses(net: Path) -> None:
    (net / "fib_trie").write_text(FIB_TRIE)
    (net / "if_inet6").write_text(IF_INET6)
    assert host_addresses(net.parent) == (
        "10.0.0.5",
        "127.0.0.1",
        "192.168.7.9",
        "2001:db8::5",
        "::1",
        "fe80::210:18ff:fe0a:b302",
        "localhost",
        "loghost",
        "nm-7",
        "nm-7.example.com",
    )


def test_a_kernel_without_these_tables_leaves_the_names(tmp_path: Path) -> None:
    assert host_addresses(tmp_path) == ("localhost", "loghost", "nm-7", "nm-7.example.com")


@pytest.mark.parametrize("text", ["", "\n", "nonsense\n", "00 01\n", "0" * 33 + " 01\n"])
def test_a_table_that_makes_no_sense_is_as_good_as_none(net: Path, text: str) -> None:
    (net / "fib_trie").write_text(FIB_TRIE)
    (net / "if_inet6").write_text(text)
    assert host_addresses(net.parent)[:3] == ("10.0.0.5", "127.0.0.1", "192.168.7.9")


def test_this_host_has_its_loopback_address() -> None:
    assert "127.0.0.1" in host_addresses()


@pytest.mark.parametrize(
    ("found", "counted"),
    [
        (("nm-7.b.c", [], ["127.0.1.1"]), {"nm-7.b.c"}),
        (("behind-a-tunnel", ["nm-7.b.c", "nm-7"], ["127.0.1.1"]), {"nm-7.b.c"}),
        (("nm-8", ["behind-a-tunnel"], ["::1"]), {"nm-8"}),
        (("batch", ["nm-7.b.c", "nm-7.other"], ["10.0.0.5"]), {"batch", "nm-7.b.c", "nm-7.other"}),
        (("batch", ["nm-7.b.c"], ["127.0.1.1", "2001:db8::5"]), {"batch", "nm-7.b.c"}),
    ],
)
def test_every_alias_counts_but_of_a_loopback_address_only_the_full_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: tuple[str, list[str], list[str]], counted: set[str]
) -> None:
    monkeypatch.setattr(socket, "gethostbyaddr", lambda _: found)
    assert set(host_addresses(tmp_path, tmp_path / "none")) == {"localhost", "nm-7", *counted}


def test_a_host_that_nobody_can_name_has_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_name: bytes) -> None:
        raise socket.gaierror("no such host")

    monkeypatch.setattr(socket, "gethostbyaddr", unknown)
    assert host_addresses(tmp_path) == ("localhost", "nm-7")


def test_a_host_has_the_names_that_the_hosts_file_gives_its_addresses_but_the_loopback(net: Path) -> None:
    (net / "fib_trie").write_text(FIB_TRIE)
    (net / "if_inet6").write_text(IF_INET6)
    hosts = net / "hosts"
    hosts.write_text(
        "127.0.0.1 localhost behind-a-tunnel\n10.0.0.5 batch-7 batch-7.lan # once nm-6\n10.0.0.6 batch-8\n\n"
        "2001:0db8:0:0::5 batch-7-v6\nnonsense batch-9\n"
    )
    plain = set(host_addresses(net.parent, net / "none"))
    assert set(host_addresses(net.parent, hosts)) - plain == {"batch-7", "batch-7.lan", "batch-7-v6"}
