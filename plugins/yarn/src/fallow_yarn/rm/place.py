"""Where the servers of one ResourceManager are."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fallow_yarn.ipc.endpoint import Endpoint


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
class Place:
    """One ResourceManager. `name` is its id among several, such as `rm1`; empty if it is the only one.

    `secure_web`: its web port speaks TLS.
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
    """One of the servers, at `host:port`; ValueError if that is no address. `setting` says where it was found."""
    return Endpoint.parse(
        address, setting=setting, purpose=f"the ResourceManager's {kind} port", hadoop_key=HADOOP_KEYS[kind]
    )
