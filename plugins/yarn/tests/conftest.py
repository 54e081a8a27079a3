"""What several tests of this distribution start from: a scripted TCP server, and a ResourceManager in memory."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from plugins.yarn.tests.yarn_fakes import FakeManager

from fallow_yarn.net.endpoint import Endpoint

Script = Callable[[socket.socket], None]


class _Server:
    """Plays one script for each connection, in turn, on a thread of its own; then nobody listens any more."""

    def __init__(self, scripts: tuple[Script, ...]) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.failure: BaseException | None = None
        self._scripts = scripts
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            for number, script in enumerate(self._scripts, 1):
                connected, _ = self.listener.accept()
                if number == len(self._scripts):
                    self.listener.close()
                with connected:
                    connected.settimeout(20)
                    script(connected)
        except OSError:
            pass  # the client went away, or the test is over
        except BaseException as error:
            self.failure = error

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes the thread if it still waits for a client
        self._thread.join()
        self.listener.close()
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def serve() -> Iterator[Callable[..., Endpoint]]:
    """`serve(*scripts)`: the endpoint of a server that plays one script a connection. Scripts get the socket."""
    servers: list[_Server] = []

    def start(*scripts: Script) -> Endpoint:
        server = _Server(scripts)
        servers.append(server)
        return Endpoint(
            host="127.0.0.1",
            port=server.listener.getsockname()[1],
            setting="spec.test",
            purpose="the test's server",
            hadoop_key="test.address",
        )

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def manager() -> FakeManager:
    return FakeManager()
