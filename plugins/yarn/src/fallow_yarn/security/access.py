"""Access to a cluster's daemons: what all its connections, IPC and web, have in common."""

import ssl
from dataclasses import dataclass

from fallow_yarn.ipc import wire
from fallow_yarn.ipc.connection import Authenticate, Connection, simple
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.security.login import Login
from fallow_yarn.security.negotiate import Negotiate
from fallow_yarn.security.sasl import Protection, kerberos
from fallow_yarn.security.service import Service
from fallow_yarn.security.web_access import WebAccess, login_of, page_user_of, tls_of, user_of
from fallow_yarn.settings.config import AgentSpec, KerberosSpec
from fallow_yarn.settings.hadoop_conf import HadoopConfError, Properties
from fallow_yarn.settings.security import PATTERN_KEY, PRINCIPAL_KEY, PROTECTION_KEY, hadoop_properties, wants_kerberos


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
        """SIMPLE authentication: the servers believe the user name."""
        return cls(user=user, page_user=user, authenticate=simple(user), tls=tls, secure_nodes=secure_nodes)

    def connection(self, endpoint: Endpoint, protocol: str, most_bytes: int = wire.SMALL_FRAME_BYTES) -> Connection:
        """A connection to one protocol of a server, not made yet. `most_bytes`: of one answer."""
        return Connection(endpoint, protocol, self.user, self.authenticate, most_bytes)


def access(spec: AgentSpec) -> Access:
    """The access that a cluster file, or the Hadoop files that it names, configure. Gets no ticket yet.

    :raises HadoopConfError: the folder or the file of the certificate authority cannot be read, or the folder lacks
        the ResourceManager's principal, or has a value that Hadoop does not know.
    """
    hadoop = hadoop_properties(spec)
    tls = tls_of(spec, hadoop)
    if not wants_kerberos(spec, hadoop):
        return Access.simple(spec.user, tls, secure_nodes=tls is not None)
    given, login = spec.kerberos or KerberosSpec(), login_of(spec)
    service = _service(given, hadoop)
    return Access(
        user=user_of(spec, login),
        page_user=page_user_of(spec),
        authenticate=kerberos(login, service, _protections(given, hadoop)),
        authentication=Negotiate(login),
        tls=tls,
        secure_nodes=tls is not None,
        login=login,
        service=str(service),
    )


def _service(given: KerberosSpec, hadoop: Properties | None) -> Service:
    if given.resource_manager_principal:
        return Service(principal=given.resource_manager_principal)
    found = Service()
    if hadoop is not None:
        found = Service(principal=hadoop.text(PRINCIPAL_KEY), pattern=hadoop.text(PATTERN_KEY))
    if not str(found):
        raise HadoopConfError(f"spec.hadoopConfDir lacks {PRINCIPAL_KEY}: set spec.kerberos.resourceManagerPrincipal")
    return found


def _protections(given: KerberosSpec, hadoop: Properties | None) -> tuple[Protection, ...]:
    known = {protection.name.lower(): protection for protection in Protection}
    names: list[str] = list(given.protection or ())
    if not names and hadoop is not None:
        names = hadoop.words(PROTECTION_KEY, known)
    return tuple(known[name] for name in names) or tuple(Protection)
