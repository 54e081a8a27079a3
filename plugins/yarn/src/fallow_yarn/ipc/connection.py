"""One kept connection to one protocol of one server: calls with deadlines, several of them at the same time."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from fallow_yarn.errors import ConnectionLostError, ProtocolError, YarnError
from fallow_yarn.ipc import wire
from fallow_yarn.ipc.remote import remote_error
from fallow_yarn.net.channel import Channel
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint


class Stream(Protocol):
    """What calls are sent over: a channel, or a protected stream over one."""

    def send(self, data: bytes, deadline: Deadline) -> None:
        """Send all of `data`."""

    def receive_exactly(self, count: int, deadline: Deadline, *, begun: bool = False) -> bytes:
        """`count` bytes; see `Channel`."""

    def is_quiet(self) -> bool:
        """Whether the connection is open and has no unread data."""

    def close(self) -> None:
        """Close it; safe to repeat."""


Authenticate = Callable[[Channel, str, bytes, Deadline], tuple[Stream, bytes]]
"""The authentication step of a new connection, given the channel, the protocol's name, the client id and the deadline.

It may exchange frames on the channel. It returns the stream for all further data, and what has to be sent before the
first call.
"""


Finish = Callable[[], bytes]
"""Waits for the answer to a call, and returns the encoded reply message. Raises a YarnError."""


def simple(user: str) -> Authenticate:
    """SIMPLE authentication: the server believes the user name of the client. No frame is exchanged."""

    def authenticate(channel: Channel, protocol: str, client_id: bytes, _deadline: Deadline) -> tuple[Stream, bytes]:
        return channel, wire.SIMPLE_PREAMBLE + wire.context_frame(client_id, user, protocol)

    return authenticate


class Connection:
    """Calls to one protocol of one server over one TCP connection, opened on demand and kept.

    Use it from one thread. After any failure except an ordinary error answer the connection is closed, as late answers
    may still arrive on it. `maybe_sent` of the errors says whether the server may have carried out the call. An answer
    of more than `most_bytes` is an error.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        protocol: str,
        user: str,
        authenticate: Authenticate,
        most_bytes: int = wire.SMALL_FRAME_BYTES,
    ) -> None:
        self.endpoint = endpoint
        self.user = user
        self._protocol = protocol
        self._authenticate = authenticate
        self._most_bytes = most_bytes
        self._client_id = os.urandom(16)
        self._next_call_id = 0
        self._stream: Stream | None = None
        self._under_way: dict[int, wire.Answer | None] = {}  # with the answers that arrived before they were waited for

    def call(self, method: str, argument: bytes, deadline: Deadline) -> bytes:
        """Send an encoded request message, return the encoded reply message. Raises a YarnError.

        A kept connection may have died unnoticed. If it ends before the first byte of the answer, the call is made once
        more on a new one; so the called methods must be safe to repeat. Calls under way are abandoned.
        """
        if self._under_way:
            self.close()
        kept = self._keep_if_quiet()
        try:
            return self._send(method, argument, deadline)()
        except ConnectionLostError as error:
            if not kept:
                raise
            lost = error
        try:
            return self._send(method, argument, deadline)()
        except YarnError as error:
            error.maybe_sent = error.maybe_sent or lost.maybe_sent
            raise

    def begin(self, method: str, argument: bytes, deadline: Deadline) -> Finish:
        """Send an encoded request message; the returned function waits for the answer. Raises a YarnError.

        More calls may be begun before that. Only a server with a single handler thread carries them out in order. No
        call is repeated if the connection ends.
        """
        if not self._under_way:
            self._keep_if_quiet()
        return self._send(method, argument, deadline)

    def close(self) -> None:
        """Close the connection; the next call makes a new one. Safe to repeat."""
        self._under_way.clear()
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _keep_if_quiet(self) -> bool:
        """Close the connection if it is dead or has unread data; whether it is kept."""
        if self._stream is not None and self._stream.is_quiet():
            return True
        self.close()
        return False

    def _send(self, method: str, argument: bytes, deadline: Deadline) -> Finish:
        answer = None
        with self._failing(sent=False):
            stream, opening = self._open(deadline)
            call_id = self._next_call_id
            self._next_call_id = (call_id + 1) & wire.MAX_CALL_ID
            call = wire.call_frame(call_id, self._client_id, self._protocol, method, argument)
            try:
                stream.send(opening + call, deadline)
            except ConnectionLostError as lost:
                # A server that refuses a connection sends the reason and closes while we still write.
                answer = self._last_word(stream, deadline, lost)
        self._under_way[call_id] = answer
        return partial(self._finish, call_id, method, deadline)

    def _finish(self, call_id: int, method: str, deadline: Deadline) -> bytes:
        if self._stream is None or call_id not in self._under_way:
            raise ConnectionLostError(f"{self.endpoint}: the connection ended before the answer", maybe_sent=True)
        with self._failing(sent=True):
            answer = self._answer_to(call_id, self._stream, deadline)
        if answer.succeeded:
            return answer.body
        if answer.fatal:
            self.close()
        raise remote_error(self.endpoint, method, self.user, answer)

    @contextmanager
    def _failing(self, *, sent: bool) -> Iterator[None]:
        """Close the connection on failure; `maybe_sent` of the errors is whether the call has been `sent`."""
        try:
            yield
        except ProtocolError as error:
            self.close()
            expected = f"expected {self.endpoint.purpose} ({self.endpoint.hadoop_key})"
            raise type(error)(f"{self.endpoint}: {error}; {expected}", maybe_sent=sent) from None
        except BaseException as error:
            self.close()
            if isinstance(error, YarnError):
                error.maybe_sent = sent
            raise

    def _open(self, deadline: Deadline) -> tuple[Stream, bytes]:
        """The stream, and what has to be sent before the next call."""
        if self._stream is not None:
            return self._stream, b""
        self._stream = channel = Channel.connect(self.endpoint, deadline)
        self._stream, opening = self._authenticate(channel, self._protocol, self._client_id, deadline)
        return self._stream, opening

    def _answer_to(self, call_id: int, stream: Stream, deadline: Deadline) -> wire.Answer:
        while (kept := self._under_way[call_id]) is None:
            answer = self._receive(stream, deadline)
            if answer.fatal and answer.call_id < 0:
                return answer
            if answer.call_id in self._under_way:
                self._under_way[answer.call_id] = answer
            elif not 0 <= answer.call_id < call_id:
                raise ProtocolError(f"it answered a call {answer.call_id} that was never made")
        del self._under_way[call_id]
        return kept

    def _last_word(self, stream: Stream, deadline: Deadline, lost: ConnectionLostError) -> wire.Answer:
        try:
            answer = self._receive(stream, deadline)
        except YarnError:
            raise lost from None
        if not answer.fatal:
            raise lost
        return answer

    def _receive(self, stream: Stream, deadline: Deadline) -> wire.Answer:
        count = wire.frame_bytes(stream.receive_exactly(wire.PREFIX_BYTES, deadline), self._most_bytes)
        return wire.read_answer(stream.receive_exactly(count, deadline, begun=True))
