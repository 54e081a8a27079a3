"""The model of `spec` in a cluster file with `plugin: yarn`."""

import ipaddress
import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from fallow_yarn.model.node_matching import NODE_ID_KEY, MatchingRules, is_ipv6
from fallow_yarn.settings.agent_settings import AgentSettings

CLIENT_PORT, ADMIN_PORT, WEB_PORT = 8032, 8033, 8088
WAYS = "resourceManager (one), resourceManagers (several by id) and hadoopConfDir"

_NAME = re.compile(r"[^\s:/\[\]]+")
_ADDRESS = re.compile(rf"(\[[0-9A-Fa-f:.]+\]|{_NAME.pattern}):([0-9]{{1,5}})")


def _address(value: str) -> str:
    match = _ADDRESS.fullmatch(value)
    if match is None or not 0 < int(match[2]) < 65536:
        raise ValueError(f"{value!r} is not HOST:PORT, such as rm.example.com:8032 or [2001:db8::1]:8032")
    return value


def _node_id(value: str) -> str:
    host, _, port = value.rpartition(":")
    return value if is_ipv6(host) and port.isdecimal() else _address(value)  # the ResourceManager writes no brackets


def _host(value: str) -> str:
    if _NAME.fullmatch(value):
        return value
    try:
        return str(ipaddress.IPv6Address(value.removeprefix("[").removesuffix("]")))
    except ValueError:
        raise ValueError(f"{value!r} is not a host name or address without a port, such as rm.example.com") from None


def _not_empty(value: list[str]) -> list[str]:
    if not value:
        raise ValueError("the list is empty; omit it to match the NodeManagers with an address of this host")
    return value


def _readable(folder: str) -> str:
    from fallow_yarn.settings.hadoop_conf import HadoopConfError, read_folder  # most cluster files name no folder

    try:
        read_folder(folder)
    except HadoopConfError as error:
        raise ValueError(str(error)) from None
    return folder


Address = Annotated[str, AfterValidator(_address)]
NodeId = Annotated[str, AfterValidator(_node_id)]
AbsolutePath = Annotated[str, Field(pattern=r"^/")]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)


class ResourceManagerSpec(_Model):
    """A ResourceManager: its host, and the addresses that differ from Hadoop's default ports.

    `host` is a name or an address, an IPv6 one without brackets; the three addresses are `host:port`. It may be left
    out where the addresses say it: all three are given, or those that are given have the same host.
    """

    host: Annotated[str, AfterValidator(_host)] | None = None
    client: Address | None = None
    admin: Address | None = None
    web: Address | None = None

    @property
    def client_address(self) -> str:
        """Address of the client protocol."""
        return self.client or self._at(CLIENT_PORT)

    @property
    def admin_address(self) -> str:
        """Address of the admin protocol, which takes node sizes."""
        return self.admin or self._at(ADMIN_PORT)

    @property
    def web_address(self) -> str:
        """Address of the web pages and REST."""
        return self.web or self._at(WEB_PORT)

    @model_validator(mode="after")
    def _says_where(self) -> Self:
        hosts = self._hosts()
        if self.host is None and len(hosts) != 1 and None in (self.client, self.admin, self.web):
            several = f"; the addresses have several: {', '.join(sorted(hosts))}" if hosts else ""
            raise ValueError(f"give host, or all of client, admin and web{several}")
        return self

    def _hosts(self) -> set[str]:
        return {given.rpartition(":")[0] for given in (self.client, self.admin, self.web) if given is not None}

    def _at(self, port: int) -> str:
        host = next(iter(self._hosts())) if self.host is None else self.host
        return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


