"""How the web pages of a cluster's daemons are read: who asks, by which proof, and whether by TLS.

It needs nothing of Hadoop's IPC: on a host whose controller is elsewhere pages are all that is read.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from fallow_yarn.ipc.endpoint import Endpoint
from fallow_yarn.rest import Proof, Web

if TYPE_CHECKING:
    import ssl

    from fallow_yarn.hadoop_conf import Properties
    from fallow_yarn.security.login import Login

AUTHENTICATION_KEY = "hadoop.security.authentication"
POLICY_KEY = "yarn.http.policy"


class _Kerberos(Protocol):
    @property
    def principal(self) -> str | None: ...
    @property
    def keytab(self) -> str | None: ...
    @property
    def ticket_cache(self) -> str | None: ...


class _Tls(Protocol):
    @property
    def ca_file(self) -> str | None: ...


class _Settings(Protocol):
    """What a cluster file says of it."""

    @property
    def user(self) -> str: ...
    @property
    def hadoop_conf_dir(self) -> str | None: ...
    @property
    def kerberos(self) -> _Kerberos | None: ...
    @property
    def tls(self) -> _Tls | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAccess:
    """`user` is the name for messages, and for servers that believe it.

    `proof` is what web pages are shown, and `cookies` what they gave for it; `tls` is for those that speak TLS, among
    them the NodeManagers' if `secure_nodes`.
    """

    user: str
    proof: Proof | None = None
    tls: "ssl.SSLContext | None" = None
    secure_nodes: bool = False
    cookies: dict[str, str] = field(default_factory=dict)

    def web(self, endpoint: Endpoint, *, secure: bool = False) -> Web:
        """The web server of a daemon; `secure`: it speaks TLS."""
        return Web(endpoint, self.user, tls=self.tls if secure else None, proof=self.proof, cookies=self.cookies)


def web_access(spec: _Settings) -> WebAccess:
    """What a cluster file, or the folder of Hadoop's that it names, says of it. No ticket is got yet.

    :raises HadoopConfError: the folder cannot be read.
    :raises OSError: the file of the certificate authority cannot be read.
    """
    hadoop = hadoop_of(spec)
    tls = tls_of(spec, hadoop)
    if not wants_kerberos(spec, hadoop):
        return WebAccess(user=spec.user, tls=tls, secure_nodes=tls is not None)
    from fallow_yarn.security.negotiate import Negotiate  # most clusters have no Kerberos

    login = login_of(spec)
    return WebAccess(user=user_of(spec, login), proof=Negotiate(login), tls=tls, secure_nodes=tls is not None)


def hadoop_of(spec: _Settings) -> "Properties | None":
    """What the folder of Hadoop's says, if the cluster file names one; HadoopConfError if it cannot be read."""
    if spec.hadoop_conf_dir is None:
        return None
    from fallow_yarn.hadoop_conf import read_folder  # brings in a parser of XML

    return read_folder(spec.hadoop_conf_dir)


def login_of(spec: _Settings) -> "Login":
    """Whose tickets are taken, and from where."""
    from fallow_yarn.security.login import Identity, Login

    given = spec.kerberos
    if given is None:
        return Login(Identity())
    return Login(Identity(principal=given.principal, keytab=given.keytab, ticket_cache=given.ticket_cache))


def user_of(spec: _Settings, login: "Login") -> str:
    """Whose tickets they are, for messages."""
    return (spec.kerberos.principal if spec.kerberos is not None else None) or str(login.identity)


def tls_of(spec: _Settings, hadoop: "Properties | None") -> "ssl.SSLContext | None":
    """What TLS is spoken with; `None` where it is not. OSError if the authorities' file cannot be read."""
    if not wants_tls(spec, hadoop)[0]:
        return None
    import ssl  # takes megabytes

    return ssl.create_default_context(cafile=spec.tls.ca_file if spec.tls is not None else None)


def wants_tls(spec: _Settings, hadoop: "Properties | None") -> tuple[bool, str]:
    """Whether web pages are read by TLS, and what says so."""
    if spec.tls is not None or hadoop is None:
        return spec.tls is not None, "default" if spec.tls is None else "spec.tls"
    return hadoop.text(POLICY_KEY) == "HTTPS_ONLY", hadoop.place(POLICY_KEY)


def wants_kerberos(spec: _Settings, hadoop: "Properties | None") -> bool:
    """Whether the cluster file, or else Hadoop's own, asks for Kerberos."""
    return spec.kerberos is not None or (hadoop is not None and hadoop.text(AUTHENTICATION_KEY).lower() == "kerberos")
