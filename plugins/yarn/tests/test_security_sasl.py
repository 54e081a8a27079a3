"""The handshake of Kerberos and the protected stream, with tokens that a test can read in place of real ones."""

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fallow_yarn.errors import AuthenticationRefusedError, ProtocolError
from fallow_yarn.ipc import wire
from fallow_yarn.ipc.connection import Connection
from fallow_yarn.ipc.protos.rpc_pb2 import RequestHeader, ResponseHeader, SaslAuth, SaslMessage
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.security.login import Login
from fallow_yarn.security.sasl import CHUNK_BYTES, Protection, kerberos
from fallow_yarn.security.service import Service

Serve = Callable[..., Endpoint]
Script = Callable[[socket.socket], None]
SERVICE = Service(principal="rm/_HOST@REALM")
OFFER = SaslAuth(method="KERBEROS", mechanism="GSSAPI", protocol="rm", server_id="localhost")


class Context:
    """Wrapping puts a letter in front that tells whether it would be encrypted."""

    complete = False

    def step(self, token: bytes) -> bytes | None:
        assert token == b"their token"
        self.complete = True
        return None

    def wrap(self, data: bytes, encrypt: bool) -> Any:
        return SimpleNamespace(message=(b"E" if encrypt else b"S") + data)

    def unwrap(self, token: bytes) -> Any:
        return SimpleNamespace(message=token[1:], encrypted=token[:1] == b"E")


class FakeLogin:
    """Begins with a token that names the service it is for."""

    identity = "me"
    refusals = 0

    def refused(self) -> None:
        self.refusals += 1

    def begin(self, service: str, _mechanism: str, _deadline: Deadline) -> tuple[Context, bytes]:
        return Context(), b"token for " + service.encode()