class KerberosSpec(_Model):
    """Kerberos: the credentials, the principal of the ResourceManager, and the protection.

    Without `keytab` and `ticket_cache` those of the environment are used (KRB5CCNAME, KRB5_CLIENT_KTNAME).
    `resource_manager_principal` may have `_HOST` as its host. `protection`: the allowed ones of Hadoop's protections;
    the strongest that the ResourceManager offers is used.
    """

    principal: Annotated[str, Field(min_length=1)] | None = None
    keytab: Annotated[str, Field(pattern=r"^/")] | None = None
    ticket_cache: Annotated[str, Field(min_length=1)] | None = None
    resource_manager_principal: Annotated[str, Field(pattern=r"^[^/@\s]+/[^/@\s]+(@[^/@\s]+)?$")] | None = None
    protection: Annotated[list[Literal["authentication", "integrity", "privacy"]], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.keytab is not None and self.ticket_cache is not None:
            raise ValueError("give keytab or ticketCache, not both")
        return self


class TlsSpec(_Model):
    """Web ports with TLS. `ca_file`: the certificate authorities in PEM; without it those of this host."""

    ca_file: Annotated[str, Field(pattern=r"^/")] | None = None


def _several(value: dict[str, ResourceManagerSpec]) -> dict[str, ResourceManagerSpec]:
    if len(value) < 2:
        raise ValueError(
            "expected two or more ResourceManagers of high availability; for a single one use resourceManager"
        )
    return value


class AgentSpec(_Model):
    """The model of `spec` for a file with `roles: [agent]`, which needs no ResourceManager.

    `vcore_milli`: how many milli-cores one vcore stands for.

    The ResourceManagers are configured in one of three ways: `resource_manager` is the only one, `resource_managers`
    are several by id, of which one is active, and `hadoop_conf_dir` is the directory with the cluster's core-site.xml
    and yarn-site.xml, which have to be readable when the file is checked. Which NodeManagers belong to a node: see
    `model.node_matching`. `node_manager_user`: the user that NodeManagers run as on this host, by name or number; see
    `nm.proof` for the default. `exclude_files` and `include_files`: the lists of hosts that the ResourceManagers read,
    where this host has them. `when_empty`: whether an empty node with nothing to lend stays at its floor, stays at
    zero, or is decommissioned until there is something to lend.
    """

    resource_manager: ResourceManagerSpec | None = None
    resource_managers: Annotated[dict[str, ResourceManagerSpec], AfterValidator(_several)] | None = None
    hadoop_conf_dir: Annotated[AbsolutePath, AfterValidator(_readable)] | None = None
    user: Annotated[str, Field(min_length=1, pattern=r"^[^\s]+$")] = "yarn"
    node_manager_user: Annotated[str, Field(min_length=1, pattern=r"^[^\s]+$")] | None = None
    node_managers: Annotated[list[NodeId], AfterValidator(_not_empty)] | None = None
    node_managers_by_node: Annotated[dict[str, list[NodeId]], Field(min_length=1)] | None = None
    node_manager_key: Annotated[str, Field(min_length=1)] = NODE_ID_KEY
    vcore_milli: Annotated[int, Field(ge=1, le=1_000_000)] = 1000
    kerberos: KerberosSpec | None = None
    tls: TlsSpec | None = None
    exclude_files: Annotated[list[AbsolutePath], Field(min_length=1)] | None = None
    include_files: Annotated[list[AbsolutePath], Field(min_length=1)] | None = None
    when_empty: Literal["floor", "zero", "decommission"] = "floor"

    def rules(self, *, manager_is_local: bool) -> MatchingRules:
        """How the NodeManagers of a node are matched; see `MatchingRules` for `manager_is_local`."""
        return MatchingRules(
            listed=self.node_managers,
            by_node=self.node_managers_by_node,
            key=self.node_manager_key,
            manager_is_local=manager_is_local,
        )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.node_managers is not None and self.node_managers_by_node is not None:
            raise ValueError("give nodeManagers (those of the one host) or nodeManagersByNode (of each node), not both")
        if self.ways > 1:
            raise ValueError(f"give one of {WAYS}")
        return self

    @property
    def ways(self) -> int:
        """The number of ways in which the ResourceManagers are configured."""
        return sum(way is not None for way in (self.resource_manager, self.resource_managers, self.hadoop_conf_dir))


def spec_of(settings: AgentSpec | AgentSettings) -> AgentSpec:
    """The model of the file, from the settings of an instance."""
    return settings if isinstance(settings, AgentSpec) else AgentSpec.model_validate(settings.given)


class YarnSpec(AgentSpec):
    """The model of `spec` for a file with the role of a controller: it needs a ResourceManager."""

    @model_validator(mode="after")
    def _reaches_a_manager(self) -> Self:
        if not self.ways:
            raise ValueError(f"give one of {WAYS}; only a file with roles: [agent] needs none")
        if self.kerberos is not None and self.hadoop_conf_dir is None and not self.kerberos.resource_manager_principal:
            raise ValueError("kerberos: give resourceManagerPrincipal, such as rm/_HOST@EXAMPLE.COM, or hadoopConfDir")
        return self
