"""Access to the web pages of a cluster's daemons: the user, the authentication and TLS.

It needs nothing of Hadoop's IPC: an agent without a ResourceManager reads web pages only.
"""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fallow_yarn.http.web import MAX_ANSWER_BYTES, Authentication, Web
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.settings.security import SecuritySettings, hadoop_properties, wants_kerberos, wants_tls

if TYPE_CHECKING:
    import ssl

    from fallow_yarn.security.login import Login
    from fallow_yarn.settings.hadoop_conf import Properties


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAccess:
    """`user` is for messages, and `page_user` is the name that web pages with simple authentication believe.

    `authentication` is for the web pages that ask for Kerberos, and `cookies` holds the session cookies it earned. The
    pages of a cluster with Kerberos have simple authentication by default. `tls` is for the servers that use TLS; the
    NodeManagers are among them if `secure_nodes`.
    """

    user: str
    page_user: str
    authentication: Authentication | None = None
    tls: "ssl.SSLContext | None" = None
    secure_nodes: bool = False
    cookies: dict[str, str] = field(default_factory=dict)

    def web(self, endpoint: Endpoint, *, secure: bool = False, most_bytes: int = MAX_ANSWER_BYTES) -> Web:
        """The web server of a daemon; `secure`: it uses TLS. `most_bytes`: of one answer."""
        tls, who = self.tls if secure else None, self.authentication
        return Web(endpoint, self.page_user, tls=tls, authentication=who, cookies=self.cookies, most_bytes=most_bytes)


def web_access(spec: SecuritySettings) -> WebAccess:
    """The access that a cluster file, or the Hadoop files that it names, configure. Gets no ticket yet.

    :raises HadoopConfError: the folder, or the file of the certificate authority, cannot be read.
    """
    hadoop = hadoop_properties(spec)
    tls = tls_of(spec, hadoop)
    if not wants_kerberos(spec, hadoop):
        return WebAccess(user=spec.user, page_user=spec.user, tls=tls, secure_nodes=tls is not None)
    from fallow_yarn.security.negotiate import Negotiate  # most clusters have no Kerberos

    login = login_of(spec)
    return WebAccess(
        user=user_of(spec, login),
        page_user=page_user_of(spec),
        authentication=Negotiate(login),
        tls=tls,
        secure_nodes=tls is not None,
    )


def login_of(spec: SecuritySettings) -> "Login":
    """The Kerberos login with the credentials that the cluster file names."""
    from fallow_yarn.security.login import Identity, Login

    given = spec.kerberos
    if given is None:
        return Login(Identity())
    return Login(Identity(principal=given.principal, keytab=given.keytab, ticket_cache=given.ticket_cache))


def user_of(spec: SecuritySettings, login: "Login") -> str:
    """The name of the authenticated user, for messages."""
    return (spec.kerberos.principal if spec.kerberos is not None else None) or str(login.identity)


def page_user_of(spec: SecuritySettings) -> str:
    """The name for web pages with simple authentication: the short name of the principal where the file names one."""
    principal = (spec.kerberos.principal if spec.kerberos is not None else None) or spec.user
    return re.split("[/@]", principal, maxsplit=1)[0]


def tls_of(spec: SecuritySettings, hadoop: "Properties | None") -> "ssl.SSLContext | None":
    """The TLS context; `None` without TLS. HadoopConfError if the file of the authorities cannot be used."""
    if not wants_tls(spec, hadoop)[0]:
        return None
    from fallow_yarn.security.tls import context  # the module ssl takes megabytes

    return context(spec.tls.ca_file if spec.tls is not None else None)
