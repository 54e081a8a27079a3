"""Servers that collect Kerberos proofs get none, although this side is configured to give one.

There is no ticket in these tests. So an attempt to make a proof is a CredentialsError, as the last test shows.
"""

from contextlib import closing
from typing import Any

import pytest
from tests.security.conftest import Attack

from fallow_yarn.errors import AuthenticationRefusedError, CredentialsError, YarnError
from fallow_yarn.ipc import wire
from fallow_yarn.ipc.protos.rpc_pb2 import ResponseHeader, SaslAuth, SaslMessage
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.security.access import access
from fallow_yarn.settings.config import YarnSpec
from fallow_yarn.settings.rm_addresses import rm_addresses

KERBEROS = {"principal": "fallow@R", "keytab": "/nowhere/keytab", "resourceManagerPrincipal": "rm/_HOST@R"}


def http(status: str, *headers: str) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", "Content-Length: 2", *headers, "", "{}")).encode()


def started(attack: Attack, answer: bytes) -> tuple[Any, ResourceManager]:
    """The hostile server's output, and the client of a ResourceManager that is at its address."""
    output = attack("collects_proofs", answer.hex()).stdout
    assert output is not None
    address = f"127.0.0.1:{int(output.readline())}"
    manager = {"host": "127.0.0.1", "client": address, "admin": address, "web": address}
    spec = YarnSpec.model_validate({"resourceManager": manager, "kerberos": KERBEROS})
    return output, ResourceManager(rm_addresses(spec)[0], access(spec))


@pytest.mark.parametrize(
    "answer",
    [
        http("200 OK"),
        http("200 OK", "WWW-Authenticate: Negotiate"),
        http("401 Unauthorized", 'WWW-Authenticate: Basic realm="Negotiate"'),
        http("401 Unauthorized"),
        http("403 Forbidden", "WWW-Authenticate: Negotiate"),
        http("302 Found", "Location: http://127.0.0.1:1/", "WWW-Authenticate: Negotiate"),
        http("407 Proxy Authentication Required", "Proxy-Authenticate: Negotiate"),
    ],
)
def test_a_web_server_that_does_not_ask_for_kerberos_gets_a_name_and_no_proof(attack: Attack, answer: bytes) -> None:
    output, manager = started(attack, answer)
    try:
        manager.setting("any", Deadline.after(10))
    except CredentialsError:
        raise
    except YarnError:
        pass
    request = bytes.fromhex(output.readline())
    assert b"user.name=fallow HTTP/1.1\r\n" in request
    assert b"authorization" not in request.lower()


def sasl(**message: Any) -> bytes:
    header = ResponseHeader(call_id=wire.SASL_CALL_ID & 0xFFFFFFFF, status=ResponseHeader.SUCCESS)
    return wire.frame(header.SerializeToString(), SaslMessage(**message).SerializeToString())


def offer(protocol: str, server_id: str) -> bytes:
    auth = SaslAuth(method="KERBEROS", mechanism="GSSAPI", protocol=protocol, server_id=server_id)
    return sasl(state=SaslMessage.NEGOTIATE, auths=[auth])


@pytest.mark.parametrize(
    "answer",
    [
        offer("HTTP", "localhost"),
        offer("rm", "evil.example.com"),
        offer("rm", "localhost@EVIL"),
        offer("rm/localhost@R", ""),
        sasl(state=SaslMessage.SUCCESS),
    ],
)
def test_a_resource_manager_under_another_name_gets_no_proof(attack: Attack, answer: bytes) -> None:
    output, manager = started(attack, answer)
    with closing(manager), pytest.raises(AuthenticationRefusedError):
        manager.nodes(Deadline.after(10))
    sent = bytes.fromhex(output.readline())
    assert sent == wire.SASL_PREAMBLE + wire.sasl_frame(SaslMessage(state=SaslMessage.NEGOTIATE))


@pytest.mark.parametrize("answer", [http("401 Unauthorized", "WWW-Authenticate: Negotiate"), offer("rm", "localhost")])
def test_a_server_that_asks_under_the_expected_name_would_get_one(attack: Attack, answer: bytes) -> None:
    _, manager = started(attack, answer)
    with closing(manager), pytest.raises(CredentialsError):
        (manager.identity if answer.startswith(b"HTTP") else manager.nodes)(Deadline.after(10))
