"""The server side of Hadoop IPC version 9 with SIMPLE authentication."""

import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, Final

from google.protobuf.message import DecodeError

from fallow_yarn.embedded.listener import Serve
from fallow_yarn.ipc.protos.rpc_pb2 import CallHeader, ConnectionContext, RequestHeader, ResponseHeader
from fallow_yarn.ipc.wire import CONTEXT_CALL_ID, PREFIX_BYTES, SIMPLE_PREAMBLE, frame

MAX_REQUEST_BYTES: Final = 128 << 20  # ipc.maximum.data.length
NO_CALL_ID: Final = -1
WEB_ANSWER: Final = (
    b"HTTP/1.1 404 Not Found\r\nContent-type: text/plain\r\n\r\n"
    b"It looks like you are making an HTTP request to a Hadoop IPC port. "
    b"This is not the correct port for the web interface on this daemon.\r\n"
)

Method = Callable[[bytes, str], bytes]
"""One remote method: the encoded request and the caller's name to the encoded reply. Raises `Refusal`."""

Protocols = Mapping[str, Mapping[str, Method]]
"""The methods of each protocol of a port, by the protocol's name."""


class Refusal(Exception):  # noqa: N818 - it is the answer of a server, and no fault of it
    """An error answer: the Java class, its message, and the protocol's number for the kind of error."""

    def __init__(self, java_class: str, message: str, code: ResponseHeader.ErrorCode) -> None:
        super().__init__(f"{java_class}: {message}")
        self.java_class = java_class
        self.message = message
        self.code = code


def refused(java_class: str, message: str) -> Refusal:
    """The ordinary error of a method."""
    return Refusal(java_class, message, ResponseHeader.ERROR_APPLICATION)


def serve_ipc(protocols: Protocols) -> Serve:
    """Serve a connection: one call after the other. Invalid data ends it."""

    def serve(connection: socket.socket) -> None:
        with connection.makefile("rb") as incoming, suppress(DecodeError, IndexError):
            if not _is_ours(connection, incoming):
                return
            user = ""
            while (request := _read(incoming)) is not None:
                if request.header.call_id == CONTEXT_CALL_ID:
                    user = ConnectionContext.FromString(request.parts[0]).user.effective_user
                elif request.header.call_id >= 0:
                    connection.sendall(_answer(protocols, request, user))

    return serve


def serve_token_only(connection: socket.socket) -> None:
    """Serve a connection to a port that takes tokens only, as that of application masters does."""
    with connection.makefile("rb") as incoming:
        if _is_ours(connection, incoming):
            text = "SIMPLE authentication is not enabled.  Available:[TOKEN]"
            java_class = "org.apache.hadoop.security.AccessControlException"
            refusal = Refusal(java_class, text, ResponseHeader.FATAL_UNAUTHORIZED)
            connection.sendall(_failed(NO_CALL_ID, refusal, ResponseHeader.FATAL))
            incoming.read(1)  # what the client was about to send would meet a closed socket


@dataclass(frozen=True, slots=True)
class _Request:
    header: RequestHeader
    parts: list[bytes]


def _is_ours(connection: socket.socket, incoming: BinaryIO) -> bool:
    preamble = incoming.read(len(SIMPLE_PREAMBLE))
    if preamble[:4] in (b"GET ", b"POST", b"HEAD"):
        connection.sendall(WEB_ANSWER)
    return preamble == SIMPLE_PREAMBLE


def _read(incoming: BinaryIO) -> _Request | None:
    """The next request; None at the end. ValueError if it is invalid."""
    prefix = incoming.read(PREFIX_BYTES)
    if len(prefix) < PREFIX_BYTES:
        return None
    count = int.from_bytes(prefix, "big", signed=True)
    if not 0 < count <= MAX_REQUEST_BYTES:
        raise ValueError(f"a frame of {count} bytes")
    header, *parts = _delimited(incoming.read(count))
    return _Request(RequestHeader.FromString(header), parts)


def _delimited(payload: bytes) -> list[bytes]:
    """The messages of a frame, each after its length; IndexError if the frame is truncated."""
    messages = []
    position = 0
    while position < len(payload):
        count = shift = 0
        while (byte := payload[position]) & 0x80:
            count |= (byte & 0x7F) << shift
            shift += 7
            position += 1
        count |= byte << shift
        position += 1 + count
        if position > len(payload):
            raise IndexError(f"a message of {count} bytes in a frame of {len(payload)}")
        messages.append(payload[position - count : position])
    return messages


def _answer(protocols: Protocols, request: _Request, user: str) -> bytes:
    call = CallHeader.FromString(request.parts[0])
    call_id = request.header.call_id
    try:
        reply = _method(protocols, call)(request.parts[1], user)
    except Refusal as refusal:
        return _failed(call_id, refusal, ResponseHeader.ERROR)
    header = ResponseHeader(call_id=call_id, status=ResponseHeader.SUCCESS)
    return frame(header.SerializeToString(), reply)


def _method(protocols: Protocols, call: CallHeader) -> Method:
    if call.protocol not in protocols:
        java_class = "org.apache.hadoop.ipc.RpcNoSuchProtocolException"
        raise Refusal(java_class, f"Unknown protocol: {call.protocol}", ResponseHeader.ERROR_NO_SUCH_PROTOCOL)
    method = protocols[call.protocol].get(call.method)
    if method is None:
        java_class = "org.apache.hadoop.ipc.RpcNoSuchMethodException"
        text = f"Unknown method {call.method} called on {call.protocol} protocol."
        raise Refusal(java_class, text, ResponseHeader.ERROR_NO_SUCH_METHOD)
    return method


def _failed(call_id: int, refusal: Refusal, status: ResponseHeader.Status) -> bytes:
    header = ResponseHeader(
        call_id=call_id & 0xFFFFFFFF,
        status=status,
        exception_class=refusal.java_class.encode(),
        error_message=f"{refusal.message}\n\tat org.apache.hadoop.ipc.Server.call(Server.java)\n".encode(),
        error_code=refusal.code,
    )
    return frame(header.SerializeToString())
