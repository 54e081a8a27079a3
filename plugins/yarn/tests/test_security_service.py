import base64
import socket
from collections.abc import Iterator
from typing import Any, cast

import pytest

from fallow_yarn.errors import CredentialsError, UnknownServiceError
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.security.login import Login
from fallow_yarn.security.negotiate import Negotiate
from fallow_yarn.security.service import Service, host_names, services_at

ALIAS, CANONICAL, REVERSE = "rm.example.com", "host-7.example.com", "node7.example.com"


def names(host: str) -> Iterator[str]:
    yield host.lower()
    yield from (CANONICAL, REVERSE) if host.lower() == ALIAS else ()


def no_look_up(host: str) -> Iterator[str]:
    yield host
    raise AssertionError("looked up")


@pytest.mark.parametrize("claimed", [f"rm/{ALIAS}", f"rm/{CANONICAL}", f"rm/{REVERSE}", f"RM/{ALIAS.upper()}"])
def test_a_server_is_the_expected_one_by_each_name_of_its_host(claimed: str) -> None:
    service = Service(principal="rm/_HOST@EXAMPLE.COM", names=names)
    assert service.principal_of(claimed, ALIAS) == f"{claimed}@EXAMPLE.COM"


@pytest.mark.parametrize(
    ("principal", "claimed"),
    [
        ("rm/_HOST@R", "rm/evil.example.com"),
        ("rm/_HOST@R", f"HTTP/{ALIAS}"),
        ("rm/_HOST@R", f"rm/{ALIAS}.evil"),
        ("rm/_HOST@R", f"rm/{ALIAS}@EVIL"),
        ("rm/fixed@R", f"rm/{ALIAS}"),
        ("rm/[a-z]*@R", f"rm/{ALIAS}"),
    ],
)
def test_a_server_with_any_other_name_is_not(principal: str, claimed: str) -> None:
    assert Service(principal=principal, names=names).principal_of(claimed, ALIAS) is None


def test_names_are_looked_up_only_where_the_name_as_given_does_not_fit() -> None:
    assert Service(principal="rm/_HOST", names=no_look_up).principal_of("rm/a", "a") == "rm/a"
    assert Service(principal="rm/_HOST", names=no_look_up).expected("a") == "rm/a"
    assert Service(principal="rm/fixed", names=no_look_up).principal_of("rm/b", "a") is None


@pytest.mark.parametrize(
    ("pattern", "claimed", "expected"),
    [
        ("rm/*.example.com@R", "rm/a.example.com", "rm/a.example.com@R"),
        ("rm/*@*", "rm/a", "rm/a"),
        ("{rm,yarn}/rm[12]@{R,S}", "yarn/rm2", "yarn/rm2@R"),
        ("rm/rm?", "rm/rm1", "rm/rm1"),
        ("{rm,yarn}/rm[12]@R", "hdfs/rm2", None),
        ("rm/*.example.com@R", "rm/a.example.org", None),
        ("rm/*", "rm/a@EVIL", None),
    ],
)
def test_a_pattern_goes_before_the_principal(pattern: str, claimed: str, expected: str | None) -> None:
    service = Service(principal="other/_HOST@R", pattern=pattern, names=no_look_up)
    assert service.principal_of(claimed, "a") == expected


def look_ups(monkeypatch: pytest.MonkeyPatch, named: dict[str, str], addresses: dict[str, list[str]]) -> None:
    """A name service: the names of addresses, and the canonical name and addresses of names."""

    def getaddrinfo(host: str, _port: object, **_: object) -> list[Any]:
        if host not in addresses:
            raise socket.gaierror("unknown")
        canonical, *found = addresses[host]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, canonical, (address, 0)) for address in found]

    def getnameinfo(address: tuple[str, int], _flags: int) -> tuple[str, str]:
        if address[0] not in named:
            raise socket.gaierror("unknown")
        return named[address[0]], "0"

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(socket, "getnameinfo", getnameinfo)


ADDRESS = "192.0.2.7"
KNOWN = {
    ALIAS: [CANONICAL, ADDRESS],
    CANONICAL: [CANONICAL, ADDRESS],
    REVERSE: [REVERSE, ADDRESS],
    "victim": ["victim", "192.0.2.8"],
    ADDRESS: [ADDRESS, ADDRESS],
}


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("RM.Example.com.", [ALIAS, CANONICAL, REVERSE]),
        (CANONICAL, [CANONICAL, REVERSE]),
        (ADDRESS, [REVERSE, ADDRESS]),
        ("nowhere", ["nowhere"]),
        ("192.0.2.9", ["192.0.2.9"]),
    ],
)
def test_the_names_of_a_host_are_its_own_its_canonical_one_and_that_of_its_address(
    monkeypatch: pytest.MonkeyPatch, host: str, expected: list[str]
) -> None:
    look_ups(monkeypatch, {ADDRESS: REVERSE.upper() + "."}, KNOWN | {REVERSE.upper() + ".": [REVERSE, ADDRESS]})
    assert list(host_names(host)) == expected


def test_the_name_of_an_address_counts_only_if_it_has_that_address(monkeypatch: pytest.MonkeyPatch) -> None:
    look_ups(monkeypatch, {ADDRESS: "victim"}, KNOWN)
    assert list(host_names(ADDRESS)) == [ADDRESS]


def test_the_systems_own_look_ups_name_the_loopback_interface() -> None:
    assert next(services_at("rm/_HOST@R", "127.0.0.1")) == "rm/localhost@R"
    assert list(services_at("rm/fixed@R", "127.0.0.1")) == ["rm/fixed@R"]


class Kdc:
    """Knows some services."""

    def __init__(self, *known: str, error: type[CredentialsError] = UnknownServiceError) -> None:
        self.known, self.error, self.asked = known, error, list[str]()

    def begin(self, service: str, _mechanism: str, _deadline: Deadline) -> tuple[object, bytes]:
        self.asked.append(service)
        if service not in self.known:
            raise self.error(f"{service} is not known")
        return object(), service.encode()


def header(kdc: Kdc) -> str:
    endpoint = Endpoint(host=ALIAS, port=8088, setting="s", purpose="p", hadoop_key="k")
    return Negotiate(cast(Login, kdc), names).header(endpoint, Deadline.after(10))


def test_a_web_server_is_asked_for_by_the_first_of_its_names_that_the_kdc_knows() -> None:
    kdc = Kdc(f"HTTP/{CANONICAL}", f"HTTP/{REVERSE}", "HTTP/elsewhere")
    assert header(kdc) == f"Negotiate {base64.b64encode(f'HTTP/{CANONICAL}'.encode()).decode()}"
    assert kdc.asked == [f"HTTP/{ALIAS}", f"HTTP/{CANONICAL}"]


def test_a_web_server_that_the_kdc_knows_by_no_name_is_told_by_the_one_that_was_given() -> None:
    kdc = Kdc("HTTP/elsewhere")
    with pytest.raises(UnknownServiceError, match=f"HTTP/{ALIAS} is not known"):
        header(kdc)
    assert kdc.asked == [f"HTTP/{ALIAS}", f"HTTP/{CANONICAL}", f"HTTP/{REVERSE}"]


def test_another_error_of_the_kdc_ends_the_search() -> None:
    kdc = Kdc(error=CredentialsError)
    with pytest.raises(CredentialsError):
        header(kdc)
    assert kdc.asked == [f"HTTP/{ALIAS}"]
