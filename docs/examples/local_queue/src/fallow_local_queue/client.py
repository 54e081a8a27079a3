"""How the plugin asks the resource manager: one line of JSON there, one back, over a Unix socket."""

import json
import socket
import time
from typing import Any

from fallow_hookspecs import PluginError


def ask(path: str, request: dict[str, Any], timeout_seconds: float) -> Any:
    """The answer to one request, over a connection of its own, so that any thread may ask.

    :raises PluginError: there is none within `timeout_seconds`, or the resource manager says what is wrong.
    """
    deadline = time.monotonic() + timeout_seconds
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_seconds)
            connection.connect(path)
            connection.sendall(json.dumps(request).encode() + b"\n")
            received = b""
            while not received.endswith(b"\n"):
                connection.settimeout(max(deadline - time.monotonic(), 0.001))
                if not (chunk := connection.recv(65536)):
                    raise PluginError(f"{path}: the resource manager ended the connection")
                received += chunk
    except OSError as error:  # a timeout is one of them
        raise PluginError(f"{path}: the resource manager does not answer: {error}") from error
    answer = json.loads(received)
    if "error" in answer:
        raise PluginError(f"{path}: {answer['error']}")
    return answer
