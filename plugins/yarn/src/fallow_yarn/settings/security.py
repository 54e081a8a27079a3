"""Whether a cluster's settings ask for Kerberos and for TLS, and from which source they do."""

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from fallow_yarn.settings.hadoop_conf import Properties

AUTHENTICATION_KEY: Final = "hadoop.security.authentication"
POLICY_KEY: Final = "yarn.http.policy"
PRINCIPAL_KEY: Final = "yarn.resourcemanager.principal"
PATTERN_KEY: Final = "yarn.resourcemanager.principal.pattern"
PROTECTION_KEY: Final = "hadoop.rpc.protection"


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


class SecuritySettings(Protocol):
    """The part of a cluster file that is about security: `AgentSpec` and `AgentSettings` have it."""

    @property
    def user(self) -> str:
        """The user name of SIMPLE authentication."""

    @property
    def hadoop_conf_dir(self) -> str | None:
        """The folder with Hadoop's files."""

    @property
    def kerberos(self) -> _Kerberos | None:
        """The credentials."""

    @property
    def tls(self) -> _Tls | None:
        """The certificate authorities."""


def hadoop_properties(spec: SecuritySettings) -> "Properties | None":
    """Hadoop's files, if the cluster file names their folder; HadoopConfError if they cannot be read."""
    if spec.hadoop_conf_dir is None:
        return None
    from fallow_yarn.settings.hadoop_conf import read_folder  # an agent without such a folder does not load it

    return read_folder(spec.hadoop_conf_dir)


def wants_tls(spec: SecuritySettings, hadoop: "Properties | None") -> tuple[bool, str]:
    """Whether web pages are read over TLS, and the source of that setting."""
    if spec.tls is not None or hadoop is None:
        return spec.tls is not None, "default" if spec.tls is None else "spec.tls"
    return is_https_only(hadoop), hadoop.source(POLICY_KEY)


def is_https_only(hadoop: "Properties") -> bool:
    """Whether Hadoop's daemons serve their web pages over TLS; for them letter case makes no difference."""
    return hadoop.text(POLICY_KEY).upper() == "HTTPS_ONLY"


def wants_kerberos(spec: SecuritySettings, hadoop: "Properties | None") -> bool:
    """Whether the cluster file, or else Hadoop's own files, ask for Kerberos.

    :raises HadoopConfError: Hadoop's files ask for something else.
    """
    if spec.kerberos is not None or hadoop is None:
        return spec.kerberos is not None
    return "kerberos" in hadoop.words(AUTHENTICATION_KEY, ("simple", "kerberos"))