class Peer:
    """The server's side of one connection."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._incoming = connected.makefile("rb")
        self.plain = bytearray()

    def preamble(self) -> bytes:
        return self._incoming.read(len(wire.SASL_PREAMBLE))

    def frame(self) -> list[bytes]:
        """The messages of the next frame."""
        prefix = self._incoming.read(4)
        if not prefix:
            raise ConnectionResetError("the client went away")
        payload = self._incoming.read(int.from_bytes(prefix, "big"))
        return list(delimited(payload))

    def sasl(self) -> SaslMessage:
        header, body = self.frame()
        assert RequestHeader.FromString(header).call_id == wire.SASL_CALL_ID
        return SaslMessage.FromString(body)

    def say(self, **message: Any) -> None:
        header = ResponseHeader(call_id=wire.SASL_CALL_ID & 0xFFFFFFFF, status=ResponseHeader.SUCCESS)
        self._socket.sendall(wire.frame(header.SerializeToString(), SaslMessage(**message).SerializeToString()))

    def reply(self, body: bytes) -> bytes:
        """The frame that answers the first call."""
        return wire.frame(ResponseHeader(call_id=0, status=ResponseHeader.SUCCESS).SerializeToString(), body)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def unwrapped(self, letter: bytes) -> list[bytes]:
        """The messages of the next protected frame."""
        while len(self.plain) < 4 or len(self.plain) < 4 + int.from_bytes(self.plain[:4], "big"):
            message = self.sasl()
            assert (message.state, message.token[:1]) == (SaslMessage.WRAP, letter)
            self.plain += message.token[1:]
        count = 4 + int.from_bytes(self.plain[:4], "big")
        payload, self.plain = bytes(self.plain[4:count]), self.plain[count:]
        return list(delimited(payload))

    def shake_hands(self, offered: int) -> int:
        """All up to the success; the protection that the client has chosen."""
        assert self.preamble() == wire.SASL_PREAMBLE
        assert self.sasl().state == SaslMessage.NEGOTIATE
        self.say(state=SaslMessage.NEGOTIATE, auths=[SaslAuth(method="TOKEN", mechanism="DIGEST-MD5"), OFFER])
        started = self.sasl()
        assert (started.state, started.token) == (SaslMessage.INITIATE, b"token for rm/localhost@REALM")
        assert [(auth.method, auth.HasField("challenge")) for auth in started.auths] == [("KERBEROS", False)]
        self.say(state=SaslMessage.CHALLENGE, token=b"their token")
        empty = self.sasl()
        assert (empty.state, empty.HasField("token"), empty.token) == (SaslMessage.RESPONSE, True, b"")
        self.say(state=SaslMessage.CHALLENGE, token=b"S" + bytes([offered]) + b"\x01\0\0")
        chosen = self.sasl().token
        assert (chosen[:1], chosen[2:]) == (b"S", b"\x01\0\0")
        self.say(state=SaslMessage.SUCCESS)
        return chosen[1]


def delimited(payload: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(payload):
        count = shift = 0
        while True:
            byte = payload[position]
            position += 1
            count |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        yield payload[position : position + count]
        position += count


def connection(endpoint: Endpoint, allowed: Sequence[Protection] = tuple(Protection)) -> closing[Connection]:
    local = Endpoint(host="localhost", port=endpoint.port, setting="spec.test", purpose="a server", hadoop_key="k")
    authenticate = kerberos(cast(Login, FakeLogin()), SERVICE, allowed)
    return closing(Connection(local, "the.Protocol", "me", authenticate))


def call(endpoint: Endpoint, allowed: Sequence[Protection] = tuple(Protection), argument: bytes = b"a") -> bytes:
    with connection(endpoint, allowed) as calls:
        return calls.call("m", argument, Deadline.after(10))


def test_with_authentication_alone_the_frames_after_it_are_plain_and_name_no_user(serve: Serve) -> None:
    def script(connected: socket.socket) -> None:
        peer = Peer(connected)
        assert peer.shake_hands(Protection.AUTHENTICATION) == Protection.AUTHENTICATION
        header, context = peer.frame()
        assert RequestHeader.FromString(header).call_id == wire.CONTEXT_CALL_ID
        assert context == b"\x12\x00\x1a\x0cthe.Protocol"
        assert peer.frame()[2] == b"a"
        peer.send(peer.reply(b"r"))

    assert call(serve(script)) == b"r"


@pytest.mark.parametrize(("protection", "letter"), [(Protection.INTEGRITY, b"S"), (Protection.PRIVACY, b"E")])
def test_protected_frames_may_be_split_and_joined(serve: Serve, protection: Protection, letter: bytes) -> None:
    argument = bytes(2 * CHUNK_BYTES)

    def script(connected: socket.socket) -> None:
        peer = Peer(connected)
        assert peer.shake_hands(protection) == protection
        peer.unwrapped(letter)
        assert peer.unwrapped(letter)[2] == argument
        reply = peer.reply(b"r" * 100)
        for part in (reply[:2], reply[2:50], reply[50:]):
            peer.say(state=SaslMessage.WRAP, token=letter + part)

    assert call(serve(script), argument=argument) == b"r" * 100


def test_the_strongest_protection_of_those_that_both_want_is_taken(serve: Serve) -> None:
    seen: list[int] = []

    def script(connected: socket.socket) -> None:
        peer = Peer(connected)
        seen.append(peer.shake_hands(Protection.AUTHENTICATION | Protection.INTEGRITY | Protection.PRIVACY))

    for allowed in ((Protection.AUTHENTICATION, Protection.INTEGRITY), (Protection.AUTHENTICATION,)):
        with pytest.raises(Exception, match="connection"):
            call(serve(script), allowed)
    assert seen == [Protection.INTEGRITY, Protection.AUTHENTICATION]


def test_protections_that_do_not_meet_are_named_on_both_sides(serve: Serve) -> None:
    with pytest.raises(AuthenticationRefusedError, match=r"rpc\.protection is authentication, .*protection is privacy"):
        call(serve(lambda connected: Peer(connected).shake_hands(1)), (Protection.PRIVACY,))


def negotiating(**message: Any) -> Script:
    def script(connected: socket.socket) -> None:
        peer = Peer(connected)
        peer.preamble()
        peer.sasl()
        peer.say(**message)
        assert peer._incoming.read(1) == b"", "no token is shown to it"

    return script


def test_a_server_under_another_name_gets_no_token(serve: Serve) -> None:
    other = SaslAuth(method="KERBEROS", mechanism="GSSAPI", protocol="evil", server_id="localhost")
    with pytest.raises(AuthenticationRefusedError, match=r"is 'evil/localhost', expected 'rm/localhost"):
        call(serve(negotiating(state=SaslMessage.NEGOTIATE, auths=[other])))


def test_a_server_that_asks_for_nothing_is_not_talked_to(serve: Serve) -> None:
    with pytest.raises(AuthenticationRefusedError, match=r"no authentication, but spec\.kerberos is set"):
        call(serve(negotiating(state=SaslMessage.SUCCESS)))


def test_a_server_without_kerberos_is_told(serve: Serve) -> None:
    token = SaslAuth(method="TOKEN", mechanism="DIGEST-MD5")
    with pytest.raises(AuthenticationRefusedError, match="it offers TOKEN, but not Kerberos"):
        call(serve(negotiating(state=SaslMessage.NEGOTIATE, auths=[token])))


@pytest.mark.parametrize(
    ("token", "what"),
    [
        (b"S" + b"\0\0\0\x01r", "not encrypted"),
        (None, "not protected"),
    ],
)
def test_a_frame_with_less_protection_than_was_agreed_on_is_not_taken(
    serve: Serve, token: bytes | None, what: str
) -> None:
    def script(connected: socket.socket) -> None:
        peer = Peer(connected)
        peer.shake_hands(Protection.PRIVACY)
        peer.unwrapped(b"E")
        peer.unwrapped(b"E")
        if token is None:
            peer.send(peer.reply(b"r"))
        else:
            peer.say(state=SaslMessage.WRAP, token=token)

    with pytest.raises(ProtocolError, match=what):
        call(serve(script))
