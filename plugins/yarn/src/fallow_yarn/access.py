"""How this plugin says who it is, and whom it believes: what every connection of one cluster has in common."""

import ssl
from dataclasses import dataclass

from fallow_yarn.config import AgentSpec, KerberosSpec
from fallow_yarn.hadoop_conf import HadoopConfError, Properties
from fallow_yarn.ipc.connection import Authenticate, Connection, simple
from fallow_yarn.ipc.endpoint import Endpoint
from fallow_yarn.security.login import Login
from fallow_yarn.security.negotiate import Negotiate
from fallow_yarn.security.sasl import Protection, kerberos
from fallow_yarn.web_access import WebAccess, hadoop_of, login_of, tls_of, user_of, wants_kerberos

PRINCIPAL_KEY = "yarn.resourcemanager.principal"
PROTECTION_KEY = "hadoop.rpc.protection"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access(WebAccess):
    """Access to web pages, and `authenticate`, which opens IPC connections.

    `login` and `service` are those of Kerberos.
    """

    authenticate: Authenticate
    login: Login | None = None
    service: str = ""

    @classmethod
    def simple(cls, user: str, tls: ssl.SSLContext | None = None, *, secure_nodes: bool = False) -> "Access":
        """Say who one is, and be believed."""
        return cls(user=user, authenticate=simple(user), tls=tls, secure_nodes=secure_nodes)

    def connection(self, endpoint: Endpoint, protocol: str) -> Connection:
        """A connection to one protocol of a server, not made yet."""
        return Connection(endpoint, protocol, self.user, self.authenticate)


def access(spec: AgentSpec) -> Access:
    """What a cluster file, or the folder of Hadoop's that it names, says of it. No ticket is got yet.

    :raises HadoopConfError: the folder cannot be read, or it lacks the ResourceManager's principal.
    :raises OSError: the file of the certificate authority cannot be read.
    """
    hadoop = hadoop_of(spec)
    tls = tls_of(spec, hadoop)
    if not wants_kerberos(spec, hadoop):
        return Access.simple(spec.user, tls, secure_nodes=tls is not None)
    given, login = spec.kerberos or KerberosSpec(), login_of(spec)
    service = _service(given, hadoop)
    return Access(
        user=user_of(spec, login),
        authenticate=kerberos(login, service, _protections(given, hadoop)),
        proof=Negotiate(login),
        tls=tls,
        secure_nodes=tls is not None,
        login=login,
        service=service,
    )


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
