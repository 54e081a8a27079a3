"""What is said when an address leads to something else, with real sockets: every service behind every port."""

import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
from plugins.yarn.tests.diagnosis_fakes import Found

from fallow_hookspecs import Finding
from fallow_yarn.diagnosis.diagnose import diagnose
from fallow_yarn.ipc import wire
from fallow_yarn.ipc.protos.rpc_pb2 import RequestHeader, ResponseHeader
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.security.access import Access
from fallow_yarn.settings.config import YarnSpec

Service = Callable[[socket.socket], None]
IPC_PORT = b"It looks like you are making an HTTP request to a Hadoop IPC port."
NO_PAGE = b'{"RemoteException":{"message":"HTTP 404 Not Found"}}'


def saying(data: bytes) -> Service:
    """Says this after the first bytes have come, and closes."""

    def serve(connected: socket.socket) -> None:
        connected.recv(1 << 16)
        connected.sendall(data)

    return serve


def greeting(connected: socket.socket) -> None:
    """Says who it is without being asked, as SSH does."""
    connected.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
    connected.recv(1 << 16)


def silent(connected: socket.socket) -> None:
    while connected.recv(1 << 16):
        pass


def hadoop_ipc(connected: socket.socket) -> None:
    """A Hadoop port that serves no protocol of ours."""
    opening = connected.recv(1 << 16)
    if opening.startswith(b"GET"):
        connected.sendall(b"HTTP/1.1 404 Not Found\r\nContent-type: text/plain\r\n\r\n" + IPC_PORT)
        return
    header = ResponseHeader(
        call_id=0,
        status=ResponseHeader.ERROR,
        exception_class=b"org.apache.hadoop.ipc.RpcNoSuchProtocolException",
        error_message=b"Unknown protocol: x",
        error_code=ResponseHeader.ERROR_NO_SUCH_PROTOCOL,
    )
    assert RequestHeader.RPC_FINAL_PACKET == 0
    connected.sendall(wire.frame(header.SerializeToString()))
    connected.recv(1 << 16)


def token_port(connected: socket.socket) -> None:
    """The port for application masters: it takes tokens only."""
    connected.recv(1 << 16)
    header = ResponseHeader(
        call_id=(1 << 32) - 1,
        status=ResponseHeader.FATAL,
        exception_class=b"org.apache.hadoop.security.AccessControlException",
        error_message=b"SIMPLE authentication is not enabled.  Available:[TOKEN]",
        error_code=ResponseHeader.FATAL_UNAUTHORIZED,
    )
    connected.sendall(wire.frame(header.SerializeToString()))


WEB = saying(b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s" % (len(NO_PAGE), NO_PAGE))
HTML = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>")
TLS = saying(b"\x15\x03\x03\x00\x02\x02\x50")
CLOSED = saying(b"")


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


@contextmanager
def serving(service: Service) -> Iterator[str]:
    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                service(self.request)

    with _Server(("127.0.0.1", 0), Connection) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def findings(*, client: str, admin: str, web: str, seconds: float = 10) -> Found:
    manager = ResourceManager.at(client=client, admin=admin, web=web, user="yarn")
    spec = YarnSpec.model_validate({"resourceManager": {"host": "unused"}})
    found = diagnose(manager, spec, Access.simple("yarn"), lambda _node, _ids: [], (), Deadline.after(seconds))
    manager.close()
    assert all(finding.ok is False and finding.advice and finding.detail.isprintable() for finding in found)
    return {finding.subject: finding for finding in found}


def everywhere(address: str, seconds: float = 10) -> Found:
    return findings(client=address, admin=address, web=address, seconds=seconds)


@pytest.mark.parametrize(
    ("service", "port", "detail", "advice"),
    [
        (WEB, "web", "HTTP 404", "without the pages of a ResourceManager"),
        (WEB, "client", "this is a web port", "another service answers there"),
        (WEB, "admin", "this is a web port", "another service answers there"),
        (HTML, "web", "no such JSON", "another service answers there"),
        (HTML, "client", "this is a web port", "another service answers there"),
        (hadoop_ipc, "web", "this is a Hadoop IPC port", "another service answers there"),
        (hadoop_ipc, "client", "Unknown protocol", "another port of a Hadoop daemon"),
        (hadoop_ipc, "admin", "Unknown protocol", "another port of a Hadoop daemon"),
        (token_port, "client", "SIMPLE authentication is not enabled", "requires Kerberos"),
        (token_port, "admin", "SIMPLE authentication is not enabled", "requires Kerberos"),
        (TLS, "web", "this is a TLS port", "another service answers there"),
        (TLS, "client", "this is a TLS port", "another service answers there"),
        (TLS, "admin", "this is a TLS port", "another service answers there"),
        (greeting, "web", "no HTTP answer: SSH-2.0", "another service answers there"),
        (greeting, "client", "does not begin with a length", "another service answers there"),
        (greeting, "admin", "does not begin with a length", "another service answers there"),
        (CLOSED, "web", "no HTTP answer", "another service"),
        (CLOSED, "client", "closed the connection", "the server closes the connection"),
        (CLOSED, "admin", "closed the connection", "the server closes the connection"),
    ],
)
def test_what_answers_at_a_wrong_port_is_told_with_the_setting_to_mend(
    service: Service, port: str, detail: str, advice: str
) -> None:
    with serving(service) as address:
        found = everywhere(address)[f"{port} port"]
    assert detail in found.detail
    assert f"{address} (spec.resourceManager.{port})" in found.detail
    assert advice in found.advice
    assert f"spec.resourceManager.{port}" in found.advice
    assert "yarn.resourcemanager." in found.advice


def test_ports_of_different_services_are_told_each_for_itself() -> None:
    with ExitStack() as stack:
        ipc, web, ssh = (stack.enter_context(serving(service)) for service in (hadoop_ipc, WEB, greeting))
        found = findings(web=ipc, client=web, admin=ssh)
    assert list(found) == ["web port", "client port", "admin port"]
    assert "Hadoop IPC port" in found["web port"].detail
    assert "web port" in found["client port"].detail
    assert "SSH" in found["admin port"].detail


def test_two_hadoop_ports_that_know_no_call_of_ours_may_be_mixed_up() -> None:
    with serving(hadoop_ipc) as address:
        assert "swap" in everywhere(address)["ports"].advice
    with serving(hadoop_ipc) as ipc, serving(WEB) as web:
        assert "ports" not in findings(web=web, client=ipc, admin=web)


def only(found: Found) -> Finding:
    (finding,) = found.values()
    assert finding.subject == "ResourceManager"
    return finding


def test_nobody_who_listens_a_host_that_is_unknown_and_silence_are_told_apart() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = f"127.0.0.1:{listener.getsockname()[1]}"
    refused = only(everywhere(nobody))
    assert "it does not run" in refused.detail
    assert "refused" in refused.detail
    unknown = only(everywhere("rm..example:8088"))
    assert "cannot be resolved" in unknown.detail
    assert "getent hosts" in unknown.advice
    with serving(silent) as address:
        dumb = only(everywhere(address, seconds=0.2))
    assert "waiting for the answer" in dumb.detail
    assert "accepts connections and does not answer" in dumb.advice


def test_a_host_that_answers_no_attempt_to_connect_is_told() -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):  # fill what it holds for later
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        found = only(everywhere(f"127.0.0.1:{listener.getsockname()[1]}", seconds=0.2))
    assert "no connection in the time given" in found.detail
    assert "firewall" in found.advice
