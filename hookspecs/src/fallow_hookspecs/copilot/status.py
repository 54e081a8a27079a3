"""The service's name and calls, and the errors of the contract as statuses of gRPC."""

from collections.abc import Sequence
from typing import Final

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.message import DecodeError, Message

from fallow_hookspecs.copilot.v0 import copilot_pb2 as pb
from fallow_hookspecs.errors import Broken, PluginError, TryLater

SERVICE: Final = pb.DESCRIPTOR.services_by_name["Copilot"].full_name

LARGEST_MESSAGE_BYTES: Final = 64 << 20
"""A report of 5,000 nodes has about 0.6 MB, and up to 5 MB where nodes have many labels and annotations."""

OPTIONS: Final = (
    ("grpc.max_receive_message_length", LARGEST_MESSAGE_BYTES),
    ("grpc.max_send_message_length", LARGEST_MESSAGE_BYTES),
)
"""Options of a channel and of a server."""

DETAILS_KEY: Final = "grpc-status-details-bin"
LONGEST_MESSAGE: Final = 400
"""In characters, so that it fits into the 8 KiB that gRPC allows for trailers, whatever is in it."""


def path_of(call: str) -> str:
    """The path of a call, such as `ListTasks`."""
    return f"/{SERVICE}/{call}"


def status_of(error: BaseException) -> tuple[grpc.StatusCode, str, Sequence[tuple[str, bytes]]]:
    """Code, message and trailers for what a hook raised."""
    text = str(error)
    if isinstance(error, TryLater):
        return _detailed(grpc.StatusCode.UNAVAILABLE, text, pb.TryLater(after_seconds=error.after_seconds))
    if isinstance(error, Broken):
        return _detailed(grpc.StatusCode.FAILED_PRECONDITION, text, pb.Broken())
    if isinstance(error, PluginError) and text:
        return grpc.StatusCode.ABORTED, _cut(text), ()
    name = type(error).__name__
    return grpc.StatusCode.INTERNAL, _cut(f"{name}: {text}" if text else name), ()


def error_of(error: grpc.Call) -> PluginError | None:
    """The error of the contract in a status; `None` if it has no detail of ours."""
    for key, value in error.trailing_metadata() or ():
        if key != DETAILS_KEY or not isinstance(value, bytes):
            continue
        try:
            return _error_in(pb.Status.FromString(value).details, error.details() or "")
        except DecodeError:
            return None
    return None


def _error_in(details: Sequence[Any], text: str) -> PluginError | None:
    for detail in details:
        later = pb.TryLater()
        if detail.Unpack(later):
            return TryLater(text, later.after_seconds)
        if detail.Unpack(pb.Broken()):
            return Broken(text)
    return None


def _detailed(
    code: grpc.StatusCode, text: str, detail: Message
) -> tuple[grpc.StatusCode, str, Sequence[tuple[str, bytes]]]:
    packed = Any()
    packed.Pack(detail)
    number, _ = code.value
    whole = pb.Status(code=number, message=_cut(text), details=[packed])
    return code, _cut(text), ((DETAILS_KEY, whole.SerializeToString()),)


def _cut(text: str) -> str:
    text = text.encode(errors="replace").decode()
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + " ..."
