import pytest

from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint


def parse(text: str) -> Endpoint:
    return Endpoint.parse(text, setting="spec.admin", purpose="p", hadoop_key="k")


@pytest.mark.parametrize(
    ("text", "host", "port", "authority"),
    [
        ("rm1:8033", "rm1", 8033, "rm1:8033"),
        ("10.0.0.1:1", "10.0.0.1", 1, "10.0.0.1:1"),
        ("[::1]:65535", "::1", 65535, "[::1]:65535"),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, host: str, port: int, authority: str) -> None:
    endpoint = parse(text)
    assert (endpoint.host, endpoint.port, endpoint.authority) == (host, port, authority)
    assert str(endpoint) == f"{authority} (spec.admin)"


@pytest.mark.parametrize(
    "text", ["", "rm1", "rm1:", ":8033", "rm1:0", "rm1:65536", "rm1:http", "rm1:-1", "[]:1", "::1:8033", "rm1:²"]
)
def test_anything_else_is_refused_with_the_setting_and_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match=r"spec\.admin: .*(expected host:port|write an IPv6 address in brackets)"):
        parse(text)


def test_a_deadline_counts_down_on_its_own_clock() -> None:
    now = [100.0]
    deadline = Deadline.after(5, clock=lambda: now[0])
    now[0] = 103.0
    assert deadline.left_seconds() == 2.0
    now[0] = 106.0
    assert deadline.left_seconds() == -1.0
