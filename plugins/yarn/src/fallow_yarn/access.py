"""How this plugin says who it is, and whom it believes: what every connection of one cluster has in common."""

import ssl
from dataclasses import dataclass, field

from fallow_yarn.config import KerberosSpec, YarnSpec
from fallow_yarn.hadoop_conf import HadoopConfError, Properties, read_folder
from fallow_yarn.ipc.connection import Authenticate, Connection, simple
from fallow_yarn.ipc.endpoint import Endpoint
from fallow_yarn.rest import Proof, Web
from fallow_yarn.security.login import Identity, Login
from fallow_yarn.security.negotiate import Negotiate
from fallow_yarn.security.sasl import Protection, kerberos

AUTHENTICATION_KEY = "hadoop.security.authentication"
POLICY_KEY = "yarn.http.policy"
PRINCIPAL_KEY = "yarn.resourcemanager.principal"
PROTECTION_KEY = "hadoop.rpc.protection"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """`user` is the name for messages, and for servers that believe it; `authenticate` opens IPC connections.

    `proof` is what web pages are shown, and `cookies` what they gave for it; `tls` is for those that speak TLS, among
    them the NodeManagers' if `secure_nodes`. `login` and `service` are those of Kerberos.
    """

    user: str
    authenticate: Authenticate
    proof: Proof | None = None
    tls: ssl.SSLContext | None = None
    secure_nodes: bool = False
    login: Login | None = None
    service: str = ""
    cookies: dict[str, str] = field(default_factory=dict)

    @classmethod
    def simple(cls, user: str, tls: ssl.SSLContext | None = None, *, secure_nodes: bool = False) -> "Access":
        """Say who one is, and be believed."""
        return cls(user=user, authenticate=simple(user), tls=tls, secure_nodes=secure_nodes)

    def connection(self, endpoint: Endpoint, protocol: str) -> Connection:
        """A connection to one protocol of a server, not made yet."""
        return Connection(endpoint, protocol, self.user, self.authenticate)

    def web(self, endpoint: Endpoint, *, secure: bool = False) -> Web:
        """The web server of a daemon; `secure`: it speaks TLS."""
        return Web(endpoint, self.user, tls=self.tls if secure else None, proof=self.proof, cookies=self.cookies)


def access(spec: YarnSpec) -> Access:
    """What a cluster file, or the folder of Hadoop's that it names, says of it. No ticket is got yet.

    :raises HadoopConfError: the folder cannot be read, or it lacks the ResourceManager's principal.
    :raises OSError: the file of the certificate authority cannot be read.
    """
    hadoop = None if spec.hadoop_conf_dir is None else read_folder(spec.hadoop_conf_dir)
    secure, _ = wants_tls(spec, hadoop)
    tls = ssl.create_default_context(cafile=spec.tls.ca_file if spec.tls is not None else None) if secure else None
    if not wants_kerberos(spec, hadoop):
        return Access.simple(spec.user, tls, secure_nodes=secure)
    given = spec.kerberos or KerberosSpec()
    login = Login(Identity(principal=given.principal, keytab=given.keytab, ticket_cache=given.ticket_cache))
    service = _service(given, hadoop)
    return Access(
        user=given.principal or str(login.identity),
        authenticate=kerberos(login, service, _protections(given, hadoop)),
        proof=Negotiate(login),
        tls=tls,
        secure_nodes=secure,
        login=login,
        service=service,
    )


def wants_tls(spec: YarnSpec, hadoop: Properties | None) -> tuple[bool, str]:
    """Whether web pages are read by TLS, and what says so."""
    if spec.tls is not None or hadoop is None:
        return spec.tls is not None, "default" if spec.tls is None else "spec.tls"
    return hadoop.text(POLICY_KEY) == "HTTPS_ONLY", hadoop.place(POLICY_KEY)


def wants_kerberos(spec: YarnSpec, hadoop: Properties | None) -> bool:
    """Whether the cluster file, or else Hadoop's own, asks for Kerberos."""
    return spec.kerberos is not None or (hadoop is not None and hadoop.text(AUTHENTICATION_KEY).lower() == "kerberos")


def _service(given: KerberosSpec, hadoop: Properties | None) -> str:
    service = given.resource_manager_principal or (hadoop.text(PRINCIPAL_KEY) if hadoop is not None else "")
    if not service:
        raise HadoopConfError(f"spec.hadoopConfDir lacks {PRINCIPAL_KEY}: set spec.kerberos.resourceManagerPrincipal")
    return service


def _protections(given: KerberosSpec, hadoop: Properties | None) -> tuple[Protection, ...]:
    names: list[str] = list(given.protection or ())
    if not names and hadoop is not None:
        names = [name.strip() for name in hadoop.text(PROTECTION_KEY).lower().split(",")]
    known = {protection.name.lower(): protection for protection in Protection}
    return tuple(known[name] for name in names if name in known) or tuple(Protection)
