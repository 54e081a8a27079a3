import socket
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fallow_core.standalone.exposition import Family, serve, text


def family() -> Family:
    found = Family("fallow_x_seconds", "counter", 'A "help"\nof two \\ lines.', ("cluster", "a"))
    found.add(["y/etl", 'q"uo\\te\nd'], 2)
    return found


def test_a_page_reads_back_as_it_was_whatever_is_in_a_label() -> None:
    (read,) = text_string_to_metric_families(text([family()]))
    assert (read.name, read.type, read.documentation) == ("fallow_x_seconds", "counter", 'A "help"\nof two \\ lines.')
    (sample,) = read.samples
    assert (sample.name, sample.value) == ("fallow_x_seconds_total", 2.0)
    assert sample.labels == {"cluster": "y/etl", "a": 'q"uo\\te\nd'}


@pytest.mark.parametrize("value", [0.0, 1.5, 7_516_192_768.0, float("inf"), -1e-9])
def test_any_value_reads_back(value: float) -> None:
    found = Family("fallow_x", "gauge", "Help.")
    found.add([], value)
    (read,) = text_string_to_metric_families(text([found]))
    assert [sample.value for sample in read.samples] == [value]


def test_a_label_too_many_or_too_few_is_refused() -> None:
    for values in (["a"], ["a", "b", "c"]):
        with pytest.raises(ValueError, match="zip"):
            family().add(values, 1)


@pytest.fixture(params=["127.0.0.1", "::1"])
def address(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    kind = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.socket(kind) as probe:
        try:
            probe.bind((request.param, 0))
        except OSError:
            pytest.skip(f"this host has no {request.param}")
        host, port = probe.getsockname()[:2]
    stop = serve(host, port, lambda: [family()])
    yield host, port
    stop()


def answer(address: tuple[str, int], request: bytes) -> bytes:
    with socket.create_connection(address, timeout=5) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(4096), b""))


@pytest.mark.parametrize(
    ("request_line", "status", "has_body"),
    [
        (b"GET /metrics HTTP/1.1", b"200 OK", True),
        (b"GET /metrics?name=x HTTP/1.0", b"200 OK", True),
        (b"HEAD /metrics HTTP/1.1", b"200 OK", False),
        (b"GET / HTTP/1.1", b"404 Not Found", True),
        (b"POST /metrics HTTP/1.1", b"405 Method Not Allowed", True),
        (b"", b"405 Method Not Allowed", True),
        (b"\xff\x00garbage", b"405 Method Not Allowed", True),
        (b"GET /metrics " + b"x" * 20000, b"200 OK", True),
    ],
)
def test_each_request_gets_its_answer(
    address: tuple[str, int], request_line: bytes, status: bytes, has_body: bool
) -> None:
    head, _, body = answer(address, request_line + b"\r\nHost: x\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.0 " + status + b"\r\n")
    assert (body != b"") == has_body
    length = next(line for line in head.split(b"\r\n") if line.startswith(b"Content-Length: "))
    assert not has_body or int(length.split()[1]) == len(body)


def test_who_goes_away_at_once_is_no_error(address: tuple[str, int], capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        socket.create_connection(address, timeout=5).close()
    assert b"200 OK" in answer(address, b"GET /metrics HTTP/1.0\r\n\r\n")
    assert capfd.readouterr().err == ""
