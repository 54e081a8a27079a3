"""Web pages that ask who one is, and those that show who they are."""

import socket
import ssl
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fallow_yarn.errors import AuthenticationRefusedError, ProtocolError, WrongPortError
from fallow_yarn.http.web import Web
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.security.tls import context
from fallow_yarn.settings.hadoop_conf import HadoopConfError

Serve = Callable[..., Endpoint]
Script = Callable[[socket.socket], None]
FOUND = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%b\r\n{}"
REFUSED = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n%b\r\n"
ASKS = b"WWW-Authenticate: Negotiate\r\n"
COOKIE = b'Set-Cookie: hadoop.auth="u=me&t=kerberos-dt&s=x"; Path=/; HttpOnly\r\n'


def soon() -> Deadline:
    return Deadline.after(10)


class Proof:
    refusals = 0

    def header(self, endpoint: Endpoint, _deadline: Deadline) -> str:
        return f"Negotiate for-{endpoint.host}"

    def refused(self) -> None:
        self.refusals += 1


def answering(answer: bytes, seen: list[str]) -> Script:
    """Answers, and notes the headers that say who asks."""

    def script(connected: socket.socket) -> None:
        request = b""
        while not request.endswith(b"\r\n\r\n"):
            request += connected.recv(1)
        lines = request.decode().split("\r\n")
        seen.append(" ".join(line for line in lines if line.startswith(("Authorization", "Cookie"))) or lines[0])
        connected.sendall(answer)

    return script


BY_NAME = "GET /ws?user.name=me HTTP/1.1"
PROOF = "Authorization: Negotiate for-127.0.0.1"


def test_who_asks_is_proven_once_where_the_server_asks_for_it_and_known_by_a_cookie_afterwards(serve: Serve) -> None:
    seen: list[str] = []
    endpoint = serve(answering(REFUSED % ASKS, seen), answering(FOUND % COOKIE, seen), answering(FOUND % b"", seen))
    cookies: dict[str, str] = {}
    for _ in range(2):
        Web(endpoint, "me", authentication=Proof(), cookies=cookies).json("/ws", soon())
    assert seen == [BY_NAME, PROOF, 'Cookie: hadoop.auth="u=me&t=kerberos-dt&s=x"']


def test_a_page_with_simple_authentication_gets_a_name_and_no_proof(serve: Serve) -> None:
    seen: list[str] = []
    endpoint = serve(answering(FOUND % COOKIE, seen), answering(FOUND % b"", seen))
    cookies: dict[str, str] = {}
    for _ in range(2):
        Web(endpoint, "me", authentication=Proof(), cookies=cookies).json("/ws", soon())
    assert (seen, cookies) == ([BY_NAME, BY_NAME], {})


@pytest.mark.parametrize(
    "challenge", [b"", b"WWW-Authenticate: Basic realm=Negotiate\r\n", b"X-Authenticate: Negotiate\r\n"]
)
def test_a_server_that_does_not_ask_for_kerberos_gets_no_proof_even_if_it_refuses(
    serve: Serve, challenge: bytes
) -> None:
    seen: list[str] = []
    proof = Proof()
    with pytest.raises(AuthenticationRefusedError, match="HTTP 401"):
        Web(serve(answering(REFUSED % challenge, seen)), "me", authentication=proof).json("/ws", soon())
    assert (seen, proof.refusals) == ([BY_NAME], 0)


@pytest.mark.parametrize(
    "challenge",
    [b"www-authenticate: negotiate\r\n", b'WWW-Authenticate: Digest realm="a, b", qop="auth,auth-int", Negotiate\r\n'],
)
def test_the_challenge_is_found_in_every_form_that_it_may_have(serve: Serve, challenge: bytes) -> None:
    seen: list[str] = []
    endpoint = serve(answering(REFUSED % challenge, seen), answering(FOUND % b"", seen))
    Web(endpoint, "me", authentication=Proof()).json("/ws", soon())
    assert seen == [BY_NAME, PROOF]


