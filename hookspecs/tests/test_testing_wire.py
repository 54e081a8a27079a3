"""The wire between a plugin and its framework: what passes, what is kept, and what is lost."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from fallow_hookspecs.testing.wire import Wire


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A wire to a server that answers each line with the same line."""
    listener = socket.create_server(("127.0.0.1", 0))

    def echo(connection: socket.socket) -> None:
        with connection, connection.makefile("rwb", buffering=0) as file:
            for line in file:
                file.write(line)

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=echo, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    with Wire(f"127.0.0.1:{listener.getsockname()[1]}") as made:
        yield made
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def connected(wire: Wire) -> socket.socket:
    host, _, port = wire.address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=5)


def said(connection: socket.socket, line: bytes) -> bytes:
    connection.sendall(line)
    return connection.recv(100)


def test_all_passes(wire: Wire) -> None:
    with connected(wire) as one, connected(wire) as two:
        assert said(one, b"a\n") == b"a\n"
        assert said(two, b"b\n") == b"b\n"
        assert said(one, b"c\n") == b"c\n"


def test_a_cut_wire_ends_connections_and_takes_none(wire: Wire) -> None:
    with connected(wire) as before:
        assert said(before, b"a\n") == b"a\n"
        wire.cut()
        assert before.recv(100) == b""
    with connected(wire) as during:
        assert during.recv(100) == b""
    wire.mend()
    with connected(wire) as after:
        assert said(after, b"b\n") == b"b\n"


def test_a_hanging_wire_keeps_what_was_said_until_it_is_mended(wire: Wire) -> None:
    with connected(wire) as connection:
        assert said(connection, b"a\n") == b"a\n"
        wire.hang()
        connection.settimeout(0.1)
        with pytest.raises(TimeoutError):
            said(connection, b"b\n")
        wire.mend()
        connection.settimeout(5)
        assert connection.recv(100) == b"b\n"


def test_a_slow_wire_keeps_each_answer_for_so_long(wire: Wire) -> None:
    with connected(wire) as connection:
        wire.slow(0.1)
        for _ in range(2):
            begun = time.monotonic()
            assert said(connection, b"a\n") == b"a\n"
            assert time.monotonic() - begun >= 0.1
