import socket
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Struct

from fallow_yarn.errors import (
    AccessDeniedError,
    AuthenticationRefusedError,
    ConnectionLostError,
    DeadlineError,
    ProtocolError,
    RemoteError,
    StandbyError,
    UnreachableError,
)
from fallow_yarn.http.web import MAX_ANSWER_BYTES, Web
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint

Serve = Callable[..., Endpoint]
Script = Callable[[socket.socket], None]


def soon() -> Deadline:
    return Deadline.after(10)


def request_of(connected: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        data += connected.recv(1)
    return data


def answering(data: bytes) -> Script:
    def script(connected: socket.socket) -> None:
        request_of(connected)
        connected.sendall(data)

    return script


def page(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode() + body


def get(endpoint: Endpoint, deadline: Deadline | None = None, most_bytes: int = MAX_ANSWER_BYTES) -> object:
    return Web(endpoint, "al ice", most_bytes=most_bytes).json("/ws/v1/cluster/info", deadline or soon())


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="needs IPv6 on this host")
def test_a_page_is_read_over_ipv6() -> None:
    seen: list[bytes] = []
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:

        def script() -> None:
            connected, _ = listener.accept()
            with connected:
                seen.append(request_of(connected))
                connected.sendall(page(b"{}"))

        thread = threading.Thread(target=script)
        thread.start()
        port = listener.getsockname()[1]
        assert get(Endpoint.parse(f"[::1]:{port}", setting="s", purpose="p", hadoop_key="k")) == {}
        thread.join()
    assert f"\r\nHost: [::1]:{port}\r\n".encode() in seen[0]


def test_a_page_is_asked_for_as_json_by_the_user_and_on_no_proxy(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    seen = []

    def script(connected: socket.socket) -> None:
        seen.append(request_of(connected))
        connected.sendall(page(b'{"a": [1]}'))

    endpoint = serve(script)
    assert get(endpoint) == {"a": [1]}
    first, *headers = seen[0].decode().split("\r\n")
    assert first == "GET /ws/v1/cluster/info?user.name=al%20ice HTTP/1.1"
    assert f"Host: 127.0.0.1:{endpoint.port}" in headers
    assert "Accept: application/json" in headers


class Row(Struct):
    id: str


class Rows(Struct):
    node: list[Row]


def test_of_a_large_page_only_what_the_value_has_is_kept(serve: Serve) -> None:
    body = b'{"nodes": 1, "node": [{"id": "a:1", "used": {"id": 3}, "rack": "/r"}, {"rack": "/r", "id": "b:1"}]}'
    assert Web(serve(answering(page(body))), "hadoop").decoded("/ws", soon(), Rows) == Rows([Row("a:1"), Row("b:1")])


def test_a_share_of_nothing_written_as_nan_spoils_no_page(serve: Serve) -> None:
    web = Web(serve(answering(page(b'{"node": [{"id": "a:1", "use": NaN}]}'))), "hadoop")
    assert web.decoded("/ws", soon(), Rows) == Rows([Row("a:1")])


def test_json_of_another_kind_says_where_it_differs(serve: Serve) -> None:
    web = Web(serve(answering(page(b'{"node": [{"id": 7}]}'))), "hadoop")
    with pytest.raises(ProtocolError, match=r"Expected `str`, got `int` - at `\$.node\[0\].id`"):
        web.decoded("/ws", soon(), Rows)


def test_a_chunked_page_is_put_together(serve: Serve) -> None:
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n[1,\r\n2\r\n2]\r\n0\r\n\r\n"
    assert get(serve(answering(data))) == [1, 2]


@pytest.mark.parametrize(
    ("data", "diagnosis"),
    [
        (page(b"<!DOCTYPE html><html>"), "no such JSON .* begins with '<!DOCTYPE html><html>'"),
        (page(b'{"a": [1, '), "no such JSON"),
        (page(b""), "no such JSON"),
        (page(b"\xff\xfe"), "no such JSON"),
        (page(b"[" * 200_000), "no such JSON"),
        (page(b"1" * 5000), "no such JSON"),
        (page(b'{"a": 1')[:-3], "no such JSON"),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", "no HTTP answer: SSH-2.0"),
        (b"\x00\x00\x00\x10garbage\n\n", "no HTTP answer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "no HTTP answer"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200, "no HTTP answer"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000, "no HTTP answer"),
        (page(b"It looks like you are making an HTTP request to a Hadoop IPC port.", "404 Not Found"), "IPC port"),
        (page(b"moved", "302 Found", "Location: https://login.example/"), "redirects to https://login.example/"),
        (page(b"moved", "307 Temporary Redirect", "Location: https://rm1/\x1b[1m"), "which is not followed"),
    ],
)
def test_wrong_content_is_a_protocol_error_that_says_what_was_expected(
    serve: Serve, data: bytes, diagnosis: str
) -> None:
    with pytest.raises(ProtocolError, match=diagnosis) as caught:
        get(serve(answering(data)))
    assert "(spec.test): GET /ws/v1/cluster/info: " in str(caught.value)
    assert "expected the test's server (test.address)" in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "answer",
    [
        page(b"This is standby RM. The redirect url is: http://rm2:8088/ws", "307 Temporary Redirect", "Location: x"),
        page(b"There is no active RM right now. Will retry", "307 Temporary Redirect", "Refresh: 3; url=/ws"),
    ],
)
def test_a_redirect_from_a_standby_is_a_standby(serve: Serve, answer: bytes) -> None:
    with pytest.raises(StandbyError):
        get(serve(answering(answer)))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("401 Unauthorized", AuthenticationRefusedError),
        ("403 Forbidden", AccessDeniedError),
        ("404 Not Found", RemoteError),
        ("500 Internal Server Error", RemoteError),
    ],
)
def test_a_refusal_has_its_class_and_the_message_of_the_resource_manager(
    serve: Serve, status: str, expected: type[RemoteError]
) -> None:
    body = b'{\n "RemoteException": {"exception": "X", "message": "node h:1\\nis not found"}}'
    with pytest.raises(RemoteError, match="node h:1;") as caught:
        get(serve(answering(page(body, status))))
    assert type(caught.value) is expected
    assert caught.value.kind == f"HTTP {status[:3]}"


