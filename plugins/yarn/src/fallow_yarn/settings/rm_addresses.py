"""The addresses of a cluster's ResourceManagers.

A cluster file gives them in one of three ways: `resourceManager`, `resourceManagers`, or `hadoopConfDir`. With the
last one Hadoop's own keys and defaults apply: under high availability a key may end in the id of a ResourceManager,
and a missing address follows from the host name.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fallow_yarn.model.node_matching import is_ipv6, is_loopback
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.settings.config import WAYS, AgentSpec, ResourceManagerSpec
from fallow_yarn.settings.hadoop_conf import HadoopConfError, Properties, read_folder
from fallow_yarn.settings.security import is_https_only

PREFIX: Final = "yarn.resourcemanager"
NO_HOSTS: Final = ("0.0.0.0", "::")  # noqa: S104 - the first is Hadoop's default: right only on the ResourceManager's host
WEB: Final = (f"{PREFIX}.webapp.address", 8088)
SECURE_WEB: Final = (f"{PREFIX}.webapp.https.address", 8090)


class Server(StrEnum):
    """The three servers of a ResourceManager that this plugin talks to."""

    CLIENT = "client"
    ADMIN = "admin"
    WEB = "web"


HADOOP_KEYS: Final = {
    Server.CLIENT: "yarn.resourcemanager.address, port 8032 by default",
    Server.ADMIN: "yarn.resourcemanager.admin.address, port 8033 by default",
    Server.WEB: "yarn.resourcemanager.webapp.address, port 8088 by default",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RmAddresses:
    """The servers of one ResourceManager. `name` is its id among several, such as `rm1`; empty if it is the only one.

    `secure_web`: its web port uses TLS.
    """

    name: str = ""
    client: Endpoint
    admin: Endpoint
    web: Endpoint
    secure_web: bool = False

    def of(self, kind: Server) -> Endpoint:
        """One of its servers."""
        return {Server.CLIENT: self.client, Server.ADMIN: self.admin, Server.WEB: self.web}[kind]

    def __str__(self) -> str:
        return f"{self.name} at {self.admin.authority}" if self.name else self.admin.authority


def server(kind: Server, address: str, setting: str) -> Endpoint:
    """The server at `host:port`; ValueError if that is no address. `setting` names the source, for messages."""
    return Endpoint.parse(
        address, setting=setting, purpose=f"the ResourceManager's {kind} port", hadoop_key=HADOOP_KEYS[kind]
    )


def rm_addresses(spec: AgentSpec) -> tuple[RmAddresses, ...]:
    """The ResourceManagers of a cluster file, one or more. Reads `hadoopConfDir` where the file names it.

    :raises HadoopConfError: the folder cannot be read, or no address is configured.
    """
    if spec.hadoop_conf_dir is not None:
        return addresses_in(read_folder(spec.hadoop_conf_dir))
    secure = spec.tls is not None
    if spec.resource_managers is not None:
        return tuple(
            _given(name, given, f"spec.resourceManagers.{name}", secure=secure)
            for name, given in spec.resource_managers.items()
        )
    if spec.resource_manager is None:
        raise HadoopConfError(f"spec does not say where the ResourceManager is: give one of {WAYS}")
    return (_given("", spec.resource_manager, "spec.resourceManager", secure=secure),)


def are_local(found: tuple[RmAddresses, ...]) -> bool:
    """Whether all ResourceManagers are reached through the loopback interface."""
    return all(is_loopback(addresses.admin.host) for addresses in found)


def addresses_in(properties: Properties) -> tuple[RmAddresses, ...]:
    """The ResourceManagers of Hadoop's files, one or more.

    :raises HadoopConfError: an address is missing.
    """
    if not properties.flag(f"{PREFIX}.ha.enabled"):
        return (_configured(properties, ""),)
    names = [name.strip() for name in properties.text(f"{PREFIX}.ha.rm-ids").split(",") if name.strip()]
    if not names:
        raise HadoopConfError(
            f"{properties.folder}: {PREFIX}.ha.enabled is true, but {PREFIX}.ha.rm-ids names no ResourceManager"
        )
    return tuple(_configured(properties, name) for name in names)


def is_by_host_name(source: str) -> bool:
    """Whether an address with this source has only its host from there, and Hadoop's default port."""
    return source.startswith(f"{PREFIX}.hostname")


def _given(name: str, given: ResourceManagerSpec, setting: str, *, secure: bool) -> RmAddresses:
    return RmAddresses(
        name=name,
        client=server(Server.CLIENT, given.client_address, f"{setting}.client"),
        admin=server(Server.ADMIN, given.admin_address, f"{setting}.admin"),
        web=server(Server.WEB, given.web_address, f"{setting}.web"),
        secure_web=secure,
    )


def _configured(properties: Properties, name: str) -> RmAddresses:
    secure = is_https_only(properties)
    web_key, web_port = SECURE_WEB if secure else WEB
    return RmAddresses(
        name=name,
        client=_server(Server.CLIENT, properties, f"{PREFIX}.address", 8032, name),
        admin=_server(Server.ADMIN, properties, f"{PREFIX}.admin.address", 8033, name),
        web=_server(Server.WEB, properties, web_key, web_port, name),
        secure_web=secure,
    )


def _server(kind: Server, properties: Properties, key: str, port: int, name: str) -> Endpoint:
    """The server from its key, or else from the host name. With several ResourceManagers a key with the id goes first.

    :raises HadoopConfError: none of the keys is set, or its value is no address.
    """
    by_host = f"{PREFIX}.hostname.{name}" if name else f"{PREFIX}.hostname"
    for candidate in (f"{key}.{name}", by_host, key) if name else (key, by_host):
        value = properties.text(candidate)
        if not value:
            continue
        try:
            address = _at_host(value, port) if candidate == by_host else _with_port(value, port)
            found = server(kind, address, properties.source(candidate))
        except ValueError as error:
            raise HadoopConfError(str(error)) from None
        if found.host in NO_HOSTS:
            break
        return found
    raise HadoopConfError(
        f"{properties.folder}: it does not say where ResourceManager{' ' + name if name else ''} is; expected {by_host}"
        f" or {f'{key}.{name}' if name else key}"
    )


def _with_port(address: str, port: int) -> str:
    """An address as `host:port`. As for Hadoop, the port may be missing, and it may be a URI."""
    _, scheme, authority = address.rpartition("://")
    if scheme:
        authority = authority.partition("/")[0]
    host, _, given_port = authority.rpartition(":")
    return authority if host and given_port.isdecimal() else f"{authority}:{port}"


def _at_host(host: str, port: int) -> str:
    """The address of a host, which may be an IPv6 address, with or without brackets."""
    bare = host.removeprefix("[").removesuffix("]")
    return f"[{bare}]:{port}" if is_ipv6(bare) else f"{host}:{port}"