@pytest.mark.parametrize("asks", [True, False])
def test_a_cookie_that_has_expired_is_followed_by_what_the_server_asks_for(serve: Serve, asks: bool) -> None:
    seen: list[str] = []
    refused = REFUSED % (ASKS if asks else b"")
    endpoint = serve(answering(refused, seen), answering(FOUND % COOKIE, seen))
    cookies = {endpoint.authority: "hadoop.auth=old"}
    Web(endpoint, "me", authentication=Proof(), cookies=cookies).json("/ws", soon())
    assert seen == ["Cookie: hadoop.auth=old", PROOF if asks else BY_NAME]
    assert cookies == ({endpoint.authority: 'hadoop.auth="u=me&t=kerberos-dt&s=x"'} if asks else {})


def test_a_proof_that_is_not_taken_is_refused_once(serve: Serve) -> None:
    seen: list[str] = []
    proof = Proof()
    endpoint = serve(*[answering(REFUSED % ASKS, seen)] * 2)
    with pytest.raises(AuthenticationRefusedError, match=r"HTTP 401.*; it asks for negotiate"):
        Web(endpoint, "me", authentication=proof).json("/ws", soon())
    assert (seen, proof.refusals) == ([BY_NAME, PROOF], 1)


def test_without_a_proof_a_refusal_names_the_setting(serve: Serve) -> None:
    with pytest.raises(AuthenticationRefusedError, match=r"it asks for negotiate; .*set spec\.kerberos"):
        Web(serve(answering(REFUSED % ASKS, [])), "me").json("/ws", soon())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that is its own authority, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


def over_tls(certificate: tuple[Path, Path], script: Script) -> Script:
    def secured(connected: socket.socket) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        with context.wrap_socket(connected, server_side=True) as stream:
            script(stream)

    return secured


def test_a_page_is_read_over_tls_from_a_server_that_the_given_authority_vouches_for(
    serve: Serve, certificate: tuple[Path, Path]
) -> None:
    large = b"HTTP/1.1 200 OK\r\nContent-Length: 300002\r\n\r\n[%b]" % (b" " * 300_000)
    endpoint = serve(over_tls(certificate, answering(large, [])))
    tls = ssl.create_default_context(cafile=str(certificate[0]))
    assert Web(endpoint, "me", tls=tls).json("/ws", soon()) == []


def test_a_server_that_nobody_vouches_for_is_told_with_the_setting(
    serve: Serve, certificate: tuple[Path, Path]
) -> None:
    endpoint = serve(over_tls(certificate, answering(FOUND % b"", [])))
    with pytest.raises(ProtocolError, match=r"certificate is not trusted: .*set spec\.tls\.caFile"):
        Web(endpoint, "me", tls=ssl.create_default_context()).json("/ws", soon())


