"""Encodes and decodes Hadoop IPC version 9: the frames of a client, and those of the server. No I/O.

A connection begins with the preamble. Then both sides send frames: four bytes of length, and a sequence of
protobuf messages, each with its own length as a varint. A call is three of them: request header, call header, argument.
"""

from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError

from fallow_yarn.errors import ProtocolError, WrongPortError
from fallow_yarn.ipc.protos.rpc_pb2 import (
    RPC_PROTOCOL_BUFFER,
    CallHeader,
    ConnectionContext,
    RequestHeader,
    ResponseHeader,
    SaslMessage,
    UserInformation,
)

SIMPLE_PREAMBLE: Final = b"hrpc\x09\x00\x00"  # magic, version, service class, authentication: none
SASL_PREAMBLE: Final = b"hrpc\x09\x00\xdf"
PREFIX_BYTES: Final = 4
MAX_FRAME_BYTES: Final = 16 << 20
"""For a list of nodes: 10,000 of them are 4 MB. Decoded, a message takes up to forty times its bytes."""
SMALL_FRAME_BYTES: Final = 1 << 20
"""For all other answers, which are some bytes or a text."""
CONTEXT_CALL_ID: Final = -3
SASL_CALL_ID: Final = -33
PROTOCOL_VERSION: Final = 1
MAX_CALL_ID: Final = 0x7FFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One frame of the server. `call_id` is negative if it concerns the connection rather than one call.

    `body` is the reply message of a success. For a failure `exception` is the Java class, `text` its message with the
    stack, `code` the number of the protocol's error code (0 if it gave none); `fatal` means that the server closes.
    """

    call_id: int
    succeeded: bool
    fatal: bool = False
    body: bytes = b""
    exception: str = ""
    text: str = ""
    code: int = 0


def frame(*messages: bytes) -> bytes:
    """One frame of encoded messages."""
    payload = b"".join(_varint(len(message)) + message for message in messages)
    return len(payload).to_bytes(PREFIX_BYTES, "big") + payload


def context_frame(client_id: bytes, user: str | None, protocol: str) -> bytes:
    """The frame with the user, unless the connection is authenticated, and the protocol of the connection."""
    context = ConnectionContext(user=UserInformation(effective_user=user), protocol=protocol)
    return frame(_request_header(CONTEXT_CALL_ID, client_id, retry_count=-1), context.SerializeToString())


def call_frame(call_id: int, client_id: bytes, protocol: str, method: str, argument: bytes) -> bytes:
    """The frame of one call; `argument` is the encoded request message."""
    header = CallHeader(method=method, protocol=protocol, protocol_version=PROTOCOL_VERSION)
    return frame(_request_header(call_id, client_id, retry_count=0), header.SerializeToString(), argument)


def sasl_frame(message: SaslMessage) -> bytes:
    """The frame of an authentication message."""
    return frame(_request_header(SASL_CALL_ID, b"", retry_count=-1), message.SerializeToString())


def read_sasl(body: bytes) -> SaslMessage:
    """An authentication message; ProtocolError if it is none."""
    message = SaslMessage()
    try:
        message.ParseFromString(body)
    except DecodeError as error:
        raise ProtocolError(f"a message of its authentication is not readable: {error}") from None
    if not message.IsInitialized():
        raise ProtocolError("a message of its authentication lacks its state")
    return message


def frame_bytes(prefix: bytes, most_bytes: int = MAX_FRAME_BYTES) -> int:
    """The length of the frame that follows these four bytes; WrongPortError if no Hadoop server sends such a prefix."""
    if prefix == b"HTTP":
        raise WrongPortError("this is a web port: it answered with HTTP")
    if prefix[:2] == b"\x15\x03":
        raise WrongPortError("this is a TLS port: it answered with a TLS alert")
    count = int.from_bytes(prefix, "big", signed=True)
    if not 0 < count <= most_bytes:
        said = f"{prefix.hex(' ')} ({prefix!r})"
        raise WrongPortError(f"the answer does not begin with a length of 1 to {most_bytes} bytes but with {said}")
    return count


def read_answer(payload: bytes) -> Answer:
    """The content of a server's frame, without its prefix; ProtocolError if it is none."""
    start, end = _message_bounds(payload, 0)
    header = ResponseHeader()
    try:
        header.ParseFromString(payload[start:end])
    except DecodeError as error:
        raise ProtocolError(f"the answer's header is not readable: {error}") from None
    if not header.IsInitialized():
        raise ProtocolError("the answer's header lacks the call id or a known status")
    call_id = header.call_id if header.call_id <= MAX_CALL_ID else header.call_id - (1 << 32)
    if header.status == ResponseHeader.SUCCESS:
        start, end = _message_bounds(payload, end)
        return Answer(call_id=call_id, succeeded=True, body=payload[start:end])
    return Answer(
        call_id=call_id,
        succeeded=False,
        fatal=header.status == ResponseHeader.FATAL,
        exception=header.exception_class.decode(errors="replace"),
        text=header.error_message.decode(errors="replace"),
        code=header.error_code if header.HasField("error_code") else 0,
    )


def _request_header(call_id: int, client_id: bytes, retry_count: int) -> bytes:
    return RequestHeader(
        rpc_kind=RPC_PROTOCOL_BUFFER,
        rpc_op=RequestHeader.RPC_FINAL_PACKET,
        call_id=call_id,
        client_id=client_id,
        retry_count=retry_count,
    ).SerializeToString()


def _message_bounds(data: bytes, position: int) -> tuple[int, int]:
    """Start and end of the delimited message whose length is at `position`."""
    count = 0
    for shift, byte in enumerate(data[position : position + 5]):
        count |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            start = position + shift + 1
            if count > len(data) - start:
                raise ProtocolError(
                    f"a message of {count} bytes is announced in the last {len(data) - start} of a frame"
                )
            return start, start + count
    raise ProtocolError("a frame ends inside a length, or the length is longer than five bytes")


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
