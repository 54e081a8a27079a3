import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Never

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_yarn.errors import (
    AccessDeniedError,
    AuthenticationRefusedError,
    ConnectionLostError,
    DeadlineError,
    NoSuchCallError,
    ProtocolError,
    RemoteError,
    StandbyError,
    UnknownNodeError,
    UnreachableError,
    YarnError,
)
from fallow_yarn.ipc import wire
from fallow_yarn.ipc.connection import Connection, simple
from fallow_yarn.ipc.protos.rpc_pb2 import RequestHeader, ResponseHeader
from fallow_yarn.net.channel import Channel
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint

Serve = Callable[..., Endpoint]
Script = Callable[[socket.socket], None]
Connect = Callable[[Endpoint], Connection]

ACCESS_CONTROL = b"org.apache.hadoop.security.AccessControlException"
YARN_EXCEPTION = b"org.apache.hadoop.yarn.exceptions.YarnException"


@pytest.fixture
def connect(serve: Serve) -> Iterator[Connect]:
    """Connections that are closed at the end, before the servers are."""
    made: list[Connection] = []

    def start(endpoint: Endpoint) -> Connection:
        made.append(Connection(endpoint, "the.Protocol", "alice", simple("alice")))
        return made[-1]

    yield start
    for one in made:
        one.close()


def soon() -> Deadline:
    return Deadline.after(10)


