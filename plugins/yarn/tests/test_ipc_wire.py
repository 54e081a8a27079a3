from typing import TypeVar

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from fallow_yarn.errors import ProtocolError
from fallow_yarn.ipc import wire
from fallow_yarn.ipc.protos.rpc_pb2 import CallHeader, ConnectionContext, RequestHeader, ResponseHeader

M = TypeVar("M", bound=Message)
CLIENT_ID = bytes(range(16))


def delimited(payload: bytes) -> list[bytes]:
    """All messages of a payload, each behind its length as a varint."""
    messages = []
    while payload:
        end = next(position for position, byte in enumerate(payload) if byte < 0x80) + 1
        count = sum((byte & 0x7F) << (7 * position) for position, byte in enumerate(payload[:end]))
        messages.append(payload[end : end + count])
        payload = payload[end + count :]
    return messages


def parsed(message: M, data: bytes) -> M:
    message.ParseFromString(data)
    return message


def test_the_preamble_and_context_are_the_bytes_that_hadoop_reads() -> None:
    opening = wire.SIMPLE_PREAMBLE + wire.context_frame(b"0123456789abcdef", "al", "P")
    assert opening.hex(" ") == (
        "68 72 70 63 09 00 00"  # "hrpc", version 9, service class 0, authentication 0
        " 00 00 00 25"  # 37 bytes follow
        " 1a 08 02 10 00 18 05 22 10 30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66 28 01"  # kind 2, call -3, retry -1
        " 09 12 04 0a 02 61 6c 1a 01 50"  # user in field 2, protocol in field 3
    )


@given(st.integers(0, wire.MAX_CALL_ID), st.text(max_size=50), st.binary(max_size=2000))
def test_a_call_is_read_back_as_it_was_made(call_id: int, method: str, argument: bytes) -> None:
    call = wire.call_frame(call_id, CLIENT_ID, "the.Protocol", method, argument)
    assert wire.frame_bytes(call[:4]) == len(call) - 4
    header, call_header, sent = delimited(call[4:])
    request = parsed(RequestHeader(), header)
    assert (request.call_id, request.client_id, request.rpc_kind, request.rpc_op) == (call_id, CLIENT_ID, 2, 0)
    assert parsed(CallHeader(), call_header) == CallHeader(method=method, protocol="the.Protocol", protocol_version=1)
    assert sent == argument


def test_the_context_names_user_and_protocol_under_the_call_id_of_contexts() -> None:
    header, context = delimited(wire.context_frame(CLIENT_ID, "alice", "the.Protocol")[4:])
    assert parsed(RequestHeader(), header).call_id == -3
    told = parsed(ConnectionContext(), context)
    assert (told.user.effective_user, told.protocol) == ("alice", "the.Protocol")


@given(st.integers(0, wire.MAX_CALL_ID), st.binary(max_size=2000))
def test_a_success_is_read_back(call_id: int, body: bytes) -> None:
    header = ResponseHeader(call_id=call_id, status=ResponseHeader.SUCCESS).SerializeToString()
    answer = wire.read_answer(wire.frame(header, body)[4:])
    assert answer == wire.Answer(call_id=call_id, succeeded=True, body=body)


@given(st.integers(1, 100), st.binary(max_size=100), st.binary(max_size=300))
def test_an_error_is_read_back_whatever_bytes_its_text_has(below: int, name: bytes, text: bytes) -> None:
    header = ResponseHeader(
        call_id=(1 << 32) - below,
        status=ResponseHeader.FATAL,
        exception_class=name,
        error_message=text,
        error_code=ResponseHeader.FATAL_UNAUTHORIZED,
    )
    answer = wire.read_answer(wire.frame(header.SerializeToString())[4:])
    assert (answer.call_id, answer.succeeded, answer.fatal, answer.code) == (-below, False, True, 15)
    assert answer.text == text.decode(errors="replace")


@given(st.binary(max_size=300))
def test_garbage_in_a_frame_is_a_protocol_error_or_an_answer(garbage: bytes) -> None:
    try:
        answer = wire.read_answer(garbage)
    except ProtocolError:
        return
    assert len(answer.body) <= len(garbage)


@given(st.integers(0, 1 << 70))
def test_a_message_longer_than_its_frame_is_a_protocol_error(announced: int) -> None:
    encoded = wire._varint(announced + 4)
    with pytest.raises(ProtocolError):
        wire.read_answer(encoded + b"abc")


def test_a_success_without_a_message_is_a_protocol_error() -> None:
    header = ResponseHeader(call_id=0, status=ResponseHeader.SUCCESS).SerializeToString()
    with pytest.raises(ProtocolError, match="ends inside a length"):
        wire.read_answer(wire.frame(header)[4:])


@pytest.mark.parametrize("header", [b"", b"\x08\x01", b"\x10\x00", b"\x08\x01\x10\x09", b"\x08"])
def test_a_header_without_call_id_or_known_status_is_a_protocol_error(header: bytes) -> None:
    with pytest.raises(ProtocolError, match="header"):
        wire.read_answer(wire.frame(header, b"")[4:])


@given(st.binary(min_size=4, max_size=4))
def test_a_length_is_never_beyond_the_limit(prefix: bytes) -> None:
    try:
        assert 0 < wire.frame_bytes(prefix) <= wire.MAX_FRAME_BYTES
    except ProtocolError:
        number = int.from_bytes(prefix, "big")
        assert number == 0 or number > wire.MAX_FRAME_BYTES


@pytest.mark.parametrize(
    ("prefix", "diagnosis"),
    [
        (b"\xff\xff\xff\xff", "does not begin with a length"),
        (b"\x80\x00\x00\x00", "does not begin with a length"),
        (b"\x00\x00\x00\x00", "does not begin with a length"),
        (b"\x08\x00\x00\x01", "does not begin with a length"),
        (b"\x7f\xff\xff\xff", "does not begin with a length"),
        (b"SSH-", r"53 53 48 2d \(b'SSH-'\)"),
        (b"HTTP", "web port"),
        (b"\x15\x03\x03\x00", "TLS port"),
    ],
)
def test_a_prefix_that_is_no_length_is_diagnosed(prefix: bytes, diagnosis: str) -> None:
    with pytest.raises(ProtocolError, match=diagnosis):
        wire.frame_bytes(prefix)
