"""The ports of the embedded ResourceManager: what they answer to what is no proper call or page."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fallow_yarn.embedded.cluster import EmbeddedYarn
from fallow_yarn.embedded.settings import Settings
from fallow_yarn.errors import StandbyError, UnreachableError
from fallow_yarn.ipc import wire
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.client import ResourceManager

CLIENT_ID = bytes(16)
CONTEXT = wire.SIMPLE_PREAMBLE + wire.context_frame(CLIENT_ID, "me", "protocol")


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedYarn]:
    with EmbeddedYarn(tmp_path_factory.mktemp("yarn"), Settings(nodes=0, starting_seconds=0)) as made:
        yield made


def answer_to(address: str, data: bytes) -> bytes:
    """All that comes back until the end of the connection."""
    host, _, port = address.rpartition(":")
    received = b""
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while chunk := connection.recv(65536):
            received += chunk
    return received


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hrpc\x09\x00\xdf",  # another way to say who one is
        wire.SIMPLE_PREAMBLE + b"\xff\xff\xff\xff",
        wire.SIMPLE_PREAMBLE + b"\x00\x00\x00\x02\x7f\x00",  # a message longer than its frame
        wire.SIMPLE_PREAMBLE + b"\x00\x00\x00\x02\x01\xff",  # no header
        wire.SIMPLE_PREAMBLE + b"\x00\x00\x00\x01\x80",  # a length without its end
        wire.SIMPLE_PREAMBLE + b"\x00\x00\x00\x09\x00",  # half a frame
        CONTEXT + wire.frame(b"\x08\x02\x10\x00\x18\x00\x22\x00"),  # a call without a method
    ],
)
def test_what_makes_no_sense_ends_the_connection_without_an_answer(yarn: EmbeddedYarn, data: bytes) -> None:
    assert answer_to(yarn.rm.client_address, data) == b""


def test_a_call_of_no_such_protocol_is_refused_and_the_connection_stays(yarn: EmbeddedYarn) -> None:
    call = wire.call_frame(5, CLIENT_ID, "protocol", "method", b"")
    received = answer_to(yarn.rm.client_address, CONTEXT + call + call)
    first = received[wire.PREFIX_BYTES : wire.PREFIX_BYTES + wire.frame_bytes(received[: wire.PREFIX_BYTES])]
    assert received.count(first) == 2
    answer = wire.read_answer(first)
    assert (answer.call_id, answer.fatal, answer.exception) == (
        5,
        False,
        "org.apache.hadoop.ipc.RpcNoSuchProtocolException",
    )


@pytest.mark.parametrize("data", [CONTEXT, b"PUT", b"GET /x\r\n\r\n"])
def test_what_is_no_http_is_a_bad_request_at_once(yarn: EmbeddedYarn, data: bytes) -> None:
    assert answer_to(yarn.rm.web_address, data).startswith(b"HTTP/1.1 400 ")


def refusal(client: ResourceManager) -> str:
    with pytest.raises(StandbyError) as caught:
        client.check_rights(Deadline.after(5))
    return str(caught.value)


def test_until_it_is_active_its_start_is_provisional_and_it_acts_on_nothing(tmp_path: Path) -> None:
    with EmbeddedYarn(tmp_path / "yarn", Settings(nodes=0, starting_seconds=0.3)) as yarn:
        rm = yarn.rm
        client = ResourceManager.at(client=rm.client_address, admin=rm.admin_address, web=rm.web_address, user="me")
        before = client.facts(Deadline.after(5)).identity.started_on
        rm.stop()
        thread = threading.Thread(target=rm.start, kwargs={"standby": False})
        thread.start()
        refused = ""
        deadline = Deadline.after(5)
        while not refused and deadline.left_seconds() > 0:
            with suppress(UnreachableError):
                refused = refusal(client)
        provisional = rm.started_ms
        assert "ResourceManager null is not Active!" in refused
        identity = client.facts(Deadline.after(5)).identity
        assert (identity.active, identity.ha_state, identity.started_on) == (False, "INITIALIZING", None)
        thread.join()
        after = client.facts(Deadline.after(5)).identity.started_on
        assert len({before, provisional, after}) == 3
        client.close()