def exactly(connected: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = connected.recv(count - len(data))
        if not chunk:
            raise ConnectionError
        data += chunk
    return data


def read_frame(connected: socket.socket) -> RequestHeader:
    payload = exactly(connected, int.from_bytes(exactly(connected, 4), "big"))
    header = RequestHeader()
    header.ParseFromString(payload[1 : 1 + payload[0]])
    return header


def read_opening(connected: socket.socket) -> None:
    assert exactly(connected, 7) == b"hrpc\x09\x00\x00"
    assert read_frame(connected).call_id == -3


def success(call_id: int, body: bytes) -> bytes:
    return wire.frame(ResponseHeader(call_id=call_id, status=ResponseHeader.SUCCESS).SerializeToString(), body)


def failure(call_id: int, kind: bytes, text: bytes, code: int = 1, *, fatal: bool = False) -> bytes:
    status = ResponseHeader.FATAL if fatal else ResponseHeader.ERROR
    error_code = ResponseHeader.ErrorCode.Name(code)
    header = ResponseHeader(
        call_id=call_id % (1 << 32), status=status, exception_class=kind, error_message=text, error_code=error_code
    )
    return wire.frame(header.SerializeToString())


def answering(*bodies: bytes) -> Script:
    """Answers so many calls, then closes."""

    def script(connected: socket.socket) -> None:
        read_opening(connected)
        for body in bodies:
            connected.sendall(success(read_frame(connected).call_id, body))

    return script


def saying(data: bytes) -> Script:
    """Sends these bytes as the answer to the first call, whatever it is, and closes."""

    def script(connected: socket.socket) -> None:
        read_opening(connected)
        read_frame(connected)
        connected.sendall(data)

    return script


def failing(kind: bytes, text: bytes, code: int = 1) -> Script:
    def script(connected: socket.socket) -> None:
        read_opening(connected)
        connected.sendall(failure(read_frame(connected).call_id, kind, text, code))
        connected.sendall(success(read_frame(connected).call_id, b"next"))

    return script


def dripping(data: bytes) -> Script:
    def script(connected: socket.socket) -> None:
        for byte in data:
            connected.sendall(bytes([byte]))
            time.sleep(0.01)

    return script


def test_calls_share_one_connection_and_each_gets_its_answer(serve: Serve, connect: Connect) -> None:
    calls = connect(serve(answering(b"one", b"two")))
    assert [calls.call("m", b"", soon()) for _ in range(2)] == [b"one", b"two"]


def test_a_connection_that_died_while_idle_is_made_anew(serve: Serve, connect: Connect) -> None:
    calls = connect(serve(answering(b"one"), answering(b"two")))
    assert [calls.call("m", b"", soon()) for _ in range(2)] == [b"one", b"two"]


def test_a_call_that_a_kept_connection_ends_unanswered_is_made_once_more(serve: Serve, connect: Connect) -> None:
    def ends_with_second(connected: socket.socket) -> None:
        answering(b"one")(connected)
        read_frame(connected)

    calls = connect(serve(ends_with_second, answering(b"two")))
    assert [calls.call("m", b"", soon()) for _ in range(2)] == [b"one", b"two"]


def test_a_call_lost_on_a_kept_connection_may_have_been_carried_out_even_if_the_second_try_never_left(
    serve: Serve, connect: Connect
) -> None:
    def ends_with_second(connected: socket.socket) -> None:
        answering(b"one")(connected)
        read_frame(connected)

    calls = connect(serve(ends_with_second))
    calls.call("m", b"", soon())
    with pytest.raises(UnreachableError) as caught:
        calls.call("m", b"", soon())
    assert caught.value.maybe_sent


def test_a_new_connection_that_ends_unanswered_is_not_tried_again(serve: Serve, connect: Connect) -> None:
    calls = connect(serve(saying(b""), answering(b"never asked")))
    with pytest.raises(ConnectionLostError, match=r"127.0.0.1:\d+ \(spec.test\)") as caught:
        calls.call("m", b"", soon())
    assert caught.value.maybe_sent


def test_a_refused_connection_says_that_nothing_was_sent(serve: Serve, connect: Connect) -> None:
    endpoint = serve(lambda connected: None)
    with socket.create_connection((endpoint.host, endpoint.port)) as first:
        assert first.recv(1) == b""
    with pytest.raises(UnreachableError, match=r"refused.*the test's server.*test\.address") as caught:
        connect(endpoint).call("m", b"", soon())
    assert not caught.value.maybe_sent


def test_a_name_that_does_not_resolve_is_unreachable(connect: Connect) -> None:
    endpoint = Endpoint(host="a name.invalid", port=1, setting="spec.rm", purpose="p", hadoop_key="k")
    with pytest.raises(UnreachableError, match=r"spec\.rm.*cannot be resolved"):
        connect(endpoint).call("m", b"", soon())


def test_a_deadline_that_is_over_sends_nothing(serve: Serve, connect: Connect) -> None:
    with pytest.raises(UnreachableError, match="time given") as caught:
        connect(serve(answering())).call("m", b"", Deadline.after(-1))
    assert not caught.value.maybe_sent


def test_a_silent_server_costs_no_more_than_the_deadline(serve: Serve, connect: Connect) -> None:
    def silent(connected: socket.socket) -> None:
        while connected.recv(1000):
            pass

    with pytest.raises(DeadlineError, match="waiting for the answer") as caught:
        connect(serve(silent)).call("m", b"", Deadline.after(0.1))
    assert caught.value.maybe_sent


def test_a_dripping_server_costs_no_more_than_the_deadline(serve: Serve, connect: Connect) -> None:
    with pytest.raises(DeadlineError):
        connect(serve(dripping((1 << 20).to_bytes(4, "big") + bytes(1 << 20)))).call("m", b"", Deadline.after(0.15))


def test_a_server_that_reads_nothing_costs_no_more_than_the_deadline(serve: Serve, connect: Connect) -> None:
    over = threading.Event()
    calls = connect(serve(lambda connected: over.wait(20) and None))
    try:
        with pytest.raises(DeadlineError) as caught:
            calls.call("m", bytes(16 << 20), Deadline.after(0.2))
    finally:
        over.set()
    assert not caught.value.maybe_sent


def test_after_a_deadline_the_next_call_uses_a_new_connection(serve: Serve, connect: Connect) -> None:
    def late(connected: socket.socket) -> None:
        read_opening(connected)
        call_id = read_frame(connected).call_id
        connected.recv(1)  # until the client gives up
        connected.sendall(success(call_id, b"late"))

    calls = connect(serve(late, answering(b"new")))
    with pytest.raises(DeadlineError):
        calls.call("m", b"", Deadline.after(0.1))
    assert calls.call("m", b"", soon()) == b"new"


@pytest.mark.parametrize(
    ("data", "diagnosis"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "this is a web port"),
        (b"\x15\x03\x03\x00\x02\x02\x50", "this is a TLS port"),
        (b"\xff\xff\xff\xff", "does not begin with a length"),
        ((5 << 30).to_bytes(8, "big"), "a message of 64 bytes is announced in the last 0"),
        (b"\x08\x00\x00\x01" + bytes(100), "does not begin with a length"),
        (b"\x00\x00", "truncated: its connection ended after 2 of 4 bytes"),
        (b"\x00\x00\x00\x09\x01\x02", "truncated: its connection ended after 2 of 9 bytes"),
        (b"\x00\x0f\xff\xff" + bytes(100), "truncated: its connection ended after 100 of 1048575 bytes"),
        (b"\x00\x00\x00\x04\xff\xff\xff\xff", "ends inside a length"),
        (success(77, b""), "a call 77 that was never made"),
        (failure(-33, b"SaslException", b"x", 15), "a call -33 that was never made"),
    ],
)
def test_wrong_content_is_a_protocol_error_that_says_where_and_what_was_expected(
    serve: Serve, connect: Connect, data: bytes, diagnosis: str
) -> None:
    with pytest.raises(ProtocolError, match=diagnosis) as caught:
        connect(serve(saying(data))).call("m", b"", soon())
    assert "(spec.test): " in str(caught.value)
    assert "expected the test's server (test.address)" in str(caught.value)
    assert caught.value.maybe_sent


