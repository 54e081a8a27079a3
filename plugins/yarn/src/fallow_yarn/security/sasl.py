"""Opens a Hadoop IPC connection with Kerberos (SASL GSSAPI, RFC 4752, in Hadoop's own frames).

The server offers mechanisms and its service name. The name has to be the expected one, since anyone with a key can
claim another name. Then tokens are exchanged until both sides are authenticated and have agreed on the protection of
all that follows.
"""

from collections.abc import Collection
from enum import IntEnum
from typing import Any, Final

from fallow_yarn.errors import (
    AuthenticationRefusedError,
    ConnectionLostError,
    ProtocolError,
    YarnError,
    first_line,
)
from fallow_yarn.ipc import wire
from fallow_yarn.ipc.connection import Authenticate, Stream
from fallow_yarn.ipc.protos.rpc_pb2 import SaslAuth, SaslMessage
from fallow_yarn.net.channel import Channel
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.security.login import KERBEROS, Login, explained, library
from fallow_yarn.security.service import Service

MAX_BUFFER_BYTES: Final = 1 << 16  # as Hadoop's own peers
CHUNK_BYTES: Final = MAX_BUFFER_BYTES - 256  # with room for what wrapping adds
MOST_ROUNDS: Final = 10


class Protection(IntEnum):
    """The protection of the data; the values are the bits of RFC 4752, the names those of hadoop.rpc.protection."""

    AUTHENTICATION = 1
    INTEGRITY = 2
    PRIVACY = 4


def kerberos(login: Login, service: Service, allowed: Collection[Protection]) -> Authenticate:
    """Kerberos authentication. `service` is what the ResourceManager has to be.

    The strongest protection that the server offers and that is `allowed` is used.
    """

    def authenticate(channel: Channel, protocol: str, client_id: bytes, deadline: Deadline) -> tuple[Stream, bytes]:
        handshake = _Handshake(channel, login, service, allowed, deadline)
        context, protection = handshake.run()
        opening = wire.context_frame(client_id, None, protocol)
        if protection is Protection.AUTHENTICATION:
            return channel, opening
        return Wrapped(channel, context, encrypt=protection is Protection.PRIVACY), opening

    return authenticate


class _Handshake:
    def __init__(
        self, channel: Channel, login: Login, service: Service, allowed: Collection[Protection], deadline: Deadline
    ) -> None:
        self._channel = channel
        self._login = login
        self._service = service
        self._allowed = allowed
        self._deadline = deadline

    def run(self) -> tuple[Any, Protection]:
        """The established context and the agreed protection."""
        self._channel.send(wire.SASL_PREAMBLE, self._deadline)
        self._send(SaslMessage(state=SaslMessage.NEGOTIATE))
        auth, principal = self._select_mechanism(self._receive())
        context, token = self._login.begin(principal, KERBEROS, self._deadline)
        own = SaslAuth(method=auth.method, mechanism=auth.mechanism, protocol=auth.protocol, server_id=auth.server_id)
        self._send(SaslMessage(state=SaslMessage.INITIATE, token=token, auths=[own]))
        protection: Protection | None = None
        for _ in range(MOST_ROUNDS):
            message = self._receive()
            if message.state == SaslMessage.SUCCESS and protection is not None:
                return context, protection
            if message.state != SaslMessage.CHALLENGE:
                raise ProtocolError(f"it answered the handshake with {SaslMessage.State.Name(message.state)}")
            try:
                if context.complete:
                    protection, answer = self._agreed(context, message.token)
                else:
                    answer = context.step(message.token) or b""
            except YarnError:  # not a GSSError, and the library may not be installed
                raise
            except library().exceptions.GSSError as error:
                raise AuthenticationRefusedError(f"{self._channel.endpoint}: {explained(error)}") from None
            self._send(SaslMessage(state=SaslMessage.RESPONSE, token=answer))
        raise ProtocolError("its handshake does not end")

    def _select_mechanism(self, message: SaslMessage) -> tuple[SaslAuth, str]:
        """The offer of Kerberos, and the principal of the server, which is an expected one."""
        endpoint = self._channel.endpoint
        if message.state == SaslMessage.SUCCESS:
            raise AuthenticationRefusedError(
                f"{endpoint}: it asks for no authentication, but spec.kerberos is set: correct the address, or"
                " remove spec.kerberos if this cluster has no Kerberos"
            )
        auth = next((auth for auth in message.auths if (auth.method, auth.mechanism) == ("KERBEROS", "GSSAPI")), None)
        if auth is None:
            offered = first_line(", ".join(auth.method for auth in message.auths)) or "nothing"
            wanted = f"expected {endpoint.purpose} of a cluster with Kerberos ({endpoint.hadoop_key})"
            raise AuthenticationRefusedError(f"{endpoint}: it offers {offered}, but not Kerberos; {wanted}")
        claimed = f"{auth.protocol}/{auth.server_id}"
        principal = self._service.principal_of(claimed, endpoint.host)
        if principal is None:
            raise AuthenticationRefusedError(
                f"{endpoint}: its principal is {first_line(claimed)!r}, expected"
                f" {self._service.expected(endpoint.host)!r}: correct spec.kerberos.resourceManagerPrincipal"
                " (yarn.resourcemanager.principal), or the address"
            )
        return auth, principal

    def _agreed(self, context: Any, token: bytes) -> tuple[Protection, bytes]:
        """The strongest protection that both sides allow, and the answer that selects it."""
        offer = context.unwrap(token).message
        if len(offer) != 4:
            raise ProtocolError(f"its offer of protections has {len(offer)} bytes instead of 4")
        wanted = [protection for protection in self._allowed if protection & offer[0]]
        if not wanted:
            names = [protection.name.lower() for protection in Protection if protection & offer[0]]
            raise AuthenticationRefusedError(
                f"{self._channel.endpoint}: its hadoop.rpc.protection is {','.join(names) or 'unknown'}, but"
                f" spec.kerberos.protection is {','.join(protection.name.lower() for protection in self._allowed)}"
            )
        strongest = max(wanted)
        answer = bytes([strongest]) + MAX_BUFFER_BYTES.to_bytes(3, "big")
        return strongest, context.wrap(answer, False).message

    def _send(self, message: SaslMessage) -> None:
        try:
            self._channel.send(wire.sasl_frame(message), self._deadline)
        except ConnectionLostError as lost:
            try:  # a server that refuses a client sends the reason and closes while we still write
                self._receive()
            except AuthenticationRefusedError:
                raise
            except YarnError:
                raise lost from None

    def _receive(self) -> SaslMessage:
        answer = wire.read_answer(_frame(self._channel, self._deadline))
        if answer.succeeded and answer.call_id == wire.SASL_CALL_ID:
            return wire.read_sasl(answer.body)
        if answer.succeeded:
            raise ProtocolError(f"it answered the handshake with a reply to call {answer.call_id}")
        self._login.refused()
        raise _refused(self._channel.endpoint, answer, str(self._login.identity))


