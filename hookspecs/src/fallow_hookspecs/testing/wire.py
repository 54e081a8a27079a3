"""A TCP proxy between a plugin and its framework that can be cut, hang, or be slow, for use by a `Framework`."""

import contextlib
import socket
import threading
import time
from typing import Self

LISTEN_SECONDS = 0.05
CHUNK_BYTES = 65536


class Wire:
    """Listens on loopback at `address` (host:port) and forwards each connection to `target`; a context manager.

    Data under way is kept while it hangs or is slow, and lost when it is cut.
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host.strip("[]"), int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(LISTEN_SECONDS)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._flows = threading.Event()
        self._flows.set()
        self._is_cut = False
        self._delay_seconds = 0.0
        self._is_closed = False
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        self._thread.join()
        self._listener.close()
        self._flows.set()
        self._drop()

    def cut(self) -> None:
        """Close every connection, and each new one immediately."""
        self._is_cut = True
        self._drop()

    def hang(self) -> None:
        """Accept connections and data, but forward nothing."""
        self._flows.clear()

    def slow(self, seconds: float) -> None:
        """Delay each answer by this time."""
        self._delay_seconds = seconds

    def mend(self) -> None:
        """Forward everything immediately, including kept data."""
        self._is_cut, self._delay_seconds = False, 0.0
        self._flows.set()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        if self._is_cut:
            client.close()
            return
        try:
            server = socket.create_connection(self._target, timeout=5)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        client.settimeout(None)
        with self._lock:
            self._sockets |= {client, server}
        asked = threading.Event()
        threading.Thread(target=self._pump, args=(client, server, asked, True), daemon=True).start()
        self._pump(server, client, asked, False)

    def _pump(self, source: socket.socket, target: socket.socket, asked: threading.Event, is_request: bool) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(CHUNK_BYTES):
                if is_request:
                    asked.set()
                elif asked.is_set():  # only the first bytes of an answer are delayed
                    asked.clear()
                    time.sleep(self._delay_seconds)
                self._flows.wait()
                target.sendall(chunk)
        self._end(source, target)

    def _drop(self) -> None:
        with self._lock:
            sockets = list(self._sockets)
        self._end(*sockets)

    def _end(self, *sockets: socket.socket) -> None:
        with self._lock:
            ended = self._sockets.intersection(sockets)
            self._sockets -= ended
        for each in ended:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads from it
            each.close()