def test_memory_follows_what_arrives_and_not_what_is_announced(serve: Serve, connect: Connect) -> None:
    announced = (wire.SMALL_FRAME_BYTES).to_bytes(4, "big")
    calls = connect(serve(saying(announced + bytes(100_000))))
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="truncated"):
            calls.call("m", b"", soon())
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


def test_answers_are_matched_by_their_call_id(serve: Serve, connect: Connect) -> None:
    def out_of_order(connected: socket.socket) -> None:
        answering(b"one")(connected)
        call_id = read_frame(connected).call_id
        connected.sendall(success(call_id - 1, b"one again") + success(call_id, b"two"))

    calls = connect(serve(out_of_order))
    assert [calls.call("m", b"", soon()) for _ in range(2)] == [b"one", b"two"]


@pytest.mark.parametrize(
    ("kind", "text", "code", "expected", "message"),
    [
        (b"org.apache.hadoop.ipc.StandbyException", b"rm1 is not Active!", 1, StandbyError, "standby or has just"),
        (
            YARN_EXCEPTION,
            ACCESS_CONTROL + b": User alice doesn't have permission to call 'm'\n\tat x",
            1,
            AccessDeniedError,
            "user 'alice' needs the right: see yarn.admin.acl",
        ),
        (ACCESS_CONTROL, b"no", 1, AccessDeniedError, "yarn.admin.acl"),
        (b"java.io.IOException", ACCESS_CONTROL + b": no", 1, AccessDeniedError, "yarn.admin.acl"),
        (b"org.apache.hadoop.ipc.RpcNoSuchMethodException", b"Unknown method m", 2, NoSuchCallError, "another port"),
        (b"org.apache.hadoop.ipc.RpcNoSuchProtocolException", b"Unknown protocol", 3, NoSuchCallError, "another port"),
        (
            YARN_EXCEPTION,
            b"change resource on an unrecognized node: h1:45454\n\tat org.apache",
            1,
            UnknownNodeError,
            "unrecognized node: h1:45454",
        ),
        (b"java.lang.NullPointerException", b"\n\tat x\n", 1, RemoteError, "NullPointerException: at x"),
        (b"", b"", 4, RemoteError, "no class: no text"),
    ],
)
def test_an_error_answer_has_its_class_and_the_connection_goes_on(
    serve: Serve, connect: Connect, kind: bytes, text: bytes, code: int, expected: type[RemoteError], message: str
) -> None:
    calls = connect(serve(failing(kind, text, code)))
    with pytest.raises(RemoteError, match=message) as caught:
        calls.call("m", b"", soon())
    assert type(caught.value) is expected
    assert caught.value.kind == kind.decode()
    assert "\n" not in str(caught.value)
    assert calls.call("m", b"", soon()) == b"next"