def issued(folder: Path, name: str, *, extensions: Sequence[str], by: str | None = None) -> Path:
    """The certificate of a name, in a folder with its key; by itself or by an authority of that folder."""
    made, key = folder / f"{name}.pem", folder / f"{name}.key"
    lines = ["[req]", "distinguished_name=dn", "[dn]", "[v3]", *extensions]
    (folder / f"{name}.cnf").write_text("\n".join(lines))
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", f"/CN={name}", "-days", "2", "-config", str(folder / f"{name}.cnf"), "-extensions", "v3"]
    command += ["-keyout", str(key), "-out", str(made)]
    if by is not None:
        command += ["-CA", str(folder / f"{by}.pem"), "-CAkey", str(folder / f"{by}.key")]
    subprocess.run(command, check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a root authority as old tools make it, an intermediate one, and a server's certificate."""
    folder = tmp_path_factory.mktemp("private")
    identified, here = "authorityKeyIdentifier=keyid", "subjectAltName=IP:127.0.0.1"
    can_sign = ["subjectKeyIdentifier=hash", "keyUsage=critical,keyCertSign"]
    issued(folder, "root", extensions=["basicConstraints=CA:TRUE", *can_sign])  # not critical
    issued(folder, "middle", extensions=["basicConstraints=critical,CA:TRUE", *can_sign, identified], by="root")
    issued(folder, "server", extensions=[identified, here], by="root")
    issued(folder, "lower", extensions=[identified, here], by="middle")
    issued(folder, "other", extensions=[identified, "subjectAltName=DNS:elsewhere"], by="root")
    issued(folder, "bare", extensions=["authorityKeyIdentifier=none", here], by="middle")
    return folder


@pytest.fixture
def as_python_3_13(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default of Python 3.13, with every Python."""
    default = ssl.create_default_context

    def strict(*, cafile: str | None = None) -> ssl.SSLContext:
        made = default(cafile=cafile)
        made.verify_flags |= ssl.VERIFY_X509_STRICT
        return made

    monkeypatch.setattr(ssl, "create_default_context", strict)


@pytest.mark.parametrize(
    ("authority", "name"), [("root", "server"), ("middle", "lower"), ("middle", "bare"), ("server", "server")]
)
@pytest.mark.usefixtures("as_python_3_13")
def test_an_authority_that_the_user_names_is_trusted_as_it_is_also_where_python_is_strict(
    serve: Serve, private: Path, authority: str, name: str
) -> None:
    endpoint = serve(over_tls((private / f"{name}.pem", private / f"{name}.key"), answering(FOUND % b"", [])))
    assert Web(endpoint, "me", tls=context(str(private / f"{authority}.pem"))).json("/ws", soon()) == {}


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("other", "mismatch.*; set the address to a name"),
        ("lower", "issuer certificate; set spec.tls.caFile"),
    ],
)
def test_a_named_authority_vouches_for_nothing_else(serve: Serve, private: Path, name: str, advice: str) -> None:
    endpoint = serve(over_tls((private / f"{name}.pem", private / f"{name}.key"), answering(FOUND % b"", [])))
    with pytest.raises(ProtocolError, match=advice):
        Web(endpoint, "me", tls=context(str(private / "root.pem"))).json("/ws", soon())


@pytest.mark.parametrize(
    ("authority", "name", "lack"),
    [
        ("root", "server", "Basic Constraints of CA cert not marked critical"),
        ("middle", "bare", "Missing Authority Key Identifier"),
    ],
)
@pytest.mark.usefixtures("as_python_3_13")
def test_an_authority_of_the_system_that_lacks_something_is_told_with_what_it_lacks(
    serve: Serve, private: Path, monkeypatch: pytest.MonkeyPatch, authority: str, name: str, lack: str
) -> None:
    chain = private / "chain.pem"
    chain.write_text("".join((private / f"{each}.pem").read_text() for each in {authority, "root"}))
    monkeypatch.setenv("SSL_CERT_FILE", str(chain))
    endpoint = serve(over_tls((private / f"{name}.pem", private / f"{name}.key"), answering(FOUND % b"", [])))
    with pytest.raises(ProtocolError, match=f"{lack}; have the certificate.* issued again"):
        Web(endpoint, "me", tls=context(None)).json("/ws", soon())


@pytest.mark.parametrize(("text", "why"), [(None, "cannot be read"), ("no PEM", "has no certificates in")])
def test_a_file_of_authorities_that_cannot_be_used_is_told_with_its_key_and_path(
    tmp_path: Path, text: str | None, why: str
) -> None:
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)
    with pytest.raises(HadoopConfError, match=rf"spec\.tls\.caFile: {file} {why}"):
        context(str(file))


def test_a_server_without_tls_is_told_from_one_with_it(serve: Serve, certificate: tuple[Path, Path]) -> None:
    tls = ssl.create_default_context(cafile=str(certificate[0]))

    def plain(connected: socket.socket) -> None:
        connected.recv(4096)
        connected.sendall(b"HTTP/1.1 400 Bad\r\n\r\n")

    with pytest.raises(WrongPortError, match="does not speak TLS"):
        Web(serve(plain), "me", tls=tls).json("/ws", soon())
    with pytest.raises(WrongPortError, match=r"set spec\.tls"):
        Web(serve(answering(b"\x15\x03\x03\x00\x02\x02\x46", [])), "me").json("/ws", soon())