class Wrapped:
    """A stream over a channel whose content is signed, or also encrypted, in both directions."""

    def __init__(self, channel: Channel, context: Any, *, encrypt: bool) -> None:
        self._channel = channel
        self._context = context
        self._encrypt = encrypt
        self._plain = bytearray()

    def send(self, data: bytes, deadline: Deadline) -> None:
        """Send all of `data`."""
        for start in range(0, len(data), CHUNK_BYTES):
            token = self._context.wrap(data[start : start + CHUNK_BYTES], self._encrypt).message
            self._channel.send(wire.sasl_frame(SaslMessage(state=SaslMessage.WRAP, token=token)), deadline)

    def receive_exactly(self, count: int, deadline: Deadline, *, begun: bool = False) -> bytes:
        """`count` bytes, from one or more frames."""
        while len(self._plain) < count:
            answer = wire.read_answer(_frame(self._channel, deadline, begun=begun or bool(self._plain)))
            if not (answer.succeeded and answer.call_id == wire.SASL_CALL_ID):
                raise ProtocolError(f"it sent a frame that is not protected: {first_line(answer.text) or 'a reply'}")
            try:
                unwrapped = self._context.unwrap(wire.read_sasl(answer.body).token)
            except library().exceptions.GSSError as error:
                raise ProtocolError(f"its data does not match its signature: {explained(error)}") from None
            if self._encrypt and not unwrapped.encrypted:
                raise ProtocolError("it sent a frame that is not encrypted")
            self._plain += unwrapped.message
        taken = bytes(self._plain[:count])
        del self._plain[:count]
        return taken

    def is_quiet(self) -> bool:
        """Whether the connection still stands and nothing waits in it."""
        return not self._plain and self._channel.is_quiet()

    def close(self) -> None:
        """Close the connection; safe to repeat."""
        self._channel.close()


def _frame(channel: Channel, deadline: Deadline, *, begun: bool = False) -> bytes:
    count = wire.frame_bytes(channel.receive_exactly(wire.PREFIX_BYTES, deadline, begun=begun))
    return channel.receive_exactly(count, deadline, begun=True)


def _refused(endpoint: Endpoint, answer: wire.Answer, who: str) -> AuthenticationRefusedError:
    kind, detail = first_line(answer.exception), first_line(answer.text)
    said = f"{endpoint}: it refuses {who}: {kind.rpartition('.')[2]}: {detail or 'no text'}"
    if "GSS initiate failed" in detail:
        said += (
            "; it gives no reason: its clock and this host's may be more than 5 minutes apart, or its keytab may not"
            " have the key that the KDC has for its principal"
        )
    return AuthenticationRefusedError(said, kind=kind, detail=detail)