def test_an_unknown_node_is_named(serve: Serve, connect: Connect) -> None:
    text = b"Resource update get failed on all nodes due to change resource on an unrecognized node: h1:45454\n\tat"
    with pytest.raises(UnknownNodeError) as caught:
        connect(serve(failing(YARN_EXCEPTION, text))).call("m", b"", soon())
    assert caught.value.node == "h1:45454"


def test_an_error_that_is_none_of_the_known_ones_may_have_come_after_the_work(serve: Serve, connect: Connect) -> None:
    with pytest.raises(RemoteError) as caught:
        connect(serve(failing(b"java.lang.Error", b"boom"))).call("m", b"", soon())
    assert caught.value.maybe_sent


def test_only_the_first_line_of_a_remote_text_is_shown_cut_and_printable(serve: Serve, connect: Connect) -> None:
    text = b"\x1b[31mred\x00" + b"y" * 1000 + b"\n\tat secret"
    with pytest.raises(RemoteError) as caught:
        connect(serve(failing(b"java.lang.Error", text))).call("m", b"", soon())
    assert caught.value.detail.startswith("?[31mred?yyy")
    assert len(caught.value.detail) == 301


@pytest.mark.parametrize("call_id", [-1, -3, -33])
def test_a_connection_without_the_right_authentication_is_refused_on_a_call_id_of_its_own(
    serve: Serve, connect: Connect, call_id: int
) -> None:
    text = b"SIMPLE authentication is not enabled.  Available:[KERBEROS]"
    calls = connect(serve(saying(failure(call_id, ACCESS_CONTROL, text, 15, fatal=True))))
    with pytest.raises(AuthenticationRefusedError, match=r"set spec\.kerberos") as caught:
        calls.call("m", b"", soon())
    assert not caught.value.maybe_sent


def test_a_connection_that_the_service_acl_refuses_is_access_denied(serve: Serve, connect: Connect) -> None:
    kind = b"org.apache.hadoop.security.authorize.AuthorizationException"
    calls = connect(serve(saying(failure(-3, kind, b"User alice is not authorized", 15, fatal=True))))
    with pytest.raises(AccessDeniedError, match=r"hadoop-policy\.xml"):
        calls.call("m", b"", soon())


def test_after_a_fatal_answer_the_next_call_uses_a_new_connection(serve: Serve, connect: Connect) -> None:
    fatal = failure(0, b"org.apache.hadoop.ipc.RpcServerException", b"bad", 12, fatal=True)
    calls = connect(serve(saying(fatal), answering(b"new")))
    with pytest.raises(RemoteError):
        calls.call("m", b"", soon())
    assert calls.call("m", b"", soon()) == b"new"


def test_a_server_that_refuses_while_we_still_write_is_heard(serve: Serve, connect: Connect) -> None:
    def refuse(connected: socket.socket) -> None:
        connected.sendall(failure(-1, ACCESS_CONTROL, b"SIMPLE authentication is not enabled.", 15, fatal=True))
        connected.shutdown(socket.SHUT_WR)
        exactly(connected, 7)

    with pytest.raises(AuthenticationRefusedError) as caught:
        connect(serve(refuse)).call("m", bytes(16 << 20), soon())
    assert not caught.value.maybe_sent


def test_a_request_that_could_not_be_written_whole_was_not_carried_out(serve: Serve, connect: Connect) -> None:
    with pytest.raises(ConnectionLostError) as caught:
        connect(serve(lambda connected: None)).call("m", bytes(16 << 20), soon())
    assert not caught.value.maybe_sent


