"""A host that goes without a word: its packets are dropped in a network namespace of the test's own."""

import shutil
import subprocess
import sys

import pytest

SCRIPT = """
import fcntl, socket, struct, sys, time
from fallow_yarn.errors import SilentHostError
from fallow_yarn.net import channel
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint

channel.GONE_SECONDS = 0.5

def loopback(flags):
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", flags))

loopback(0x49)
server = socket.create_server(("127.0.0.1", 5000))
endpoint = Endpoint(host="127.0.0.1", port=5000, setting="spec.test", purpose="a server", hadoop_key="test.address")
connected = channel.Channel.connect(endpoint, Deadline.after(60))
loopback(0x8)
began = time.monotonic()
for call in (
    lambda: connected.send(b"request", Deadline.after(60)) or connected.receive(1, Deadline.after(60)),
    lambda: channel.Channel.connect(endpoint, Deadline.after(60)),
):
    try:
        call()
    except SilentHostError as error:
        print(error)
print("in time" if time.monotonic() - began < 30 else "late")
"""


def test_a_host_that_vanishes_is_noticed_long_before_the_deadline() -> None:
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rn", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs a network namespace of its own: unshare -rn")
    done = subprocess.run(
        [unshare, "-rn", sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=90, check=True
    )
    standing, new, verdict = done.stdout.splitlines()
    assert "the host of a connection that stood confirms nothing" in standing
    assert "no connection in the time given; is the host up" in new
    assert verdict == "in time"