def test_a_page_that_is_not_found_can_be_asked_for_without_an_error(serve: Serve) -> None:
    endpoint = serve(answering(page(b"", "404 Not Found")))
    assert Web(endpoint, "u").decoded_if_found("/conf?name=x", soon(), object) is None


def test_other_refusals_are_errors_also_then(serve: Serve) -> None:
    endpoint = serve(answering(page(b"", "503 Service Unavailable")))
    with pytest.raises(RemoteError, match="HTTP 503: no text"):
        Web(endpoint, "u").decoded_if_found("/conf?name=x", soon(), object)


def test_a_refused_connection_is_unreachable(serve: Serve) -> None:
    endpoint = serve(answering(page(b"1")))
    assert get(endpoint) == 1
    with pytest.raises(UnreachableError):
        get(endpoint)


def test_a_connection_that_ends_unanswered_is_an_error(serve: Serve) -> None:
    with pytest.raises((ConnectionLostError, ProtocolError)):
        get(serve(answering(b"")))


def test_a_dripping_server_costs_no_more_than_the_deadline(serve: Serve) -> None:
    def script(connected: socket.socket) -> None:
        request_of(connected)
        for byte in page(b" " * 100_000):
            connected.sendall(bytes([byte]))
            time.sleep(0.01)

    with pytest.raises(DeadlineError):
        get(serve(script), Deadline.after(0.15))


def test_an_endless_run_of_interim_answers_ends_at_the_limit(serve: Serve) -> None:
    with pytest.raises(ProtocolError, match="longer than 100000 bytes"):
        get(serve(answering(b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000)), most_bytes=100_000)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5368709120\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n140000000\r\n",
    ],
)
def test_a_page_without_end_is_cut_off_at_the_limit(serve: Serve, head: bytes) -> None:
    def script(connected: socket.socket) -> None:
        request_of(connected)
        connected.sendall(head)
        for _ in range(100):
            connected.sendall(bytes(1 << 16))

    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="longer than 1048576 bytes"):
            get(serve(script), most_bytes=1 << 20)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