def test_call_ids_begin_again_after_the_largest(serve: Serve, connect: Connect) -> None:
    def script(connected: socket.socket) -> None:
        read_opening(connected)
        for expected in (wire.MAX_CALL_ID, 0):
            call_id = read_frame(connected).call_id
            assert call_id == expected
            connected.sendall(success(call_id, b"x"))

    calls = connect(serve(script))
    calls._next_call_id = wire.MAX_CALL_ID
    assert [calls.call("m", b"", soon()) for _ in range(2)] == [b"x", b"x"]


def refusing_second_of(count: int, order: Callable[[list[int]], list[int]]) -> Script:
    """Reads so many calls before it answers them in this order, the second of them with an error."""

    def script(connected: socket.socket) -> None:
        read_opening(connected)
        for call_id in order([read_frame(connected).call_id for _ in range(count)]):
            text = b"unrecognized node: h1:1"
            refused = failure(call_id, YARN_EXCEPTION, text)
            connected.sendall(refused if call_id == 1 else success(call_id, b"%d" % call_id))

    return script


@pytest.mark.parametrize(
    "order", [list, lambda ids: [*ids[1:], ids[0]], lambda ids: ids[::-1]], ids=["begun", "first last", "backwards"]
)
def test_each_of_several_calls_under_way_gets_its_own_answer_whatever_their_order(
    serve: Serve, connect: Connect, order: Callable[[list[int]], list[int]]
) -> None:
    calls = connect(serve(refusing_second_of(3, order)))
    first, second, third = [calls.begin("m", b"", soon()) for _ in range(3)]
    assert first() == b"0"
    with pytest.raises(UnknownNodeError):
        second()
    assert third() == b"2"


def test_a_call_may_be_begun_on_a_connection_that_died_while_idle(serve: Serve, connect: Connect) -> None:
    calls = connect(serve(answering(b"one"), answering(b"two")))
    calls.call("m", b"", soon())
    assert calls._stream is not None
    while calls._stream.is_quiet():
        time.sleep(0.001)
    assert calls.begin("m", b"", soon())() == b"two"


def test_calls_under_way_when_the_connection_ends_may_all_have_been_carried_out(serve: Serve, connect: Connect) -> None:
    def one_of_three(connected: socket.socket) -> None:
        read_opening(connected)
        first, *_ = [read_frame(connected).call_id for _ in range(3)]
        connected.sendall(success(first, b"one"))

    calls = connect(serve(one_of_three, answering(b"anew")))
    first, *lost = [calls.begin("m", b"", soon()) for _ in range(3)]
    assert first() == b"one"
    for finish in lost:
        with pytest.raises(ConnectionLostError, match="ended before the answer") as caught:
            finish()
        assert caught.value.maybe_sent
    assert calls.call("m", b"", soon()) == b"anew"


def test_a_call_gives_up_those_under_way_and_gets_no_answer_of_theirs(serve: Serve, connect: Connect) -> None:
    calls = connect(serve(answering(b"theirs"), answering(b"its own")))
    finish = calls.begin("m", b"", soon())
    assert calls.call("m", b"", soon()) == b"its own"
    with pytest.raises(ConnectionLostError):
        finish()


def test_an_interrupted_call_leaves_no_connection_behind(serve: Serve, connect: Connect) -> None:
    def interrupt(_channel: Channel, _protocol: str, _client_id: bytes, _deadline: Deadline) -> Never:
        raise KeyboardInterrupt

    calls = Connection(serve(answering()), "the.Protocol", "alice", interrupt)
    with pytest.raises(KeyboardInterrupt):
        calls.call("m", b"", soon())
    assert calls._stream is None


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_from_a_server_end_in_a_yarn_error_or_an_answer(garbage: bytes, with_length: bool) -> None:
    ours, theirs = socket.socketpair()
    endpoint = Endpoint(host="h", port=1, setting="s", purpose="p", hadoop_key="k")
    channel = Channel(endpoint, ours)
    try:
        theirs.sendall(len(garbage).to_bytes(4, "big") + garbage if with_length else garbage)
        theirs.close()
        Connection(endpoint, "the.Protocol", "alice", simple("alice"))._receive(channel, soon())
    except YarnError:
        pass
    finally:
        channel.close()
