"""A TCP server on loopback that can end at any moment, like a killed process."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import sample
from typing import Final

HOST: Final = "127.0.0.1"
PORT_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")

Serve = Callable[[socket.socket], None]
"""Talks over one connection until its end; what it raises of OSError and ValueError ends the connection."""


def free_ports(count: int) -> list[int]:
    """Ports that are free now, below the range that outgoing connections take theirs from. OSError if too few are."""
    low = int(PORT_RANGE.read_text().split()[0])
    ports: list[int] = []
    for port in sample(range(max(low - 20000, 1025), low), 2000):
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            ports.append(port)
        if len(ports) == count:
            return ports
    raise OSError(f"fewer than {count} free ports below {low}")


class Listener:
    """Serves a port while it is started: a thread for each connection."""

    def __init__(self, port: int, serve: Serve) -> None:
        self.port = port
        self._serve = serve
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._connections: set[socket.socket] = set()

    @property
    def is_open(self) -> bool:
        """Whether it listens."""
        return self._socket is not None

    def start(self) -> None:
        """Listen; OSError if the port is taken. Nothing if it does already."""
        if self._socket is None:
            self._socket = socket.create_server((HOST, self.port), backlog=128)
            threading.Thread(target=self._accept, args=(self._socket,), daemon=True).start()

    def stop(self) -> None:
        """Refuse new connections and end those there are. Safe to repeat."""
        with self._lock:
            listening, self._socket = self._socket, None
            connections, self._connections = self._connections, set()
        if listening is not None:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for a connection
            listening.close()
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with self._lock:
                if self._socket is not listening:
                    connection.close()
                    return
                self._connections.add(connection)
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, ValueError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._serve(connection)
        with self._lock:
            self._connections.discard(connection)
