"""A server that wants a Kerberos proof that it can use elsewhere.

It prints its port, and after each connection all that it was sent. It answers `sys.argv[1]`. Both are in hexadecimal.
"""

import os
import socket
import sys

os.environ.clear()
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    while True:
        connected, _ = listener.accept()
        with connected:
            connected.settimeout(20)
            received = connected.recv(65536)
            connected.sendall(bytes.fromhex(sys.argv[1]))
            while more := connected.recv(65536):
                received += more
        print(received.hex(), flush=True)
